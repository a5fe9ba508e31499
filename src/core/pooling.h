#pragma once

#include <cstdint>

namespace akunu {

// How the rows of a text become one vector.
enum class Pooling : uint8_t { none, mean, first, last, max };

}  // namespace akunu
