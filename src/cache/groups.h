// Cache groups: layers that keep the same positions of a text share page numbers, a page table and a
// pool. What is kept depends on the group's kind. Each kind is a small type that answers the same
// questions; Pages asks all groups of a model and takes the smallest answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/arch.h"
#include "core/format.h"
#include "core/kernel_params.h"

namespace akunu {

constexpr uint32_t kNoPage = 0xffffffff;  // of an entry that holds none

// Pages that `positions` positions need.
constexpr uint32_t pages_for(uint64_t positions) {
  return static_cast<uint32_t>((positions + kPagePositions - 1) / kPagePositions);
}

// A run of entries of a page table. Entry n is that of positions [256 n, 256 (n + 1)).
struct Entries {
  uint32_t first = 0;
  uint32_t end = 0;
  bool contains(uint32_t entry) const { return first <= entry && entry < end; }
  bool operator==(const Entries&) const = default;
};

// What a text has of a group.
struct Held {
  std::span<const uint32_t> pages;        // by entry; kNoPage where one has gone
  uint32_t n_done = 0;                    // positions that are computed
  std::span<const uint32_t> checkpoints;  // of states: the positions after which they were copied
  uint32_t n_run =
      0;  // positions whose rows ran, though what they chose was not used: at least n_done
};

// The questions are those of FullCache, where they are explained.

// Rows see every position before them.
struct FullCache {
  // Entries that rows at positions [n_done, n_positions) read or write.
  Entries needed(uint32_t n_done, uint32_t n_positions) const;
  // Whether no row from n_done on needs the entry.
  bool may_go(uint32_t, uint32_t) const { return false; }
  // Entries that another text shares which takes over n positions; what else it needs is copied.
  Entries lent(uint32_t n) const { return {0, n / kPagePositions}; }
  // The longest prefix, of at most `most` positions, behind which a text can go on with what is
  // there: how much another one can take over, and how far this one can rewind.
  uint32_t reusable(const Held& held, uint32_t most) const;
  // Pages that one text needs at a time, on its way to n_positions in steps of at most n_rows.
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const;
  // Positions for which so many entries suffice.
  uint64_t covered(size_t n_entries) const { return uint64_t{kPagePositions} * n_entries; }

  // A short text needs fewer pages.
  static constexpr bool kGrows = true;
  // Pages of an old text go from its end: what is before them is of use without them.
  static constexpr bool kGoesFromEnd = true;
  // Tokens alone say what is in the pages, so that a text that begins alike can have them.
  static constexpr bool kIsShared = true;
  bool operator==(const FullCache&) const = default;
};

// A row sees the last `window` positions, its own included.
struct WindowCache {
  uint32_t window = 0;

  Entries needed(uint32_t n_done, uint32_t n_positions) const;
  bool may_go(uint32_t n_done, uint32_t entry) const {
    return entry < needed(n_done, n_done).first;
  }
  Entries lent(uint32_t n) const { return {needed(n, n).first, n / kPagePositions}; }
  uint32_t reusable(const Held& held, uint32_t most) const;
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const;
  uint64_t covered(size_t n_entries) const { return uint64_t{kPagePositions} * n_entries; }
  static constexpr bool kGrows = true;
  static constexpr bool kGoesFromEnd = false;  // what comes last is what the next row sees
  static constexpr bool kIsShared = true;
  bool operator==(const WindowCache&) const = default;
};

// Inputs of a convolution: a row sees those of the last `window` positions, its own included.
struct InputCache : WindowCache {
  bool operator==(const InputCache&) const = default;
};

// A state of fixed size, which every row changes (recurrent layers), and the last inputs of the convolution in front.
// Entry 0 has it as it was after each of the last `n_kept` positions that ran; a row at position 0 reads none.
// Entry 1 + i is a copy of that as it was after `checkpoints[i]` positions: to anywhere else there is no way back.
struct StateCache {
  uint32_t n_checkpoints = 0;  // that a text keeps, at most
  uint32_t n_kept = 1;         // states of an entry

  // The entry that has the state after n positions; nothing: none has.
  std::optional<uint32_t> entry_of(const Held& held, uint32_t n) const;
  Entries needed(uint32_t, uint32_t) const { return {0, 1}; }
  bool may_go(uint32_t, uint32_t entry) const { return entry > 0; }
  Entries lent(uint32_t) const { return {}; }
  uint32_t reusable(const Held& held, uint32_t most) const;
  uint32_t most_pages(uint32_t, uint32_t) const { return 1 + n_checkpoints; }
  uint64_t covered(size_t n_entries) const { return n_entries > 0 ? UINT64_MAX : 0; }
  static constexpr bool kGrows = false;
  static constexpr bool kGoesFromEnd = true;
  static constexpr bool kIsShared = true;
  bool operator==(const StateCache&) const = default;
};

// Positions of an encoder, written once before the first row, which all rows see.
struct CrossCache {
  uint32_t n_positions = 0;

  Entries needed(uint32_t, uint32_t) const { return {0, pages_for(n_positions)}; }
  bool may_go(uint32_t, uint32_t) const { return false; }
  Entries lent(uint32_t n) const { return n > 0 ? needed(n, n) : Entries{}; }
  uint32_t reusable(const Held& held, uint32_t most) const;
  uint32_t most_pages(uint32_t, uint32_t) const { return pages_for(n_positions); }
  uint64_t covered(size_t n_entries) const {
    return n_entries >= pages_for(n_positions) ? UINT64_MAX : 0;
  }
  static constexpr bool kGrows = false;
  static constexpr bool kGoesFromEnd = true;
  // Of two texts that begin alike each has its own input: only a text that steps back finds its own.
  static constexpr bool kIsShared = false;
  bool operator==(const CrossCache&) const = default;
};

using CacheKind = std::variant<FullCache, WindowCache, InputCache, StateCache, CrossCache>;

// For people: "full", "window 512", "inputs 3", "states", "encoder". Of a model's groups each has another one.
std::string name_of(const CacheKind& kind);

// One layer's part of a page: [n_heads][n_positions] rows of `key_bytes`, of the keys, and of
// `value_bytes`, of the values.
struct LayerShape {
  uint32_t layer = 0;
  uint32_t n_heads = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;  // 0: values are part of the keys
  // 1 of states, which are copied as a whole: beside all of them, in the place of keys, lie the inputs of
  // the convolution.
  uint32_t n_positions = kPagePositions;
  uint32_t n_kept_inputs = 0;  // of states: of so many positions

  bool has_values() const { return value_bytes > 0; }
  uint64_t position_bytes(bool is_value) const { return is_value ? value_bytes : key_bytes; }
  // Of one of the two; and of both.
  uint64_t pool_page_bytes(bool is_value) const {
    return uint64_t{n_heads} * n_positions * position_bytes(is_value);
  }
  uint64_t page_bytes() const { return pool_page_bytes(false) + pool_page_bytes(true); }
};

struct GroupShape {
  CacheKind kind;
  Format format = Format::f16;  // of values; keys: format_of_keys
  std::vector<LayerShape> layers;

  uint64_t page_bytes() const;  // of one page in all layers
  // Whether it is of keys and values, or of latents, in the format that was asked for.
  bool is_of_attention() const {
    return !std::holds_alternative<InputCache>(kind) && !has_states();
  }
  bool is_cross() const { return std::holds_alternative<CrossCache>(kind); }
  bool has_states() const { return std::holds_alternative<StateCache>(kind); }
  // Asks a question of whatever kind it is: ask([](const auto& kind) { return kind.needed(3, 4); })
  template <class Question>
  auto ask(Question&& question) const {
    return std::visit(question, kind);
  }
  Entries needed(uint32_t n_done, uint32_t n_positions) const {
    return ask([&](const auto& each) { return each.needed(n_done, n_positions); });
  }
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const {
    return ask([&](const auto& each) { return each.most_pages(n_positions, n_rows); });
  }
};

// Entries that a page table needs per text and group.
uint32_t table_entries(std::span<const GroupShape> groups, uint32_t context);

// The cache groups of a model: layers whose caches have the same kind form one group. Keys, values and latents have
// `format`; inputs of convolutions are F32, whatever it is. Groups are in the order of their first layers; the last one
// is what an encoder of audio made for each of them. A model that is an encoder has no groups. A layer that shares
// another layer's keys and values belongs to no group; one that attends and scans to two. Throws ModelFormatError if
// the layer that it names has no cache, or one of another shape; ArgumentError where the format has blocks that do not
// fit.
std::vector<GroupShape> cache_groups(const ArchDescriptor& arch, Format format);

}  // namespace akunu
