// The low-rank adapters of a model on its device: for each weight that some of them adapt, the
// matrices of all of them, one below the other.
//
// A set of adapters never changes. One that is loaded or unloaded makes another set, in which the others
// keep their numbers: `with`, `without`.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/sequence_store.h"
#include "core/device.h"
#include "core/forward.h"
#include "files/adapters/source.h"

namespace akunu {

// A list of all of them leaves room for the other options of a text.
constexpr size_t kMaxAdapters = 256;

// What has a number. An adapter that is unloaded leaves a free number.
struct AdapterSlot {
  std::shared_ptr<const AdapterSource> source;  // null: free
  uint64_t load = 0;                            // see TextAdapter
};
// In the order of their numbers.
std::vector<AdapterSlot> slots_of(std::vector<AdapterSource> sources);

// A set in the host's memory, as the device is going to have it. It needs no device, so any thread can make it.
struct AdapterLayout {
  // Throws ModelFormatError where a matrix has another shape than the weight in `tensors`, and
  // ArgumentError for more than kMaxAdapters.
  AdapterLayout(std::vector<AdapterSlot> of, const TensorMap& tensors);

  std::vector<AdapterSlot> slots;
  AdapterTargets targets;        // with offsets in `bytes`, and no buffer
  std::vector<std::byte> bytes;  // all matrices and parts
};

// What any thread may know of a set. Its memory on the device is another's: see AdaptersOnDevice.
class Adapters {
 public:
  Adapters() = default;
  // `buffer`: has the layout's bytes.
  Adapters(AdapterLayout layout, const Buffer& buffer);

  // The set with one more, which gets the lowest free number. Throws ArgumentError for a name that another
  // one has, and what the layout throws.
  AdapterLayout with(AdapterSource source, const TensorMap& tensors) const;
  // The set without this one. Throws ArgumentError for a number that is free.
  AdapterLayout without(uint32_t number, const TensorMap& tensors) const;

  const AdapterTargets& targets() const { return targets_; }
  std::span<const AdapterSlot> slots() const { return slots_; }
  // By their numbers; "" for a number that is free.
  std::vector<std::string> names() const;
  std::optional<uint32_t> number_of(const std::string& name) const;
  // Those of a text as PrefixKey has them. Throws ArgumentError for a number that is free or comes twice, and
  // for a weight that is no finite number.
  std::vector<TextAdapter> in_order(std::vector<TextAdapter> adapters) const;
  // Whether the adapters of a text are loaded still.
  bool have(std::span<const TextAdapter> adapters) const;

 private:
  bool is_free(uint32_t number) const {
    return number >= slots_.size() || slots_[number].source == nullptr;
  }

  std::vector<AdapterSlot> slots_;
  uint64_t n_loads_ = 0;  // ever
  AdapterTargets targets_;
};

struct AdaptersOnDevice {
  AdaptersOnDevice() = default;
  // Throws OutOfMemoryError.
  AdaptersOnDevice(const std::shared_ptr<Device>& device, AdapterLayout layout);

  OwnedBuffer memory;
  std::shared_ptr<const Adapters> adapters = std::make_shared<const Adapters>();
};

// The set that new texts find. The scheduler's thread changes it, so that thread frees memory; any thread
// may get it.
class CurrentAdapters {
 public:
  explicit CurrentAdapters(AdaptersOnDevice set) : set_(std::move(set)) {}

  std::shared_ptr<const Adapters> get() const {
    const std::lock_guard lock(mutex_);
    return set_.adapters;
  }
  // No program may read the memory of the set before.
  void set(AdaptersOnDevice set) {
    const std::lock_guard lock(mutex_);
    std::swap(set_, set);
  }

 private:
  mutable std::mutex mutex_;
  AdaptersOnDevice set_;
};

}  // namespace akunu
