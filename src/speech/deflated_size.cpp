// Deflate (RFC 1951) at zlib's level 6, as far as its size goes: which strings are found again decides how
// many symbols there are, Huffman codes of their frequencies how many bits these take. Formats allow many
// encodings of a text; numbers below that no format asks for are zlib's choices, and so is the order in
// which equal frequencies are joined.
#include "speech/deflated_size.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace akunu::speech {
namespace {

constexpr size_t kShortest = 3, kLongest = 258;  // of a match
constexpr size_t kFarthest = (1 << 15) - kLongest - kShortest - 1;
constexpr size_t kTooFarForShortest = 4096;
constexpr size_t kGoodLength = 8, kLazyLength = 16, kNiceLength = 128, kChain = 128;
constexpr size_t kEndOfBlock = 256, kLengths = 257;  // first symbols behind the literals

struct Frequencies {
  std::array<uint32_t, 286> literals{};
  std::array<uint32_t, 30> distances{};
};

// 0 to 28, of a length less kShortest.
size_t length_code(size_t length) {
  if (length < 8) return length;
  if (length == kLongest - kShortest) return 28;
  const auto bits = static_cast<size_t>(std::bit_width(length)) - 3;
  return 4 * bits + (length >> bits);
}

// 0 to 29, of a distance less 1.
size_t distance_code(size_t distance) {
  if (distance < 4) return distance;
  const auto bits = static_cast<size_t>(std::bit_width(distance)) - 2;
  return 2 * bits + (distance >> bits);
}

constexpr uint32_t length_bits(size_t code) {
  return code < 8 || code == 28 ? 0 : static_cast<uint32_t>(code / 4 - 1);
}
constexpr uint32_t distance_bits(size_t code) {
  return code < 4 ? 0 : static_cast<uint32_t>(code / 2 - 1);
}

// Finds strings that were there before. Places with the same hash of three bytes are a chain; 0 ends one, so
// that nothing is found at the first place.
class Matcher {
 public:
  explicit Matcher(std::string_view text)
      : n_(text.size()), bytes_(text.begin(), text.end()), heads_(1 << 15), before_(text.size()) {
    bytes_.resize(n_ + 2 * kLongest);  // comparisons run beyond the end, into zeros
  }

  Frequencies count() {
    Frequencies found;
    found.literals[kEndOfBlock] = 1;
    size_t length = kShortest - 1, start = 0;
    bool is_open = false;  // the byte before is not told yet: a match may begin with it
    for (size_t at = 0; at < n_;) {
      const size_t head = n_ - at >= kShortest ? insert(at) : 0;
      const size_t last_length = length, last_start = start;
      length = kShortest - 1;
      if (head != 0 && last_length < kLazyLength && at - head <= kFarthest) {
        length = longest(at, head, last_length, start);
        if (length == kShortest && at - start > kTooFarForShortest) length = kShortest - 1;
      }
      if (last_length >= kShortest && length <= last_length) {
        ++found.literals[kLengths + length_code(last_length - kShortest)];
        ++found.distances[distance_code(at - 1 - last_start - 1)];
        const size_t end = at - 1 + last_length;
        while (++at < end)
          if (at + kShortest <= n_) insert(at);
        is_open = false;
        length = kShortest - 1;
      } else {
        if (is_open) ++found.literals[bytes_[at - 1]];
        is_open = true;
        ++at;
      }
    }
    if (is_open) ++found.literals[bytes_[n_ - 1]];
    return found;
  }

 private:
  size_t insert(size_t at) {
    const size_t hash = (size_t{bytes_[at]} << 10 ^ size_t{bytes_[at + 1]} << 5 ^ bytes_[at + 2]) &
                        (heads_.size() - 1);
    before_[at] = heads_[hash];
    heads_[hash] = at;
    return before_[at];
  }

  // The longest match beyond `best` among those of a chain, and where it starts.
  size_t longest(size_t at, size_t candidate, size_t best, size_t& start) const {
    const size_t left = n_ - at, nice = std::min(kNiceLength, left);
    const size_t limit = at > kFarthest ? at - kFarthest : 0;
    size_t chain = best >= kGoodLength ? kChain / 4 : kChain;
    do {
      if (bytes_[candidate + best] != bytes_[at + best]) continue;
      size_t length = 0;
      while (length < kLongest && bytes_[candidate + length] == bytes_[at + length]) ++length;
      if (length <= best) continue;
      start = candidate;
      best = length;
      if (length >= nice) break;
    } while ((candidate = before_[candidate]) > limit && --chain != 0);
    return std::min(best, left);
  }

  const size_t n_;
  std::vector<uint8_t> bytes_;
  std::vector<size_t> heads_, before_;
};

// A Huffman code: how many bits each symbol has, and how many all of them take.
class Code {
 public:
  // `extra`: bits that follow a symbol. `most`: bits of the longest.
  template <class Extra>
  Code(std::span<const uint32_t> frequencies, uint32_t most, const Extra& extra)
      : n_(frequencies.size()), weights_(frequencies.begin(), frequencies.end()) {
    weights_.resize(2 * n_);
    depths_.resize(2 * n_);
    parents_.resize(2 * n_);
    bits_.resize(2 * n_);
    join();
    limit_bits(most);
    for (size_t i = 0; i <= last_; ++i) total_ += weights_[i] * (bits_[i] + extra(i));
    total_ -= n_added_;  // symbols that only fill the tree up are never written
  }

  size_t last() const { return last_; }  // the last symbol that has a code
  std::span<const uint32_t> bits() const { return std::span(bits_).first(last_ + 1); }
  uint64_t total() const { return total_; }

 private:
  bool goes_before(size_t a, size_t b) const {
    return weights_[a] < weights_[b] || (weights_[a] == weights_[b] && depths_[a] <= depths_[b]);
  }
  void sink(size_t place) {
    const size_t node = heap_[place];
    for (size_t child = 2 * place; child < heap_.size(); child *= 2) {
      if (child + 1 < heap_.size() && goes_before(heap_[child + 1], heap_[child])) ++child;
      if (goes_before(node, heap_[child])) break;
      heap_[place] = heap_[child];
      place = child;
    }
    heap_[place] = node;
  }

  void join() {
    for (size_t i = 0; i < n_; ++i)
      if (weights_[i] != 0) heap_.push_back(last_ = i);
    if (heap_.size() == 1) last_ = 0;
    while (heap_.size() < 3) {  // a tree has two leaves at least
      const size_t node = heap_.size() == 1 && n_added_ == 0 ? 0 : last_ < 2 ? ++last_ : 0;
      weights_[node] = 1;
      ++n_added_;
      heap_.push_back(node);
    }
    for (size_t place = (heap_.size() - 1) / 2; place >= 1; --place) sink(place);
    for (size_t node = n_; heap_.size() > 2; ++node) {
      const size_t least = heap_[1];
      heap_[1] = heap_.back();
      heap_.pop_back();
      sink(1);
      const size_t next = heap_[1];
      order_.insert(order_.end(), {least, next});
      weights_[node] = weights_[least] + weights_[next];
      depths_[node] = std::max(depths_[least], depths_[next]) + 1;
      parents_[least] = parents_[next] = node;
      heap_[1] = node;
      sink(1);
    }
    order_.push_back(heap_[1]);
    std::ranges::reverse(order_);  // the root first
  }

  void limit_bits(uint32_t most) {
    std::vector<size_t> n_with(most + 1);
    size_t overflow = 0;
    for (size_t i = 1; i < order_.size(); ++i) {
      const size_t node = order_[i];
      bits_[node] = bits_[parents_[node]] + 1;
      if (bits_[node] > most) {
        bits_[node] = most;
        ++overflow;
      }
      if (node < n_) ++n_with[bits_[node]];
    }
    if (overflow == 0) return;
    for (auto left = static_cast<int64_t>(overflow); left > 0; left -= 2) {
      uint32_t bits = most - 1;
      while (n_with[bits] == 0) --bits;
      --n_with[bits];
      n_with[bits + 1] += 2;
      --n_with[most];
    }
    size_t place = order_.size();  // the rarest first have the most bits
    for (uint32_t bits = most; bits > 0; --bits)
      for (size_t n = n_with[bits]; n > 0;) {
        const size_t node = order_[--place];
        if (node >= n_) continue;
        bits_[node] = bits;
        --n;
      }
  }

  const size_t n_;
  std::vector<uint64_t> weights_;
  std::vector<uint32_t> depths_, bits_;
  std::vector<size_t> parents_, order_, heap_{0};  // the heap's places count from 1
  size_t last_ = 0;
  uint64_t total_ = 0, n_added_ = 0;
};

// How a code's lengths are written: as they are, and in runs.
void count_lengths(std::span<const uint32_t> bits, std::array<uint32_t, 19>& found) {
  constexpr size_t kRepeat = 16, kFewZeros = 17, kManyZeros = 18;
  uint32_t last = UINT32_MAX;
  for (size_t at = 0; at < bits.size();) {
    const uint32_t length = bits[at];
    // Behind the same length a run needs no opening.
    const size_t most = length == 0 ? 138 : length == last ? 6 : 7;
    const size_t least = length == 0 || length == last ? 3 : 4;
    size_t n = 0;
    while (n < most && at + n < bits.size() && bits[at + n] == length) ++n;
    at += n;
    if (n < least) {
      found[length] += static_cast<uint32_t>(n);
    } else if (length != 0) {
      if (length != last) ++found[length];
      ++found[kRepeat];
    } else {
      ++found[n <= 10 ? kFewZeros : kManyZeros];
    }
    last = length;
  }
}

uint32_t literal_extra(size_t symbol) {
  return symbol < kLengths ? 0 : length_bits(symbol - kLengths);
}

}  // namespace

size_t deflated_size(std::string_view text) {
  const Frequencies found = Matcher(text).count();
  const Code literals(found.literals, 15, literal_extra);
  const Code distances(found.distances, 15, distance_bits);
  std::array<uint32_t, 19> lengths{};
  count_lengths(literals.bits(), lengths);
  count_lengths(distances.bits(), lengths);
  const Code of_lengths(lengths, 7, [](size_t symbol) {
    return symbol == 16 ? 2u : symbol == 17 ? 3u : symbol == 18 ? 7u : 0u;
  });
  // The order in which lengths of lengths are written; those at its end that are 0 are not.
  constexpr size_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const std::span<const uint32_t> bits = of_lengths.bits();
  size_t n_written = std::size(kOrder);
  while (n_written > 4 &&
         (kOrder[n_written - 1] >= bits.size() || bits[kOrder[n_written - 1]] == 0))
    --n_written;
  constexpr uint64_t kBlockHeader = 3;
  const uint64_t own =
      5 + 5 + 4 + 3 * n_written + of_lengths.total() + literals.total() + distances.total();
  uint64_t fixed = 0;
  for (size_t i = 0; i < found.literals.size(); ++i)
    fixed += found.literals[i] * ((i < 144   ? 8u
                                   : i < 256 ? 9u
                                   : i < 280 ? 7u
                                             : 8u) +
                                  literal_extra(i));
  for (size_t i = 0; i < found.distances.size(); ++i)
    fixed += uint64_t{found.distances[i]} * (5 + distance_bits(i));
  const size_t coded = (std::min(own, fixed) + kBlockHeader + 7) / 8;
  const size_t stored = text.size() + 4;
  constexpr size_t kHeaderAndSum = 2 + 4;
  return kHeaderAndSum + (stored <= coded ? stored + 1 : coded);
}

}  // namespace akunu::speech
