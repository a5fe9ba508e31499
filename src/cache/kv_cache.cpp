#include "cache/kv_cache.h"

#include <algorithm>
#include <cassert>

namespace akunu {

PagePool::PagePool(uint32_t n_pages) : references_(n_pages, 0) {
  free_.reserve(n_pages);
  for (uint32_t page = n_pages; page > 0; --page) free_.push_back(page - 1);
}

bool PagePool::take(std::span<uint32_t> pages) {
  if (pages.size() > free_.size()) return false;
  for (uint32_t& page : pages) {
    page = free_.back();
    free_.pop_back();
    references_[page] = 1;
  }
  return true;
}

void PagePool::share(uint32_t page) {
  assert(references_[page] > 0);
  ++references_[page];
}

void PagePool::release(uint32_t page) {
  assert(references_[page] > 0);
  if (--references_[page] == 0) free_.push_back(page);
}

namespace {

// Of the groups that are of this kind, the caches of their layers; empty where none is.
template <class IsOfKind>
std::vector<LayerCache> without_memory(std::span<const GroupShape> groups,
                                       const IsOfKind& is_of_kind) {
  std::vector<LayerCache> layers;
  for (uint32_t group = 0; group < groups.size(); ++group) {
    if (!is_of_kind(groups[group])) continue;
    for (const LayerShape& shape : groups[group].layers) {
      layers.resize(std::max(layers.size(), size_t{shape.layer} + 1));
      layers[shape.layer] = {{}, {}, groups[group].format, group};
    }
  }
  return layers;
}

}  // namespace

std::vector<LayerCache> layers_without_memory(const ArchDescriptor& arch,
                                              std::span<const GroupShape> groups) {
  std::vector<LayerCache> layers = without_memory(
      groups, [](const GroupShape& shape) { return !shape.is_cross() && !shape.has_states(); });
  layers.resize(arch.layers.size());
  for (size_t i = 0; i < layers.size(); ++i)
    if (const std::optional<uint32_t> source = arch.layers[i].kv_from())
      layers[i] = layers[*source];
  return layers;
}

std::vector<LayerCache> states_without_memory(std::span<const GroupShape> groups) {
  return without_memory(groups, [](const GroupShape& shape) { return shape.has_states(); });
}

std::vector<LayerCache> cross_without_memory(std::span<const GroupShape> groups) {
  return without_memory(groups, [](const GroupShape& shape) { return shape.is_cross(); });
}

KvCache::KvCache(const std::shared_ptr<Device>& device, const ArchDescriptor& arch,
                 std::span<const GroupShape> groups, std::span<const uint32_t> n_pages)
    : device_(device),
      layers_(layers_without_memory(arch, groups)),
      states_(states_without_memory(groups)),
      cross_(cross_without_memory(groups)) {
  for (size_t group = 0; group < groups.size(); ++group) {
    groups_.push_back({groups[group], PagePool(n_pages[group])});
    for (const LayerShape& shape : groups[group].layers) {
      std::vector<LayerCache>& layers = groups[group].is_cross()     ? cross_
                                        : groups[group].has_states() ? states_
                                                                     : layers_;
      LayerCache& layer = layers[shape.layer];
      for (Binding* binding : {&layer.keys, &layer.values}) {
        const bool is_value = binding == &layer.values;
        if (is_value && !shape.has_values()) continue;
        buffers_.emplace_back(device, n_pages[group] * shape.pool_page_bytes(is_value), "cache");
        *binding = buffers_.back().binding();
      }
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i)
    if (const std::optional<uint32_t> source = arch.layers[i].kv_from())
      layers_[i] = layers_[*source];
}

Format KvCache::format() const {
  for (const CacheGroup& group : groups_)
    if (group.shape.is_of_attention()) return group.shape.format;
  return Format::f16;
}

void KvCache::copy_positions(uint32_t group, uint32_t from_page, uint32_t to_page,
                             uint32_t n_positions) {
  std::vector<Copy> copies;
  for (const LayerShape& shape : groups_[group].shape.layers) {
    const LayerCache& layer = layers_of(groups_[group].shape)[shape.layer];
    for (const bool is_value : {false, true}) {
      const Binding& memory = is_value ? layer.values : layer.keys;
      if (!memory) continue;
      const uint64_t position_bytes = shape.position_bytes(is_value);
      // Whole words: what is copied behind the last position still lies in the page.
      const uint64_t n_bytes =
          (std::min(n_positions, shape.n_positions) * position_bytes + 3) / 4 * 4;
      const auto offset = [&](uint32_t page, uint32_t head) {
        return (uint64_t{page} * shape.n_heads + head) * shape.n_positions * position_bytes;
      };
      for (uint32_t head = 0; head < shape.n_heads; ++head)
        copies.push_back({{memory.buffer, memory.offset + offset(from_page, head)},
                          {memory.buffer, memory.offset + offset(to_page, head)},
                          n_bytes});
    }
  }
  device_->copy(copies);
}

}  // namespace akunu
