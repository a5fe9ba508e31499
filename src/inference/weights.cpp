// Loads a model's weights. weights.h says what these are.
//
// 1. What it does. Describes the layers, decides which tensors stay in the host's memory (`place`), imports the
//    tensors, and reads what the layers' description takes from them.
// 2. What bounds it. Importing tensors. Load times: docs/reference/benchmarks.md.
// 3. What it must not do. Keep anything that depends on a context: context.h. Believe a file that was cut meanwhile: it
//    gets the blame for whatever fails (`blaming`).
// 4. Where to change it. What a pass computes: core/forward.cpp. What stays in the host's memory: weight_placement.cpp.
#include "inference/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/memory_left.h"
#include "files/gguf/images.h"
#include "inference/delta_kernels.h"
#include "inference/fused_forwards.h"
#include "inference/latent_weights.h"
#include "inference/shards.h"
#include "inference/step_sizes.h"
#include "inference/weight_placement.h"
#include "models/common/describe.h"

namespace akunu {
namespace {

// Where `context` is not given, the cache gets room for this many positions before weights get the rest of a device's own
// memory.
constexpr uint32_t kContextBesideWeights = 8192;
// Bytes of a device's own memory that are left to the workspaces of commands, whose size is known only when programs
// are compiled.
constexpr uint64_t kKeptForWorkspaces = 64ull << 20;

void refuse_without_head(const ModelSource& source) {
  if (source.config.n_ahead > 0) return;
  const uint32_t n = source.config.experts.n_layers_ahead;
  throw UnsupportedModelError(
      source.path + ": a prediction head was asked for, and the model has " +
      (n > 1 ? std::to_string(n) + " of them; akunu runs one"
             : "none that akunu knows: those of Qwen3.5 and Qwen3-Next, mtp.* or nextn.*") +
      "; load it without");
}

// What one of several devices computes takes the place of the whole model.
void divide(Weights& weights, ModelSource& source, const LoadOptions& options) {
  const uint32_t n_ranks = weights.device->n_ranks();
  if (options.observed || !options.adapters.empty())
    throw ArgumentError(
        std::string(options.observed ? "a model that is observed" : "a model with adapters") +
        " is computed by one GPU: gpus must be 1, got " + std::to_string(n_ranks));
  if (weights.arch.images) {
    weights.arch.images.reset();
    std::erase_if(source.tensors, [](const SourceTensor& tensor) {
      return std::string_view(tensor.name).starts_with("encoder.");
    });
    weights.notes.push_back("images are not read: models do that with gpus=1");
  }
  weights.arch = share_of(weights.arch, n_ranks);
  split_tensors(source, n_ranks);
}

void find_alignment_heads(Weights& weights, const LoadOptions& options) {
  ArchDescriptor& arch = weights.arch;
  if (!arch.audio) {
    if (!options.alignment_heads.empty())
      throw ArgumentError(weights.config.architecture +
                          " has no encoder of audio, so it has no alignment heads");
    return;
  }
  arch.audio->alignment_heads.assign(arch.layers.size(), 0);
  for (const AlignmentHead& each : options.alignment_heads) {
    if (each.layer >= arch.layers.size() ||
        each.head >= arch.layers[each.layer].attention()->n_heads)
      throw ModelFormatError("there is no head " + std::to_string(each.head) + " of layer " +
                             std::to_string(each.layer) + " to align words with");
    if (each.head >= 32) throw UnsupportedModelError("of a layer's heads, the first 32 can align");
    arch.audio->alignment_heads[each.layer] |= 1u << each.head;
  }
}

// Decides, before any weight is loaded, which ones stay in the host's memory: those that do not fit on the device
// with scratch and the cache of a context.
WeightPlacement place(Weights& weights, const ModelSource& source, const LoadOptions& options,
                      const StepSizes& sizes) {
  const Device& device = *weights.device;
  const ArchDescriptor& arch = weights.arch;
  const FusedForwards fused(arch, outlines(source, device.n_ranks()),
                            std::vector<Binding>(arch.layers.size()),
                            memory_without_buffers(arch, cache_groups(arch, options.kv_format)),
                            device, options.observed, {});
  const ContextNeeds needs = context_needs(arch, sizes, options, fused.scratch_bytes(sizes));
  const uint32_t context =
      options.context.value_or(std::min(arch.context_length, kContextBesideWeights));
  const uint64_t left = memory_left(device, options, 0).memory.value_or(UINT64_MAX);
  const uint64_t besides = context_bytes(options, needs, context);
  const uint64_t room = left - std::min(left, besides + kKeptForWorkspaces);
  WeightPlacement placement = place_weights(source.tensors, room, device.n_ranks());
  weights.kept_free = kKeptForWorkspaces + placement.staged_bytes;
  if (placement.in_host_memory.empty()) return placement;
  weights.host_bytes = placement.host_bytes;
  weights.notes.push_back(
      "the GPU has no room for " + mebibytes(placement.host_bytes) + " of " +
      mebibytes(placement.host_bytes + placement.device_bytes) +
      " of weights, which stay in the host's memory, where it reads them: " + placement.what);
  return placement;
}

// Threads that wait for a processor hold up the others at the end of every command.
void note_threads(Weights& weights) {
  const ChipConfig& chip = weights.device->chip();
  if (chip.processors == 0 || chip.workers <= chip.processors) return;
  weights.notes.push_back("threads is " + std::to_string(chip.workers) +
                          ", and this process may use " + std::to_string(chip.processors) +
                          (chip.processors == 1 ? " processor" : " processors") +
                          ": threads that have to wait for one slow all of them down; ask for " +
                          std::to_string(chip.processors) + ", or leave it out");
}

// The tensors of layers beyond the last would be ignored silently.
void refuse_more_layers(const Weights& weights) {
  constexpr std::string_view kLayers = "layers.";
  const size_t n_layers = weights.arch.layers.size();
  for (const auto& [name, weight] : weights.tensors->map()) {
    uint64_t layer = 0;
    if (!name.starts_with(kLayers)) continue;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    if (layer >= n_layers)
      throw ModelFormatError("there are tensors of layer " + std::to_string(layer) + ", but only " +
                             std::to_string(n_layers) + " layers, counted from 0");
  }
}

// Output scales of layers (output_scale_name): kernels have them as parameters.
void read_output_scales(Weights& weights) {
  const TensorMap& tensors = weights.tensors->map();
  for (size_t i = 0; i < weights.arch.layers.size(); ++i) {
    const std::string name = output_scale_name(i);
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    const Weight& weight = found->second;
    if (weight.format != Format::f32 || weight.rows != 1 || weight.k != 1)
      throw ModelFormatError("tensor " + weights.tensors->name_in_file(name) + " is [" +
                             std::to_string(weight.rows) + ", " + std::to_string(weight.k) +
                             "]; akunu has one number there");
    float scale = 0;
    weights.device->read(weight.planes[0], std::as_writable_bytes(std::span(&scale, 1)));
    if (!std::isfinite(scale))
      throw ModelFormatError("tensor " + weights.tensors->name_in_file(name) + " holds no number");
    weights.arch.layers[i].output_scale = scale;
  }
}

void place_ones(Weights& weights) {
  uint32_t n = 0;
  for (const LayerDescriptor& layer : weights.arch.layers)
    if (const Attention* const attention = layer.attention(); attention && attention->value_norms)
      n = std::max(n, attention->head_dim);
  if (n == 0) return;
  weights.ones = OwnedBuffer(weights.device, n * sizeof(float), "constants");
  const std::vector<float> ones(n, 1.0f);
  weights.device->write(weights.ones.binding(), std::as_bytes(std::span(ones)));
}

}  // namespace

void Weights::check_files() const {
  if (const std::optional<std::string> damage = tensors->damage()) throw DeviceError(*damage);
}

std::string output_scale_name(size_t layer) {
  return "layers." + std::to_string(layer) + ".output_scale.weight";
}

MemoryLeft memory_left(const Device& device, const LoadOptions& options, uint64_t host_bytes) {
  MemoryLeft left = device.memory_left();
  if (!options.gpu_memory) return left;
  uint64_t used = 0;
  for (const MemoryUse& use : device.memory_use())
    if (!use.mapped) used += use.bytes;
  used -= std::min(used, host_bytes);
  const uint64_t allowed = *options.gpu_memory - std::min(*options.gpu_memory, used);
  left.memory = std::min(left.memory.value_or(allowed), allowed);
  return left;
}

std::shared_ptr<const Weights> load_weights(const std::string& path, std::shared_ptr<Device> device,
                                            const LoadOptions& options) {
  ModelSource source = open_model(path, options.prediction_head);
  if (options.prediction_head) refuse_without_head(source);
  if (!options.mmproj.empty()) add_gguf_images(source, options.mmproj);
  return load_weights(source, std::move(device), options);
}

std::shared_ptr<const Weights> load_weights(const ModelSource& source,
                                            std::shared_ptr<Device> device,
                                            const LoadOptions& options) {
  if (options.gpu_memory && !device->has_own_memory())
    throw ArgumentError("gpu_memory is for GPUs that have memory of their own; the device " +
                        std::string(device->backend()) + " uses the host's");
  ModelSource readable = with_joined_kernels(with_latent_floats(source));
  auto weights = std::make_shared<Weights>();
  weights->path = source.path;
  weights->device = std::move(device);
  weights->config = readable.config;
  weights->notes = readable.config.notes;
  WeightPlacement placement;
  blaming(source.path, [&] {
    weights->arch = describe(weights->config);
    if (weights->device->n_ranks() > 1) divide(*weights, readable, options);
    find_alignment_heads(*weights, options);
    const StepSizes sizes(weights->arch, weights->device->chip(), options, 0);
    if (weights->device->has_own_memory()) placement = place(*weights, readable, options, sizes);
  });
  try {
    weights->tensors = std::make_unique<DeviceTensors>(  // keeps the files that the device reads
        weights->device, readable, placement.in_host_memory);
  } catch (const Error&) {
    if (const std::optional<std::string> damage = source.damage()) throw ModelFormatError(*damage);
    throw;
  }
  return blaming(*weights, [&] {
    note_threads(*weights);
    refuse_more_layers(*weights);
    read_output_scales(*weights);
    place_ones(*weights);
    return weights;
  });
}

}  // namespace akunu
