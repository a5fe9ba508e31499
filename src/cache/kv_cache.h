// Pages of the K/V cache. A page holds 256 positions of one sequence in every layer of its group;
// pages are counted by reference, so that sequences may share them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/groups.h"
#include "core/arch.h"
#include "core/device.h"
#include "core/forward.h"

namespace akunu {

// Which pages of a group are free. Never allocates after construction.
class PagePool {
 public:
  explicit PagePool(uint32_t n_pages);

  uint32_t n_pages() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t references(uint32_t page) const { return references_[page]; }

  // Fills `pages` with free pages, each with one reference; false (and nothing taken) if too few.
  bool take(std::span<uint32_t> pages);
  void share(uint32_t page);    // one reference more
  void release(uint32_t page);  // one less; free at none

 private:
  std::vector<uint32_t> references_;
  std::vector<uint32_t> free_;  // a stack, lowest numbers on top
};

struct CacheGroup {
  GroupShape shape;
  PagePool pages;
};

// The device memory of every layer's pages.
class KvCache {
 public:
  // `n_pages`: of each group.
  KvCache(const std::shared_ptr<Device>& device, const ArchDescriptor& arch,
          std::span<const GroupShape> groups, std::span<const uint32_t> n_pages);

  // The keys and values that each layer attends to. A layer that shares another layer's has the same memory.
  const std::vector<LayerCache>& layers() const { return layers_; }
  // Of each recurrent layer: its states (`keys`), and the inputs of its convolution (`values`).
  const std::vector<LayerCache>& states() const { return states_; }
  // Likewise, of what an encoder made for each layer; empty where there is none.
  const std::vector<LayerCache>& cross() const { return cross_; }
  // That of keys, values and latents; where there are none, it does not matter.
  Format format() const;
  // What the layers of a group have in it, by their numbers.
  const std::vector<LayerCache>& layers_of(const GroupShape& shape) const {
    return shape.is_cross() ? cross_ : shape.has_states() ? states_ : layers_;
  }
  std::vector<CacheGroup>& groups() { return groups_; }
  const std::vector<CacheGroup>& groups() const { return groups_; }

  // Copies the first `n_positions` positions of a page (of a state: all of it) in every layer of a
  // group, after the submissions in flight and before the next one.
  void copy_positions(uint32_t group, uint32_t from_page, uint32_t to_page, uint32_t n_positions);

  // Copies the first `n_positions` positions of a page of keys and values to the host, and from there,
  // as they lie in SavedPositions; with no submission in flight that touches the page.
  void read_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                      std::span<std::byte> into) const;
  void write_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                       std::span<const std::byte> from);

 private:
  std::shared_ptr<Device> device_;
  std::vector<OwnedBuffer> buffers_;
  std::vector<LayerCache> layers_;
  std::vector<LayerCache> states_;
  std::vector<LayerCache> cross_;
  std::vector<CacheGroup> groups_;
};

// What `layers` of a model would be, without memory: good for the forward pass's sizes and names.
std::vector<LayerCache> layers_without_memory(const ArchDescriptor& arch,
                                              std::span<const GroupShape> groups);
std::vector<LayerCache> states_without_memory(std::span<const GroupShape> groups);
std::vector<LayerCache> cross_without_memory(std::span<const GroupShape> groups);

}  // namespace akunu
