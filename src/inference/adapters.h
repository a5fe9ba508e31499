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

class Adapters {
 public:
  Adapters() = default;
  // Throws ModelFormatError where a matrix has another shape than the weight in `tensors`,
  // OutOfMemoryError, and ArgumentError for more than kMaxAdapters.
  Adapters(const std::shared_ptr<Device>& device, std::vector<AdapterSlot> slots,
           const TensorMap& tensors);

  // The set with one more, which gets the lowest free number. Throws ArgumentError for a name that another
  // one has, and what the constructor throws.
  std::shared_ptr<const Adapters> with(const std::shared_ptr<Device>& device, AdapterSource source,
                                       const TensorMap& tensors) const;
  // The set without this one. Throws ArgumentError for a number that is free.
  std::shared_ptr<const Adapters> without(const std::shared_ptr<Device>& device, uint32_t number,
                                          const TensorMap& tensors) const;

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
  OwnedBuffer memory_;  // all matrices and parts
};

// The set that new texts find. The scheduler's thread changes it; any thread may ask.
class CurrentAdapters {
 public:
  explicit CurrentAdapters(std::shared_ptr<const Adapters> adapters)
      : adapters_(std::move(adapters)) {}

  std::shared_ptr<const Adapters> get() const {
    const std::lock_guard lock(mutex_);
    return adapters_;
  }
  void set(std::shared_ptr<const Adapters> adapters) {
    const std::lock_guard lock(mutex_);
    adapters_.swap(adapters);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Adapters> adapters_;
};

}  // namespace akunu
