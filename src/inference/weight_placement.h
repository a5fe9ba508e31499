// Which weights find room in the memory of a device that has its own. The others stay in the host's
// memory, where the device reads them: slower, with the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "files/model_source.h"

namespace akunu {

struct WeightPlacement {
  std::set<std::string, std::less<>> in_host_memory;  // names of tensors
  uint64_t device_bytes = 0;
  uint64_t host_bytes = 0;
  uint64_t staged_bytes = 0;  // of the device, for copies of what many rows are multiplied with
  std::string what;           // stays there: "the experts of layers 12 to 23"
};

// Leaves in the host's memory what costs least there, until the rest and the copies are no more than `room` bytes:
// tables of which a row is read for each token; experts, most of which a token does not need; then the
// other matrices. Of each, the last layers first. Vectors always lie on the device.
// Of `n_ranks` devices that compute a model together each has its share, and all leave the same there.
WeightPlacement place_weights(std::span<const SourceTensor> tensors, uint64_t room,
                              uint32_t n_ranks = 1);

}  // namespace akunu
