#pragma once

#include <cstdint>

namespace akunu {

// What is done to the numbers of a tensor of one dimension while it is loaded.
enum class Transform : uint8_t {
  none,
  minus_exp,  // a number of a scan that the file stores as a logarithm: the model has -e^x
  add_one,    // a norm that the file stores as w and the model multiplies by 1 + w
};

}  // namespace akunu
