// What the device knows of each conversation under way: its token log, its page tables, its record.
// A slot is taken when a request is admitted; its pages are the business of Sequences (sequences.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/kv_cache.h"
#include "core/device.h"
#include "core/format.h"
#include "core/rows.h"

namespace akunu {

// A low-rank adapter of a text, and how much of it.
struct TextAdapter {
  uint32_t adapter = 0;  // its number among those that are loaded
  float weight = 0;
  uint64_t load = 0;  // which load made it: after an unload, another adapter may get the number

  bool operator==(const TextAdapter&) const = default;
};

// What keys and values depend on besides the tokens; only sequences with the same key share pages.
// Grammars and sampling options are not part of it, since they only choose tokens.
struct PrefixKey {
  Format format = Format::f16;        // of the cache
  std::vector<TextAdapter> adapters;  // in order of their numbers, none with weight 0
  uint64_t window = 0;                // of speech, that it is a text of; see EncodedWindow

  bool operator==(const PrefixKey&) const = default;
  bool has_adapter(uint64_t load) const {
    return std::ranges::find(adapters, load, &TextAdapter::load) != adapters.end();
  }
};

// Why a text took over no more positions of the cache than it did.
enum class PrefixEnd : uint8_t {
  untold,        // no search yet: the text waits
  whole,         // all that it may: all tokens but the last one, whose logits are wanted
  off,           // nothing is kept for it
  outputs,       // the outputs of later rows are wanted, so they are computed
  unknown,       // no text in the cache begins with its first token, or none does any more
  differs,       // the next token of the text that it begins like is another one
  ends,          // the text that it begins like has no more tokens
  not_computed,  // that text has the next token, but not as a computed position of a prompt
  other_key,     // a text with other adapters or another window of speech begins like it for longer
  evicted,       // pages of the text that it begins like have gone
};

// For people and counters; the names above.
constexpr std::string_view name_of(PrefixEnd end) {
  switch (end) {
    case PrefixEnd::untold:
      return "";
    case PrefixEnd::whole:
      return "whole";
    case PrefixEnd::off:
      return "off";
    case PrefixEnd::outputs:
      return "outputs";
    case PrefixEnd::unknown:
      return "unknown";
    case PrefixEnd::differs:
      return "differs";
    case PrefixEnd::ends:
      return "ends";
    case PrefixEnd::not_computed:
      return "not_computed";
    case PrefixEnd::other_key:
      return "other_key";
    case PrefixEnd::evicted:
      return "evicted";
  }
  return "";
}

// Numbers of tokens from here on are those of positions whose input is no token, and name what it is:
// inference/image.h.
constexpr uint32_t kFirstNoToken = 1u << 31;

// Tokens, and the pages in which their keys and values lie. Keeps no account of references.
struct Sequence {
  // Other texts went on differently from here, and more may: the place is remembered, of three the
  // last ones.
  void part(uint32_t place) {
    const auto known = std::ranges::find(parted, place);
    std::shift_right(parted.begin(), known == parted.end() ? known : known + 1, 1);
    parted.front() = place;
  }

  Held held(size_t group) const {
    return {pages[group], n_done, checkpoints, std::max(n_run, n_done)};
  }

  uint64_t id = 0;  // of the request
  PrefixKey key;
  std::vector<uint32_t> tokens;              // as far as they are known
  uint32_t n_done = 0;                       // positions that are in the pages: tokens[0, n_done)
  std::vector<std::vector<uint32_t>> pages;  // per cache group and entry of its page table
  std::vector<uint32_t> checkpoints;         // of states: after how many positions, in order
  uint32_t n_run = 0;  // of states: the last position whose rows ran, though not all are done
  std::vector<uint32_t> n_sent;  // of these, how many the device's page table has
  uint32_t n_prompt = 0;         // of the tokens: read as a prompt, not generated
  uint32_t n_from_disk = 0;      // of the positions: taken over from there when it began
  PrefixEnd prefix_end = PrefixEnd::untold;
  uint32_t n_exact = kNone;             // positions behind these were moved; see MovedPositions
  std::array<uint32_t, 3> parted = {};  // 0: none
  // Of a text that ended: tokens behind `tokens` that were generated, and not read as a prompt yet.
  std::vector<uint32_t> unread;
  bool is_stored = false;  // likewise: the disk has all of it that it takes
};

// Whether a text's pages of the group are those of its window of speech; see EncodedWindows.
inline bool is_of_window(const Sequence& sequence, const GroupShape& shape) {
  return sequence.key.window != 0 && shape.is_cross();
}

// Positions that were computed by prompt kernels; any other prompt can reuse them.
inline uint32_t n_shared(const Sequence& sequence) {
  return std::min({sequence.n_done, sequence.n_prompt, sequence.n_exact});
}

inline uint32_t common_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

inline bool has_images(const Sequence& sequence) {
  return std::ranges::any_of(sequence.tokens,
                             [](uint32_t token) { return token >= kFirstNoToken; });
}

class SequenceStore {
 public:
  // `context`: positions per sequence.
  SequenceStore(const std::shared_ptr<Device>& device, uint32_t n_sequences, uint32_t context,
                std::span<const GroupShape> groups);

  static uint64_t bytes(uint32_t n_sequences, uint32_t context, std::span<const GroupShape> groups);
  // Of one sequence, what the host writes; logprobs only the device does.
  static uint64_t update_bytes(uint32_t context, std::span<const GroupShape> groups);

  uint32_t n_sequences() const { return n_sequences_; }
  uint32_t context() const { return context_; }
  uint32_t log_stride() const { return context_ + 1; }  // room for the token picked last
  uint32_t page_table_stride() const { return page_table_stride_; }
  uint32_t page_table_base(uint32_t group) const {
    return group * n_sequences_ * page_table_stride();
  }

  const Buffer& tokens() const { return tokens_.get(); }
  const Buffer& pages() const { return pages_.get(); }
  const Buffer& records() const { return records_.get(); }
  const Buffer& options() const { return options_.get(); }
  const Buffer& logprobs() const { return logprobs_.get(); }

  // A free slot, or nothing.
  std::optional<uint32_t> take();
  // Frees a slot and returns what it held.
  Sequence release(uint32_t slot);

  bool is_used(uint32_t slot) const { return slots_[slot].used; }
  Sequence& operator[](uint32_t slot) { return slots_[slot].sequence; }
  const Sequence& operator[](uint32_t slot) const { return slots_[slot].sequence; }

  // Where the device has a slot's data, which is to be sent before the step that needs it.
  Binding page_table(uint32_t group, uint32_t slot, uint32_t first_page = 0) const;
  Binding log(uint32_t slot, uint32_t position) const;
  Binding record(uint32_t slot) const;
  Binding options(uint32_t slot) const;
  Binding logprobs(uint32_t slot, uint32_t place) const;

 private:
  struct Slot {
    bool used = false;
    Sequence sequence;
  };
  uint32_t n_sequences_;
  uint32_t context_;
  uint32_t page_table_stride_;
  OwnedBuffer tokens_;    // uint32 [n_sequences, log_stride]
  OwnedBuffer pages_;     // uint32 [n_groups, n_sequences, page_table_stride]
  OwnedBuffer records_;   // SequenceRecord [n_sequences]
  OwnedBuffer options_;   // uint32 [n_sequences, kMaxOptionWords]
  OwnedBuffer logprobs_;  // TokenLogprobs [n_sequences, kLogprobPlaces]
  std::vector<Slot> slots_;
};

}  // namespace akunu
