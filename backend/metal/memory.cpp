#include "metal/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "metal/objects.h"

namespace akunu::metal {
namespace {

constexpr std::string_view kMappedLabel = "weights";
constexpr std::string_view kCopiedLabel = "weights (copied)";

// Kernels load 16 bytes at once from where a weight begins.
constexpr uint64_t kWeightAlignment = 16;

constexpr uint64_t kLeastBytes = 16;  // there is no buffer of no bytes

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

uint64_t address_of(const std::byte* byte) { return reinterpret_cast<uintptr_t>(byte); }

bool holds(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  return address_of(outer.data()) <= address_of(inner.data()) &&
         address_of(inner.data()) + inner.size() <= address_of(outer.data()) + outer.size();
}

}  // namespace

uint64_t Memory::available() const {
  const uint64_t limit = device_->recommendedMaxWorkingSetSize(),
                 used = device_->currentAllocatedSize();
  return limit - std::min(limit, used);
}

void Memory::refuse_unless_fits(uint64_t bytes, std::string_view what) const {
  if (bytes > available())
    throw OutOfMemoryError(std::string(what) + " needs " + std::to_string(bytes) + " bytes, " +
                           std::to_string(available()) + " are available of the " +
                           std::to_string(device_->recommendedMaxWorkingSetSize()) +
                           " that the GPU may use");
  if (bytes > device_->maxBufferLength())
    throw OutOfMemoryError(std::string(what) + " needs " + std::to_string(bytes) +
                           " bytes, a buffer of the GPU has " +
                           std::to_string(device_->maxBufferLength()) + " at most");
}

Buffer Memory::allocate(uint64_t bytes, std::string_view label) {
  refuse_unless_fits(bytes, label);
  auto owned = std::make_unique<Owned>();
  // New memory of Metal is zero.
  owned->own = NS::TransferPtr(
      device_->newBuffer(std::max(bytes, kLeastBytes), MTL::ResourceStorageModeShared));
  if (!owned->own)
    throw OutOfMemoryError(std::string(label) + " needs " + std::to_string(bytes) +
                           " bytes, and the system refused them; " + std::to_string(available()) +
                           " should be available");
  owned->label = label;
  owned->own->setLabel(make_string(owned->label).get());
  owned->buffer = owned->own.get();
  owned->bytes = bytes;
  return add(std::move(owned), nullptr);
}

Buffer Memory::import(const WeightPart& part) {
  if (address_of(part.bytes.data()) % kWeightAlignment == 0)
    if (std::shared_ptr<const View> view = view_over(part)) {
      auto owned = std::make_unique<Owned>();
      owned->buffer = view->buffer.get();
      owned->offset = address_of(part.bytes.data()) - address_of(view->pages.data());
      owned->mapped = true;
      owned->view = std::move(view);
      owned->label = kMappedLabel;
      owned->bytes = part.bytes.size();
      return add(std::move(owned), const_cast<std::byte*>(part.bytes.data()));
    }
  const Buffer copy = allocate(part.bytes.size(), kCopiedLabel);
  if (!part.bytes.empty()) std::memcpy(copy.contents, part.bytes.data(), part.bytes.size());
  return copy;
}

// A view that holds the weight, or none where it is in no mapping or longer than a buffer can be. A
// mapping longer than that gets several views, each from where the first weight that the ones
// before it do not hold begins.
std::shared_ptr<const Memory::View> Memory::view_over(const WeightPart& part) {
  if (part.mapping.empty() || part.bytes.empty() || !holds(part.mapping, part.bytes))
    return nullptr;
  std::erase_if(views_, [](const auto& view) { return view.expired(); });
  for (const std::weak_ptr<const View>& known : views_)
    if (std::shared_ptr<const View> view = known.lock(); view && holds(view->pages, part.bytes))
      return view;
  const uint64_t page = page_bytes();
  const uint64_t most = device_->maxBufferLength() / page * page;
  const uint64_t mapping_begin = address_of(part.mapping.data()) / page * page;
  const uint64_t mapping_end =
      (address_of(part.mapping.data()) + part.mapping.size() + page - 1) / page * page;
  const uint64_t begin = mapping_end - mapping_begin <= most
                             ? mapping_begin
                             : address_of(part.bytes.data()) / page * page;
  const uint64_t length = std::min(most, mapping_end - begin);
  auto view = std::make_shared<View>();
  view->pages = {part.mapping.data() - (address_of(part.mapping.data()) - begin), length};
  if (!holds(view->pages, part.bytes)) return nullptr;
  refuse_unless_fits(length, "the mapped model file");
  view->buffer = NS::TransferPtr(
      device_->newBuffer(view->pages.data(), length, MTL::ResourceStorageModeShared, nullptr));
  if (!view->buffer) return nullptr;
  view->buffer->setLabel(make_string(std::string(kMappedLabel)).get());
  view->owner = part.owner;
  views_.push_back(view);
  return view;
}

Buffer Memory::add(std::unique_ptr<Owned> owned, std::byte* contents) {
  if (contents == nullptr) contents = static_cast<std::byte*>(owned->own->contents());
  const Buffer buffer{static_cast<Allocation*>(owned.get()), owned->bytes, contents};
  ledger_.add(owned->label, owned->mapped, owned->bytes);
  owned_.emplace(buffer.handle, std::move(owned));
  return buffer;
}

void Memory::release(const Buffer& buffer) {
  const auto found = owned_.find(buffer.handle);
  if (found == owned_.end()) return;
  ledger_.remove(found->second->label, found->second->mapped, found->second->bytes);
  owned_.erase(found);
}

}  // namespace akunu::metal
