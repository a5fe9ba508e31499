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
                 uint32_t n_pages)
    : device_(device) {
  uint32_t n_groups = 0;
  for (const LayerDescriptor& layer : arch.layers) {
    const uint64_t bytes = n_pages * layer_page_bytes(layer, format);
    LayerCache memory;
    for (Binding* binding : {&memory.keys, &memory.values}) {
      buffers_.emplace_back(device, bytes, "cache");
      *binding = buffers_.back().binding();
    }
    layers_.push_back(memory);
    shapes_.push_back({layer.cache_group, layer.n_kv_heads, row_bytes(format, layer.head_dim)});
    n_groups = std::max(n_groups, layer.cache_group + 1);
  }
  for (uint32_t i = 0; i < n_groups; ++i) groups_.push_back({format, PagePool(n_pages)});
}

void KvCache::copy_positions(uint32_t group, uint32_t from_page, uint32_t to_page,
                             uint32_t n_positions) {
  std::vector<std::byte> staging;  // where the host cannot see the memory
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    const LayerShape& shape = shapes_[layer];
    if (shape.group != group) continue;
    const uint64_t n_bytes = n_positions * shape.position_bytes;
    const auto offset = [&](uint32_t page, uint32_t head) {
      return (uint64_t{page} * shape.n_heads + head) * kPagePositions * shape.position_bytes;
    };
    for (const Binding& memory : {layers_[layer].keys, layers_[layer].values})
      for (uint32_t head = 0; head < shape.n_heads; ++head) {
        const Binding from{memory.buffer, memory.offset + offset(from_page, head)};
        const Binding to{memory.buffer, memory.offset + offset(to_page, head)};
        if (memory.buffer.contents != nullptr) {
          device_->write(to, std::span(memory.buffer.contents + from.offset, n_bytes));
          continue;
        }
        staging.resize(n_bytes);
        device_->read(from, staging);
        device_->write(to, staging);
      }
  }
}

uint64_t KvCache::page_bytes(const ArchDescriptor& arch, Format format) {
  uint64_t bytes = 0;
  for (const LayerDescriptor& layer : arch.layers) bytes += 2 * layer_page_bytes(layer, format);
  return bytes;
}

}  // namespace akunu
