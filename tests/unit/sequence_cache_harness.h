// A SequenceCache on a device of its own, with a model of what its pages must hold: for each position a
// number that stands for everything that its keys and values depend on.
#pragma once

#include <cstring>
#include <set>

#include "cache/sequence_cache.h"
#include "registry.h"
#include "unit/check.h"

namespace akunu::test {

constexpr uint32_t kPages = 6;
constexpr uint32_t kSlots = 4;
constexpr uint32_t kHeadDim = 2;
constexpr uint32_t kHeads = 2;
constexpr uint32_t kRows = 64;  // of a step

// Given as the window of a group, it makes the group one of recurrent layers, which have states.
constexpr uint32_t kOfStates = kNone - 1;
constexpr uint32_t kSeen = 3;  // inputs of a convolution that a row of these sees before its own

// Two layers of each window; 0: they see everything.
inline ArchDescriptor layers_of(const std::vector<uint32_t>& windows) {
  ArchDescriptor arch;
  for (size_t i = 0; i < 2 * windows.size(); ++i) {
    LayerDescriptor layer;
    const uint32_t window = windows[i % windows.size()];
    if (window == kOfStates)
      layer.mixer = Scan{.n_heads = 1, .head_dim = 1, .state_dim = 1, .width = kSeen + 1};
    else
      layer.mixer = Attention{
          .n_heads = kHeads, .n_kv_heads = kHeads, .head_dim = kHeadDim, .window = window};
    arch.layers.push_back(layer);
  }
  return arch;
}

// For each position a number that stands for what its keys and values depend on: all tokens up to it,
// and where the prompt ended, if it was generated.
inline std::vector<uint32_t> histories(std::span<const uint32_t> tokens, uint32_t n_prompt) {
  std::vector<uint32_t> hashes;
  uint32_t hash = 2166136261u;  // FNV
  for (const uint32_t token : tokens) {
    if (hashes.size() == n_prompt) hash ^= n_prompt;
    hashes.push_back(hash = (hash ^ token) * 16777619u);
  }
  return hashes;
}

// Of a text that begins with these tokens, of which the first are a prompt (default: all).
inline Beginning beginning(uint64_t id, const std::vector<uint32_t>& tokens, uint32_t n_positions,
                           uint32_t most_reused, uint32_t n_prompt = kNone) {
  return {.id = id,
          .key = {},
          .tokens = tokens,
          .n_prompt = std::min(n_prompt, static_cast<uint32_t>(tokens.size())),
          .n_positions = n_positions,
          .most_reused = most_reused};
}

class Harness {
 public:
  explicit Harness(bool keep = true, uint32_t n_pages = kPages)
      : Harness({0}, {n_pages}, n_pages, keep) {}
  // A group for each window, with so many pages.
  Harness(const std::vector<uint32_t>& windows, const std::vector<uint32_t>& n_pages,
          uint32_t context_pages, bool keep = true)
      : arch_(layers_of(windows)),
        device_(create_device("cpu", {.threads = 1})),
        pages_(device_, arch_, cache_groups(arch_, Format::f32), n_pages),
        store_(device_, kSlots, context_pages * kPagePositions, cache_groups(arch_, Format::f32)),
        cache_(pages_, store_, kRows, keep) {}

  SequenceCache& cache() { return cache_; }
  SequenceStore& store() { return store_; }
  const GroupShape& shape(uint32_t group) { return pages_.groups()[group].shape; }
  PagePool& pool(uint32_t group = 0) { return pages_.groups()[group].pages; }
  uint32_t n_groups() const { return static_cast<uint32_t>(pages_.groups().size()); }

  // Runs tokens [n_done, n) of a sequence, step after step; false where there are no more pages.
  bool run(uint32_t slot, uint32_t n) {
    Sequence& sequence = store_[slot];
    const std::vector<uint32_t> hashes = histories(sequence.tokens, sequence.n_prompt);
    while (sequence.n_done < n) {
      const uint32_t end = std::min(n, sequence.n_done + kRows);
      if (!cache_.sequences.extend(slot, end)) return false;
      check(cache_.sequences.covered(slot) >= end,
            "pages that were given cover what they were asked for");
      const auto write = [&](const Binding& at, float number) {
        device_->write(at, std::as_bytes(std::span(&number, 1)));
      };
      for (uint32_t group = 0; group < n_groups(); ++group)
        for (uint32_t position = sequence.n_done; position < end; ++position)
          if (shape(group).has_states()) {
            each_input(sequence, group, position, hashes, write);
            each_state(sequence, group, position + 1, hashes, write);
          } else {
            each_number(sequence, group, position, hashes, write);
          }
      cache_.sequences.done(slot, end);
    }
    return true;
  }

  // Whether all that a row would read that comes next is what was computed from its own tokens.
  bool holds_its_own(uint32_t slot) {
    bool same = true;
    const Sequence& sequence = store_[slot];
    const std::vector<uint32_t> hashes = histories(sequence.tokens, sequence.n_prompt);
    const auto compare = [&](const Binding& at, float expected) {
      float found = 0;
      device_->read(at, std::as_writable_bytes(std::span(&found, 1)));
      same = same && found == expected;
    };
    const uint32_t n = sequence.n_done;
    for (uint32_t group = 0; group < n_groups(); ++group) {
      if (shape(group).has_states()) {
        if (n > 0) each_state(sequence, group, n, hashes, compare);
        for (uint32_t position = n - std::min(kSeen, n); position < n; ++position)
          each_input(sequence, group, position, hashes, compare);
        continue;
      }
      const auto* kind = std::get_if<WindowCache>(&shape(group).kind);
      const uint32_t window = kind ? kind->window : n + 1;
      for (uint32_t position = n + 1 - std::min(window, n + 1); position < n; ++position)
        each_number(sequence, group, position, hashes, compare);
    }
    return same;
  }

  // Pages that sequences under way cannot do without, each counted once.
  uint32_t n_needed(uint32_t group = 0) {
    std::set<uint32_t> pages;
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (!store_.is_used(slot)) continue;
      const Sequence& sequence = store_[slot];
      const uint32_t first = shape(group).needed(sequence.n_done, sequence.n_done).first;
      const size_t n = sequence.pages[group].size();
      const size_t end =
          shape(group).has_states() ? std::min<size_t>(n, 1) : n;  // checkpoints may go
      for (uint32_t entry = first; entry < end; ++entry) pages.insert(sequence.pages[group][entry]);
    }
    return static_cast<uint32_t>(pages.size());
  }
  bool is_full() {
    for (uint32_t group = 0; group < n_groups(); ++group)
      if (n_needed(group) == pool(group).n_pages()) return true;
    return false;
  }

  bool counts_are_right() {
    for (uint32_t group = 0; group < n_groups(); ++group) {
      uint32_t n_used = 0;
      for (uint32_t page = 0; page < pool(group).n_pages(); ++page)
        n_used += pool(group).references(page) > 0;
      if (n_used + pool(group).n_free() != pool(group).n_pages()) return false;
      const PageCounts counts = cache_.pages.count(group);
      if (counts.needed != n_needed(group) || counts.needed + counts.spare != n_used) return false;
    }
    return true;
  }

 private:
  template <class Use>
  void each_number(const Sequence& sequence, uint32_t group, uint32_t position,
                   std::span<const uint32_t> hashes, Use&& use) {
    const uint64_t page = sequence.pages[group][position / kPagePositions];
    if (page == kNoPage) return check(false, "what a row reads has a page");
    for (const LayerShape& layer : shape(group).layers)
      for (uint32_t head = 0; head < kHeads; ++head)
        for (const bool is_value : {false, true}) {
          const LayerCache& memory = pages_.layers()[layer.layer];
          Binding at = is_value ? memory.values : memory.keys;
          const uint64_t row = (page * kHeads + head) * kPagePositions + position % kPagePositions;
          at.offset += (row * kHeadDim + kHeadDim - 1) * sizeof(float);
          const uint32_t place = layer.layer * 4 + head * 2 + is_value;
          use(at, static_cast<float>(((hashes[position] ^ (place << 24)) >> 8)));
        }
  }

  // Of each layer the state after n positions: what stands for them all.
  template <class Use>
  void each_state(const Sequence& sequence, uint32_t group, uint32_t n,
                  std::span<const uint32_t> hashes, Use&& use) {
    for (const LayerShape& layer : shape(group).layers) {
      Binding at = pages_.states()[layer.layer].keys;
      constexpr uint32_t kStates = RecurrentState::kKept;
      at.offset += (sequence.pages[group][0] * kStates + n % kStates) * sizeof(float);
      use(at, static_cast<float>((hashes[n - 1] ^ (layer.layer << 28)) >> 8));
    }
  }
  // And the input at a position: what stands for it.
  template <class Use>
  void each_input(const Sequence& sequence, uint32_t group, uint32_t position,
                  std::span<const uint32_t> hashes, Use&& use) {
    for (const LayerShape& layer : shape(group).layers) {
      Binding at = pages_.states()[layer.layer].values;
      const uint32_t n_kept = layer.n_kept_inputs;
      at.offset += (sequence.pages[group][0] * n_kept + position % n_kept) * sizeof(float);
      use(at, static_cast<float>((hashes[position] ^ (layer.layer << 24)) >> 8));
    }
  }

  ArchDescriptor arch_;
  std::shared_ptr<Device> device_;
  KvCache pages_;
  SequenceStore store_;
  SequenceCache cache_;
};

inline std::vector<uint32_t> tokens_of(uint32_t n_shared, uint32_t n, uint32_t seed) {
  std::vector<uint32_t> tokens(n);
  for (uint32_t i = 0; i < n; ++i) tokens[i] = i < n_shared ? i : i + 1000 * (seed + 1);
  return tokens;
}

inline uint32_t size_of(std::span<const uint32_t> tokens) {
  return static_cast<uint32_t>(tokens.size());
}

// How many positions a sequence of these tokens takes over; it ends again.
inline uint32_t n_reused(Harness& harness, const std::vector<uint32_t>& tokens) {
  const auto slot = harness.cache().sequences.begin(beginning(99, tokens, size_of(tokens), kNone));
  if (!slot) return kNone;
  const uint32_t n = harness.store()[*slot].n_done;
  check(harness.holds_its_own(*slot), "what is taken over is what the tokens stand for");
  harness.cache().sequences.discard(*slot);
  return n;
}

// Reads the unread text that was used last; how many positions it took over, or kNone.
inline uint32_t read_one(Harness& harness) {
  const std::optional<Unread> unread = harness.cache().prefixes.take_unread();
  if (!unread) return kNone;
  const uint32_t n = size_of(unread->tokens);
  const auto slot =
      harness.cache().sequences.begin(beginning(unread->id, unread->tokens, n, kNone));
  if (!slot) return kNone;
  const uint32_t n_reused = harness.store()[*slot].n_done;
  check(harness.holds_its_own(*slot), "what is read goes on from what was read");
  harness.run(*slot, n);
  harness.cache().sequences.end(*slot, kNone);
  return n_reused;
}

inline uint32_t run_text(Harness& harness, uint64_t id, const std::vector<uint32_t>& tokens) {
  const auto slot = harness.cache().sequences.begin(beginning(id, tokens, size_of(tokens), kNone));
  check(slot.has_value() && harness.run(*slot, size_of(tokens)), "there is room");
  return *slot;
}

inline std::vector<GroupShape> shapes_of(Harness& harness) {
  std::vector<GroupShape> shapes;
  for (uint32_t group = 0; group < harness.n_groups(); ++group)
    shapes.push_back(harness.shape(group));
  return shapes;
}

// What a text has done, as a file would have it.
inline SavedPositions saved_of(Harness& harness, uint32_t slot) {
  const uint32_t n = harness.store()[slot].n_done;
  SavedPositions saved{first_entries_to_save(shapes_of(harness), n), {}};
  saved.bytes.resize(saved_bytes(shapes_of(harness), saved.first_entries, n));
  harness.cache().copies.read(slot, saved);
  check(saved.bytes.size() == saved_bytes(shapes_of(harness), saved.first_entries, n),
        "there are as many bytes as the first entries say");
  return saved;
}

}  // namespace akunu::test
