// The low-rank adapters of a model on its device: for each weight that some of them adapt, the
// matrices of all of them, one below the other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/forward.h"
#include "core/rows.h"
#include "files/adapters/source.h"

namespace akunu {

// So many that a list of all of them leaves room for the other options of a text.
constexpr size_t kMaxAdapters = 256;

class Adapters {
 public:
  Adapters() = default;
  // In the order of their numbers. Throws ModelFormatError where a matrix has another shape than the
  // weight in `tensors`, OutOfMemoryError, and ArgumentError for more than kMaxAdapters.
  Adapters(const std::shared_ptr<Device>& device, std::span<const AdapterSource> sources,
           const TensorMap& tensors);

  const AdapterTargets& targets() const { return targets_; }
  std::span<const std::string> names() const { return names_; }
  // Those of a text as PrefixKey has them. Throws ArgumentError for what is none of these, given twice
  // or no finite number.
  std::vector<AdapterShare> in_order(std::vector<AdapterShare> shares) const;

 private:
  AdapterTargets targets_;
  std::vector<std::string> names_;
  OwnedBuffer memory_;  // all matrices and parts
};

}  // namespace akunu
