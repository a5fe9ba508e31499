#include "weight/weights.h"

#include <bit>
#include <cstring>

#include "core/error.h"
#include "weight/gguf_model.h"
#include "weight/names.h"
#include "weight/printable.h"

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

// The numbers of an f16 or bf16 vector.
std::vector<float> as_floats(const WeightSource& source) {
  std::vector<float> values(source.k);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, source.bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = source.format == Format::f16 ? half_to_float(bits) : bfloat_to_float(bits);
  }
  return values;
}

bool needs_conversion(const GgufTensor& tensor) {
  return tensor.n_dims == 1 && tensor.type != static_cast<uint32_t>(Format::f32);
}

}  // namespace

Weights::Weights(std::shared_ptr<Device> device, const GgufFile& file)
    : device_(std::move(device)) {
  for (const GgufPart& part : file.parts()) files_.push_back(part.mapping);
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string who =
        printable(file.part_of(tensor).path, kPathLimit) + ": tensor " + printable(tensor.name);
    const std::optional<std::string> name = canonical_from_gguf(tensor.name);
    if (!name) throw UnsupportedModelError(who + " is not one that akunu knows what to do with");
    if (tensors_.contains(*name))
      throw ModelFormatError(who + " is " + *name + ", which the file has under another name too");
    names_in_file_[*name] = printable(tensor.name);
    const WeightSource source = weight_source(file, tensor);
    if (!needs_conversion(tensor)) {
      imported_.push_back(device_->import_weight(source));
      tensors_[*name] = imported_.back();
      continue;
    }
    if (source.format != Format::f16 && source.format != Format::bf16)
      throw UnsupportedModelError(
          who + " is one-dimensional and quantised; akunu has F32, F16 and BF16 there");
    const std::vector<float> values = as_floats(source);
    vectors_.emplace_back(device_, values.size() * sizeof(float), "weights (converted)");
    device_->write(vectors_.back().binding(), std::as_bytes(std::span(values)));
    tensors_[*name] = {vectors_.back().binding(), Format::f32, 1, source.k};
  }
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

Weights::~Weights() {
  for (const Weight& weight : imported_) device_->release_weight(weight);
}

}  // namespace akunu
