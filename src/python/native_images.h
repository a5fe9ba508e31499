// Images as Python hands them to a model: each with the index of its first token.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "inference/image.h"

namespace akunu::python {

using GivenImages = std::vector<std::pair<uint32_t, std::shared_ptr<Image>>>;

inline std::vector<PlacedImage> placed(const GivenImages& given) {
  std::vector<PlacedImage> images;
  for (const auto& [first, image] : given) images.push_back({first, image});
  return images;
}

}  // namespace akunu::python
