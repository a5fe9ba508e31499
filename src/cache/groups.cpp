#include "cache/groups.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

CacheKind kind_of(const LayerDescriptor& layer) {
  if (layer.window > 0) return WindowCache{layer.window};
  return FullCache{};
}

void check_source(const ArchDescriptor& arch, uint32_t index) {
  const LayerDescriptor& layer = arch.layers[index];
  const std::string who = "layer " + std::to_string(index) +
                          " reads the keys and values of layer " + std::to_string(*layer.kv_from);
  if (*layer.kv_from >= index || arch.layers[*layer.kv_from].kv_from)
    throw ModelFormatError(who + ", which does not have its own before it");
  const LayerDescriptor& source = arch.layers[*layer.kv_from];
  if (layer.n_kv_heads != source.n_kv_heads || layer.head_dim != source.head_dim)
    throw ModelFormatError(who + ", whose heads are others");
  if (source.window != 0 && (layer.window == 0 || layer.window > source.window))
    throw ModelFormatError(who + ", which keeps only " + std::to_string(source.window) +
                           " positions of them");
}

}  // namespace

Entries FullCache::needed(uint32_t, uint32_t n_positions) const {
  return {0, pages_for(n_positions)};
}

uint32_t FullCache::reusable(std::span<const uint32_t> pages, uint32_t most) const {
  const auto n_pages = static_cast<uint32_t>(std::ranges::find(pages, kNoPage) - pages.begin());
  return std::min(most, n_pages * kPagePositions);
}

uint32_t FullCache::most_pages(uint32_t n_positions, uint32_t) const {
  return pages_for(n_positions);
}

Entries WindowCache::needed(uint32_t n_done, uint32_t n_positions) const {
  const uint32_t first_seen = n_done < window ? 0 : n_done + 1 - window;
  return {first_seen / kPagePositions, pages_for(n_positions)};
}

uint32_t WindowCache::reusable(std::span<const uint32_t> pages, uint32_t most) const {
  uint32_t n = std::min<uint32_t>(most, static_cast<uint32_t>(pages.size()) * kPagePositions);
  while (n > 0) {
    const Entries entries = needed(n, n);
    uint32_t end = entries.end;
    while (end > entries.first && pages[end - 1] != kNoPage) --end;
    if (end <= entries.first) break;
    n = (end - 1) * kPagePositions;  // before the page that is not there
  }
  return n;
}

uint32_t WindowCache::most_pages(uint32_t n_positions, uint32_t n_rows) const {
  // The first row sees window - 1 positions before its own, and they may lie across pages anyhow.
  return std::min(pages_for(n_positions), pages_for(uint64_t{window} + n_rows - 2) + 1);
}

uint64_t GroupShape::page_bytes() const {
  uint64_t bytes = 0;
  for (const LayerShape& layer : layers) bytes += 2 * layer.page_bytes();
  return bytes;
}

Entries GroupShape::needed(uint32_t n_done, uint32_t n_positions) const {
  return std::visit([&](const auto& each) { return each.needed(n_done, n_positions); }, kind);
}

uint32_t GroupShape::reusable(std::span<const uint32_t> pages, uint32_t most) const {
  return std::visit([&](const auto& each) { return each.reusable(pages, most); }, kind);
}

uint32_t GroupShape::most_pages(uint32_t n_positions, uint32_t n_rows) const {
  return std::visit([&](const auto& each) { return each.most_pages(n_positions, n_rows); }, kind);
}

bool GroupShape::goes_from_end() const {
  return std::visit([](const auto& each) { return each.kGoesFromEnd; }, kind);
}

std::vector<GroupShape> cache_groups(const ArchDescriptor& arch, Format format) {
  std::vector<GroupShape> groups;
  for (uint32_t i = 0; i < arch.layers.size(); ++i) {
    const LayerDescriptor& layer = arch.layers[i];
    if (layer.kv_from) {
      check_source(arch, i);
      continue;
    }
    const CacheKind kind = kind_of(layer);
    auto group = std::ranges::find(groups, kind, &GroupShape::kind);
    if (group == groups.end()) group = groups.insert(group, {kind, format, {}});
    group->layers.push_back({i, layer.n_kv_heads, row_bytes(format, layer.head_dim)});
  }
  return groups;
}

}  // namespace akunu
