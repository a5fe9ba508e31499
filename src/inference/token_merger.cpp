#include "inference/token_merger.h"

#include <algorithm>
#include <queue>
#include <set>

namespace akunu {
namespace {

// Bytes of the UTF-8 character that begins with this one; 1 for what is none.
size_t character_length(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return length <= bytes.size() ? length : 1;
}

// A neighbour of the pieces so far: the piece that begins at `left`, joined with the next one.
struct Pair {
  uint32_t rank;
  uint32_t left;
  uint32_t token;
  size_t end;
  bool operator<(const Pair& other) const {  // the best is on top: first rank, then place
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

struct Piece {
  size_t begin, end;
  uint32_t token;
  uint32_t before, next;
  bool is_gone = false;
};

}  // namespace

TokenMerger::TokenMerger(std::span<const Entry> entries, bool by_character)
    : entries_(entries.begin(), entries.end()), by_character_(by_character) {
  std::set<size_t, std::greater<>> lengths;
  ids_.reserve(entries_.size());
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    const Entry& entry = entries_[id];
    if (entry.bytes.empty()) continue;
    if (entry.is_whole) {
      whole_.emplace(entry.bytes, id);
      lengths.insert(entry.bytes.size());
      continue;
    }
    const auto [place, is_new] = ids_.emplace(entry.bytes, id);
    // A byte may be a token twice, as itself and as the byte of a character without a token.
    if (!is_new && entry.rank < entries_[place->second].rank) place->second = id;
  }
  whole_lengths_.assign(lengths.begin(), lengths.end());
}

uint32_t TokenMerger::find(std::string_view bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? kNone : found->second;
}

uint32_t TokenMerger::whole_at(std::string_view bytes) const {
  for (const size_t length : whole_lengths_) {
    if (length > bytes.size()) continue;
    if (const auto found = whole_.find(bytes.substr(0, length)); found != whole_.end())
      return found->second;
  }
  return kNone;
}

void TokenMerger::tokens_of(std::string_view bytes, std::vector<uint32_t>& out) const {
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const uint32_t whole = whole_.empty() ? kNone : whole_at(bytes.substr(i));
    if (whole == kNone) {
      ++i;
      continue;
    }
    merge(bytes.substr(begin, i - begin), out);
    out.push_back(whole);
    begin = i += entries_[whole].bytes.size();
  }
  merge(bytes.substr(begin), out);
}

void TokenMerger::merge(std::string_view bytes, std::vector<uint32_t>& out) const {
  std::vector<Piece> pieces;
  const auto add = [&](size_t begin, size_t end, uint32_t token) {
    const auto index = static_cast<uint32_t>(pieces.size());
    pieces.push_back({begin, end, token, index - 1, index + 1});
  };
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = by_character_ ? character_length(bytes.substr(i)) : 1;
    if (const uint32_t token = find(bytes.substr(i, length)); token != kNone || length == 1) {
      add(i, i + length, token);
    } else {
      for (size_t j = i; j < i + length; ++j) add(j, j + 1, find(bytes.substr(j, 1)));
    }
    i += length;
  }
  std::priority_queue<Pair> pairs;
  const auto look_at = [&](uint32_t left) {
    const Piece& piece = pieces[left];
    if (piece.next >= pieces.size()) return;
    const size_t end = pieces[piece.next].end;
    const uint32_t token = find(bytes.substr(piece.begin, end - piece.begin));
    if (token != kNone && entries_[token].rank != kNone)
      pairs.push({entries_[token].rank, left, token, end});
  };
  for (uint32_t i = 0; i < pieces.size(); ++i) look_at(i);
  while (!pairs.empty()) {
    const Pair best = pairs.top();
    pairs.pop();
    Piece& left = pieces[best.left];
    if (left.is_gone || left.next >= pieces.size() || pieces[left.next].end != best.end) continue;
    Piece& right = pieces[left.next];
    right.is_gone = true;
    left.end = right.end;
    left.token = best.token;
    left.next = right.next;
    if (left.next < pieces.size()) pieces[left.next].before = best.left;
    look_at(best.left);
    if (left.before < pieces.size()) look_at(left.before);
  }
  for (const Piece& piece : pieces)
    if (!piece.is_gone && piece.token != kNone) out.push_back(piece.token);
}

}  // namespace akunu
