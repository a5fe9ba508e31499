// What a file holds, on a device: its shape and its tensors. Nothing here depends on how large a context
// is or how many texts run: contexts of one model share its weights, and the last one frees them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arch.h"
#include "core/device.h"
#include "core/error.h"
#include "core/model_config.h"
#include "inference/context_plan.h"
#include "inference/device_tensors.h"

namespace akunu {

// Immutable once it is loaded, so that several threads may read it.
struct Weights {
  std::string path;
  std::shared_ptr<Device> device;  // counts the memory of the weights
  ModelConfig config;
  ArchDescriptor arch;  // with what the file says of it: output scales, alignment heads
  std::vector<std::string> notes;
  std::unique_ptr<DeviceTensors> tensors;
  OwnedBuffer ones;         // as ForwardMemory has them; empty where nothing reads them
  uint64_t host_bytes = 0;  // of tensors in the host's memory, where the device has its own
  uint64_t kept_free = 0;   // of the device's memory, for what reads those

  bool has_prediction_head() const { return arch.n_ahead > 0; }
  // Numbers of a row that comes out: logits, or an encoder's vector.
  uint32_t output_width() const { return akunu::output_width(arch, tensors->map()); }
  // Whether what comes out are scores of a classifier.
  bool classifies() const { return tensors->map().contains("head.output.weight"); }

  // Throws DeviceError when a file that the device reads was cut or cannot be read any more: what
  // was computed since is worth nothing, and neither are the weights.
  void check_files() const;
};

// Reads a model from a file or directory. Throws ModelFormatError, UnsupportedModelError, DeviceError, OutOfMemoryError
// or ArgumentError. Where a device has its own memory, the options say how large the first context is: weights without
// room next to such a context stay in the host's memory.
std::shared_ptr<const Weights> load_weights(const std::string& path, std::shared_ptr<Device> device,
                                            const LoadOptions& options);
// Likewise, of what a reader has read.
std::shared_ptr<const Weights> load_weights(const ModelSource& source,
                                            std::shared_ptr<Device> device,
                                            const LoadOptions& options);

// What a device can still give to a model with these options; `host_bytes` of its weights lie in the host's memory.
MemoryLeft memory_left(const Device& device, const LoadOptions& options, uint64_t host_bytes);

// The name of a layer's output scale: some models multiply the residual by it after the layer.
std::string output_scale_name(size_t layer);

// What `run` finds wrong with a model, said of its file.
template <class Run>
auto blaming(const std::string& path, Run&& run) {
  try {
    return run();
  } catch (const ModelFormatError& error) {
    throw ModelFormatError(path + ": " + error.what());
  } catch (const UnsupportedModelError& error) {
    throw UnsupportedModelError(path + ": " + error.what());
  }
}

// The same for what is made of weights that are there. If a file was cut meanwhile, that is the better answer.
template <class Run>
auto blaming(const Weights& weights, Run&& run) {
  const auto blame_damage = [&] {
    if (const std::optional<std::string> damage = weights.tensors->damage())
      throw ModelFormatError(*damage);
  };
  try {
    auto made = blaming(weights.path, run);
    blame_damage();
    return made;
  } catch (const Error&) {
    blame_damage();
    throw;
  }
}

}  // namespace akunu
