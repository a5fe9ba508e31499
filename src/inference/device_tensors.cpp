#include "inference/device_tensors.h"

#include <cmath>

#include "core/error.h"
#include "files/floats.h"

namespace akunu {
namespace {

// A tensor of one dimension as the engine wants it: float32, transformed.
std::vector<float> as_floats(const SourceTensor& tensor) {
  refuse_quantised_vector(tensor);
  std::vector<float> values(tensor.k());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float_at(tensor.format, tensor.parts[0].bytes, i);
    if (tensor.transform == Transform::add_one) values[i] += 1.0f;
    if (tensor.transform == Transform::minus_exp) values[i] = -std::exp(values[i]);
  }
  return values;
}

bool lies_as_wanted(const SourceTensor& tensor) {
  return tensor.transform == Transform::none && (tensor.n_dims > 1 || tensor.format == Format::f32);
}

}  // namespace

TensorMap outlines(const ModelSource& source, uint32_t n_ranks) {
  TensorMap tensors;
  for (const SourceTensor& tensor : source.tensors)
    tensors[tensor.name] = {{},
                            tensor.n_dims == 1 ? Format::f32 : tensor.format,
                            tensor.rows() / (tensor.split == Split::rows ? n_ranks : 1),
                            tensor.k() / (tensor.split == Split::columns ? n_ranks : 1)};
  return tensors;
}

DeviceTensors::DeviceTensors(std::shared_ptr<Device> device, const ModelSource& source,
                             const std::set<std::string, std::less<>>& in_host_memory)
    : device_(std::move(device)), files_(source.files.begin(), source.files.end()) {
  for (const SourceTensor& tensor : source.tensors) {
    names_in_file_[tensor.name] = tensor.name_in_file;
    if (lies_as_wanted(tensor)) {
      imported_.push_back(import(tensor, in_host_memory.contains(tensor.name)));
      tensors_[tensor.name] = imported_.back().get();
      continue;
    }
    if (tensor.n_dims > 1)
      throw UnsupportedModelError(tensor.label() + " has " + std::to_string(tensor.n_dims) +
                                  " dimensions; akunu has one there");
    std::vector<float> values = as_floats(tensor);
    if (tensor.split != Split::none) {
      SourceTensor converted = tensor;
      converted.format = Format::f32;
      auto owned = std::make_shared<const std::vector<float>>(std::move(values));
      const std::span<const std::byte> bytes = std::as_bytes(std::span(*owned));
      converted.parts[0] = {.bytes = bytes, .owner = std::move(owned), .mapping = {}};
      imported_.push_back(import(converted, false));
      tensors_[tensor.name] = imported_.back().get();
      continue;
    }
    vectors_.emplace_back(device_, values.size() * sizeof(float), "weights (converted)");
    device_->write(vectors_.back().binding(), std::as_bytes(std::span(values)));
    tensors_[tensor.name] = {{vectors_.back().binding()}, Format::f32, 1, tensor.k()};
  }
}

OwnedWeight DeviceTensors::import(const SourceTensor& tensor, bool in_host_memory) {
  return {device_,
          {.name = tensor.name_in_file,
           .format = tensor.format,
           .rows = tensor.rows(),
           .k = tensor.k(),
           .parts = tensor.parts,
           .in_host_memory = in_host_memory,
           .split = tensor.split,
           .n_matrices = tensor.n_matrices}};
}

uint64_t DeviceTensors::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, weight] : tensors_)
    bytes += weight.rows * row_bytes(weight.format, weight.k);
  return bytes;
}

std::optional<std::string> DeviceTensors::damage() const {
  for (const std::weak_ptr<const MappedFile>& file : files_)
    if (const std::shared_ptr<const MappedFile> mapped = file.lock())
      if (std::optional<std::string> damage = mapped->damage()) return damage;
  return std::nullopt;
}

}  // namespace akunu
