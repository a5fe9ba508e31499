// The body of a prompt over the rows of an image, in parts. These rows see each other in both directions, so a text's
// step cannot have some of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/forward.h"

namespace akunu {

// The keys and values of all layers, as `body` makes them, in parts as Forward::encode has them. `most_rows`: of an
// image.
std::vector<std::vector<Node>> image_rows_of(const std::vector<Node>& body, Values& values,
                                             uint32_t most_rows);

}  // namespace akunu
