// How positions turn keys and queries: the rotary frequencies of a model's layers. Some models have others for a long
// context, so they belong to a context and not to its weights.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "inference/weights.h"

namespace akunu {

class Frequencies {
 public:
  // Takes memory for them; what they are is not known before `write`.
  Frequencies(const Weights& weights, const std::shared_ptr<Device>& device);

  // For a context of so many positions. Returns notes for the user. Throws ModelFormatError and UnsupportedModelError
  // for factors in the file that make no sense.
  std::vector<std::string> write(const Weights& weights, uint32_t context);

  // Float32 [rope_dim / 2] of each layer; empty where it does not rotate.
  const std::vector<Binding>& of_layers() const { return of_layers_; }
  // The same for the encoder of images, whose layers all have one setting.
  Binding of_images() const { return of_images_ ? of_images_->binding() : Binding{}; }
  // The text model's layers with equal rotary settings share one buffer.
  const std::vector<OwnedBuffer>& buffers() const { return buffers_; }
  // What is in the buffers, one after the other.
  std::vector<std::byte> bytes() const;

 private:
  std::shared_ptr<Device> device_;
  std::vector<OwnedBuffer> buffers_;
  std::vector<Binding> of_layers_;
  std::optional<OwnedBuffer> of_images_;
};

}  // namespace akunu
