#include "weight/weights.h"

#include <bit>
#include <cstring>

#include "core/error.h"

namespace akunu {
namespace {

// IEEE 754 binary16 to binary32, exact.
float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

// bfloat16 to binary32, exact: it is the upper half.
float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <class Number>
Number number_at(std::span<const std::byte> bytes, size_t i) {
  Number number;
  std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
  return number;
}

float float_at(Format format, std::span<const std::byte> bytes, size_t i) {
  if (format == Format::f32) return number_at<float>(bytes, i);
  const auto bits = number_at<uint16_t>(bytes, i);
  return format == Format::f16 ? half_to_float(bits) : bfloat_to_float(bits);
}

// A tensor of one dimension as the engine wants it: float32, transformed.
std::vector<float> as_floats(const SourceTensor& tensor) {
  refuse_quantised_vector(tensor);
  std::vector<float> values(tensor.k());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float_at(tensor.format, tensor.parts[0].bytes, i);
    if (tensor.transform == Transform::add_one) values[i] += 1.0f;
  }
  return values;
}

bool lies_as_wanted(const SourceTensor& tensor) {
  return tensor.transform == Transform::none && (tensor.n_dims > 1 || tensor.format == Format::f32);
}

}  // namespace

Weights::Weights(std::shared_ptr<Device> device, const ModelSource& source)
    : device_(std::move(device)), files_(source.files.begin(), source.files.end()) {
  for (const SourceTensor& tensor : source.tensors) {
    names_in_file_[tensor.name] = tensor.name_in_file;
    if (lies_as_wanted(tensor)) {
      imported_.push_back(import(tensor));
      tensors_[tensor.name] = imported_.back().get();
      continue;
    }
    if (tensor.n_dims > 1)
      throw UnsupportedModelError(tensor.label() + " has " + std::to_string(tensor.n_dims) +
                                  " dimensions; akunu has one there");
    const std::vector<float> values = as_floats(tensor);
    vectors_.emplace_back(device_, values.size() * sizeof(float), "weights (converted)");
    device_->write(vectors_.back().binding(), std::as_bytes(std::span(values)));
    tensors_[tensor.name] = {{vectors_.back().binding()}, Format::f32, 1, tensor.k()};
  }
}

OwnedWeight Weights::import(const SourceTensor& tensor) {
  return {device_,
          {.name = tensor.name_in_file,
           .format = tensor.format,
           .rows = tensor.rows(),
           .k = tensor.k(),
           .parts = tensor.parts}};
}

uint64_t Weights::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, weight] : tensors_)
    bytes += weight.rows * row_bytes(weight.format, weight.k);
  return bytes;
}

std::optional<std::string> Weights::damage() const {
  for (const std::weak_ptr<const MappedFile>& file : files_)
    if (const std::shared_ptr<const MappedFile> mapped = file.lock())
      if (std::optional<std::string> damage = mapped->damage()) return damage;
  return std::nullopt;
}

}  // namespace akunu
