#include "cache/pages.h"

#include <algorithm>
#include <cassert>

namespace akunu {
namespace {

// Bytes of one page of one layer's K (or V).
uint64_t layer_page_bytes(const LayerDescriptor& layer, Format format) {
  return row_bytes(format, uint64_t{layer.n_kv_heads} * kPagePositions * layer.head_dim);
}

}  // namespace

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

KvCache::KvCache(const std::shared_ptr<Device>& device, const ArchDescriptor& arch, Format format,
                 uint32_t n_pages) {
  uint32_t n_groups = 0;
  for (const LayerDescriptor& layer : arch.layers) {
    const uint64_t bytes = n_pages * layer_page_bytes(layer, format);
    LayerCache memory;
    for (Binding* binding : {&memory.keys, &memory.values}) {
      buffers_.emplace_back(device, bytes, "cache");
      *binding = buffers_.back().binding();
    }
    layers_.push_back(memory);
    n_groups = std::max(n_groups, layer.cache_group + 1);
  }
  for (uint32_t i = 0; i < n_groups; ++i) groups_.push_back({format, PagePool(n_pages)});
}

uint64_t KvCache::page_bytes(const ArchDescriptor& arch, Format format) {
  uint64_t bytes = 0;
  for (const LayerDescriptor& layer : arch.layers) bytes += 2 * layer_page_bytes(layer, format);
  return bytes;
}

}  // namespace akunu
