// Weights: a model's tensors on a device. Immutable, and apart from the model, so that contexts,
// draft models and a reload can share them.
#pragma once

#include <memory>
#include <vector>

#include "core/device.h"
#include "core/forward.h"
#include "weight/gguf.h"

namespace akunu {

class Weights {
 public:
  // Imports every tensor of the file. Throws UnsupportedModelError for a tensor whose name or
  // number format akunu does not know: a model that would be computed wrongly is not loaded.
  Weights(std::shared_ptr<Device> device, const GgufFile& file);
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const TensorMap& tensors() const { return tensors_; }

 private:
  std::shared_ptr<Device> device_;
  std::vector<OwnedBuffer> vectors_;  // converted to float32
  std::vector<Weight> imported_;
  TensorMap tensors_;
};

}  // namespace akunu
