#include "cache/saved_positions.h"

#include <algorithm>
#include <utility>

#include "cache/kv_cache.h"

namespace akunu {
namespace {

// Calls `run(memory, n_bytes)` for every stretch of a page that lies in one piece, in their order.
template <class Run>
void for_each_stretch(const KvCache& cache, uint32_t group, uint32_t page, uint32_t n_positions,
                      const Run& run) {
  const GroupShape& of_group = cache.groups()[group].shape;
  const std::vector<LayerCache>& layers = cache.layers_of(of_group);
  for (const LayerShape& shape : of_group.layers) {
    const LayerCache& layer = layers[shape.layer];
    const bool is_whole = n_positions == shape.n_positions;
    const uint32_t n_stretches = is_whole ? 1 : shape.n_heads;
    for (const bool is_value : {false, true}) {
      const Binding& memory = is_value ? layer.values : layer.keys;
      if (!memory) continue;  // values that are part of the keys
      const uint64_t n_bytes =
          uint64_t{is_whole ? shape.n_heads : 1} * n_positions * shape.position_bytes(is_value);
      const uint64_t of_page = shape.pool_page_bytes(is_value);
      for (uint32_t i = 0; i < n_stretches; ++i)
        run(Binding{memory.buffer, memory.offset + page * of_page + i * (of_page / n_stretches)},
            n_bytes);
    }
  }
}

std::span<std::byte> take(std::span<std::byte>& from, uint64_t n) {
  return std::exchange(from, from.subspan(n)).first(n);
}
std::span<const std::byte> take(std::span<const std::byte>& from, uint64_t n) {
  return std::exchange(from, from.subspan(n)).first(n);
}

}  // namespace

// As the kernels have it, the state after p positions, and the inputs of position p, are at p modulo the number of
// places.
void clear_unset_states(const GroupShape& shape, uint32_t n, std::span<std::byte> page) {
  const auto clear = [](std::span<std::byte> places, uint32_t n_places, auto&& is_set) {
    const uint64_t n_bytes = places.size() / n_places;
    for (uint32_t i = 0; i < n_places; ++i)
      if (!is_set(i)) std::ranges::fill(places.subspan(i * n_bytes, n_bytes), std::byte{0});
  };
  const uint32_t n_states = std::get<StateCache>(shape.kind).n_kept;
  for (const LayerShape& layer : shape.layers) {
    clear(take(page, layer.pool_page_bytes(false)), n_states,
          [&](uint32_t i) { return n >= n_states || (i > 0 && i <= n); });
    if (const std::span<std::byte> inputs = take(page, layer.pool_page_bytes(true));
        !inputs.empty())
      clear(inputs, layer.n_kept_inputs, [&](uint32_t i) { return i < n; });
  }
}

uint64_t saved_page_bytes(const GroupShape& group, uint32_t n_positions) {
  if (group.has_states()) n_positions = 1;
  uint64_t bytes = 0;
  for (const LayerShape& layer : group.layers)
    bytes += uint64_t{layer.n_heads} * n_positions * (layer.key_bytes + layer.value_bytes);
  return bytes;
}

uint64_t saved_bytes(std::span<const GroupShape> groups, std::span<const uint32_t> first_entries,
                     uint32_t n) {
  uint64_t bytes = 0;
  for (size_t group = 0; group < groups.size(); ++group)
    for (uint32_t entry = first_entries[group]; entry < saved_entries(groups[group], n); ++entry)
      bytes += saved_page_bytes(groups[group], saved_of(groups[group], entry, n));
  return bytes;
}

std::vector<uint32_t> first_entries_to_save(std::span<const GroupShape> groups, uint32_t n) {
  std::vector<uint32_t> entries;
  const uint32_t back = n - std::min(n, kPagePositions);
  for (const GroupShape& group : groups) entries.push_back(group.needed(back, n).first);
  return entries;
}

void KvCache::read_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                             std::span<std::byte> into) const {
  for_each_stretch(*this, group, page, n_positions, [&](const Binding& memory, uint64_t n_bytes) {
    device_->read(memory, take(into, n_bytes));
  });
}

void KvCache::write_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                              std::span<const std::byte> from) {
  for_each_stretch(*this, group, page, n_positions, [&](const Binding& memory, uint64_t n_bytes) {
    device_->write(memory, take(from, n_bytes));
  });
}

}  // namespace akunu
