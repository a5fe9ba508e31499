#include "files/huggingface/tensors.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "files/floats.h"
#include "files/huggingface/fp8.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string shape_text(const SafetensorsTensor& tensor) {
  std::string text = "[";
  for (const uint64_t n : tensor.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

std::optional<Format> float_format(std::string_view type) {
  if (type == "F32") return Format::f32;
  if (type == "F16") return Format::f16;
  if (type == "BF16") return Format::bf16;
  return std::nullopt;
}

const HfTensor* find_tensor(const HfTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

const HfTensor& needed_part(const HfTensors& tensors, const HfTensor& weight,
                            std::string_view name) {
  const HfTensor* const part = find_tensor(tensors, std::string(name));
  if (part == nullptr)
    throw ModelFormatError(weight.label() + " is quantised, and there is no tensor " +
                           printable(name));
  return *part;
}

SourceTensor without_bytes(const HfTensor& located) {
  SourceTensor result;
  result.name_in_file = printable(located.tensor->name);
  result.path = printable(located.file->path(), kPathLimit);
  return result;
}

WeightPart part_of_file(const HfTensor& located) {
  const std::shared_ptr<const MappedFile>& mapping = located.file->mapping();
  return {.bytes = located.file->bytes_of(*located.tensor),
          .owner = mapping,
          .mapping = mapping ? mapping->bytes() : std::span<const std::byte>()};
}

// Checks that a part has [n, columns] numbers.
void check_shape(const HfTensor& part, uint64_t n, uint64_t columns) {
  if (part.tensor->shape == std::vector<uint64_t>{n, columns}) return;
  throw ModelFormatError(part.label() + " is " + shape_text(*part.tensor) + "; [" +
                         std::to_string(n) + ", " + std::to_string(columns) + "] is needed");
}

Format affine_format(const HfTensor& scales, const MlxGroups& groups) {
  const std::string_view type = scales.tensor->type->name;
  for (const auto& [name, scale] :
       {std::pair("F16", MlxScale::f16), std::pair("BF16", MlxScale::bf16),
        std::pair("F32", MlxScale::f32)})
    if (type == name) return *mlx_format({groups.bits, groups.group, scale});
  throw UnsupportedModelError(scales.label() + " has the number format " + std::string(type) +
                              "; akunu has F16, BF16 and F32 for scales");
}

MlxShape mlx_shape(const HfTensors& tensors, const HfTensor& weight, const std::string& layer) {
  MlxShape shape{.words = weight.tensor->shape.back()};
  if (const HfTensor* scales = find_tensor(tensors, layer + ".scales")) {
    shape.scales = scales->tensor->shape.empty() ? 0 : scales->tensor->shape.back();
    shape.has_byte_scales = scales->tensor->type->name == "U8";
  }
  return shape;
}

SourceTensor mlx_tensor(const HfTensors& tensors, const HfTensor& weight, const std::string& layer,
                        const HfQuantization& quantization) {
  const std::vector<uint64_t>& shape = weight.tensor->shape;
  if (shape.size() != 2)
    throw UnsupportedModelError(weight.label() + " is quantised and has " +
                                std::to_string(shape.size()) + " dimensions; akunu has two there");
  const std::string& name = weight.tensor->name;
  const std::optional<MlxGroups> groups =
      quantization.mlx_groups(name.substr(0, name.size() - kWeight.size()),
                              mlx_shape(tensors, weight, layer), weight.label());
  if (!groups)
    throw UnsupportedModelError(weight.label() +
                                " has whole numbers (U32), and config.json does not say how they " +
                                "are quantised");
  const uint64_t n = shape[0], words = shape[1];
  const uint64_t k = words / groups->bits * 32;
  if (n == 0 || words == 0 || words % groups->bits != 0 || k % groups->group != 0)
    throw ModelFormatError(weight.label() + " is " + shape_text(*weight.tensor) +
                           ", which is no whole number of groups of " +
                           std::to_string(groups->group) + " at " + std::to_string(groups->bits) +
                           " bits");
  const HfTensor& scales = needed_part(tensors, weight, layer + ".scales");
  check_shape(scales, n, k / groups->group);
  SourceTensor result = without_bytes(weight);
  result.n_dims = 2;
  result.shape = {1, n, k};
  result.parts[0] = part_of_file(weight);
  result.parts[1] = part_of_file(scales);
  if (groups->is_mxfp4) {
    if (scales.tensor->type->name != "U8")
      throw ModelFormatError(scales.label() + " has the number format " +
                             std::string(scales.tensor->type->name) + "; mxfp4 has U8");
    result.format = Format::mlx_mxfp4;
    return result;
  }
  const HfTensor& biases = needed_part(tensors, weight, layer + ".biases");
  check_shape(biases, n, k / groups->group);
  if (biases.tensor->type != scales.tensor->type)
    throw UnsupportedModelError(
        biases.label() + " has the number format " + std::string(biases.tensor->type->name) +
        ", its scales " + std::string(scales.tensor->type->name) + "; akunu needs them equal");
  result.format = affine_format(scales, *groups);
  result.parts[2] = part_of_file(biases);
  return result;
}

// OpenAI's MXFP4: blocks [experts, rows, k / 32, 16] of two codes in a byte, neighbours together, and
// scales [experts, rows, k / 32]. Blocks of GGUF have the scale in front, and the codes of the two halves
// together.
SourceTensor mxfp4_stack(const HfTensors& tensors, const HfTensor& weight,
                         const std::string& layer) {
  constexpr uint64_t kCodes = 16, kBlock = 32;
  const std::vector<uint64_t>& shape = weight.tensor->shape;
  if (shape.size() != 4 || shape[3] != kCodes || weight.tensor->size == 0)
    throw UnsupportedModelError(weight.label() + " is in U8 and " + shape_text(*weight.tensor) +
                                "; akunu has blocks [experts, rows, k / 32, 16] of MXFP4 there");
  const HfTensor& scales = needed_part(tensors, weight, layer + ".scales");
  if (scales.tensor->shape != std::vector<uint64_t>(shape.begin(), shape.end() - 1) ||
      scales.tensor->type->name != "U8")
    throw ModelFormatError(scales.label() + " is " + shape_text(*scales.tensor) +
                           "; one number in U8 of each block is needed");
  const std::span<const std::byte> codes = weight.file->bytes_of(*weight.tensor);
  const std::span<const std::byte> exponents = scales.file->bytes_of(*scales.tensor);
  const auto bytes = std::make_shared<std::vector<std::byte>>(exponents.size() * (1 + kCodes));
  for (size_t block = 0; block < exponents.size(); ++block) {
    const std::byte* const from = codes.data() + block * kCodes;
    std::byte* const to = bytes->data() + block * (1 + kCodes);
    to[0] = exponents[block];
    const auto code = [&](uint64_t i) {
      return i % 2 == 0 ? from[i / 2] & std::byte{15} : from[i / 2] >> 4;
    };
    for (uint64_t i = 0; i < kCodes; ++i) to[1 + i] = code(i) | code(i + kCodes) << 4;
  }
  SourceTensor result = without_bytes(weight);
  result.format = Format::mxfp4;
  result.n_dims = 3;
  result.shape = {shape[0], shape[1], shape[2] * kBlock};
  result.parts[0] = {.bytes = *bytes, .owner = bytes};
  return result;
}

Fp8Scales read_scales(const HfTensor& located, uint64_t n, uint64_t k, uint64_t block_rows,
                      uint64_t block_columns) {
  const SafetensorsTensor& tensor = *located.tensor;
  const std::optional<Format> format = float_format(tensor.type->name);
  if (!format)
    throw UnsupportedModelError(located.label() + " has the number format " +
                                std::string(tensor.type->name) +
                                "; akunu has F32, F16 and BF16 for scales");
  Fp8Scales scales;
  const std::span<const std::byte> bytes = located.file->bytes_of(tensor);
  scales.values.resize(bytes.size() / row_bytes(*format, 1));
  for (size_t i = 0; i < scales.values.size(); ++i) scales.values[i] = float_at(*format, bytes, i);
  const auto blocks = [](uint64_t all, uint64_t of) { return all / of + (all % of != 0); };
  if (scales.values.size() == 1) {  // of all
    scales.block_rows = n;
    scales.block_columns = k;
  } else if (tensor.shape == std::vector<uint64_t>{n} ||
             tensor.shape == std::vector<uint64_t>{n, 1}) {  // of a row
    scales.block_columns = k;
  } else if (tensor.shape ==
             std::vector<uint64_t>{blocks(n, block_rows), blocks(k, block_columns)}) {
    scales.block_rows = block_rows;
    scales.block_columns = block_columns;
  } else {
    throw ModelFormatError(located.label() + " is " + shape_text(tensor) + "; one number, one of " +
                           std::to_string(n) + " rows each, or one of each " +
                           std::to_string(block_rows) + " x " + std::to_string(block_columns) +
                           " is needed");
  }
  return scales;
}

SourceTensor fp8_tensor(const HfTensors& tensors, const HfTensor& weight, const std::string& layer,
                        const HfQuantization& quantization, Fp8Expanded& expanded) {
  const std::vector<uint64_t>& shape = weight.tensor->shape;
  if (shape.size() != 2 || weight.tensor->size == 0)
    throw UnsupportedModelError(weight.label() + " is in FP8 and " + shape_text(*weight.tensor) +
                                "; akunu has two dimensions there");
  const HfTensor* scale = find_tensor(tensors, layer + ".weight_scale_inv");
  if (scale == nullptr) scale = find_tensor(tensors, layer + ".weight_scale");
  if (scale == nullptr)
    throw ModelFormatError(weight.label() + " is in FP8, and there is neither " + printable(layer) +
                           ".weight_scale_inv nor weight_scale");
  try {
    const Fp8Scales scales = read_scales(*scale, shape[0], shape[1], quantization.fp8_block_rows(),
                                         quantization.fp8_block_columns());
    const auto values = std::make_shared<const std::vector<uint16_t>>(
        expand_fp8(weight.file->bytes_of(*weight.tensor), shape[0], shape[1], scales));
    SourceTensor result = without_bytes(weight);
    result.format = Format::bf16;
    result.n_dims = 2;
    result.shape = {1, shape[0], shape[1]};
    result.parts[0] = {.bytes = std::as_bytes(std::span(*values)), .owner = values};
    ++expanded.n_tensors;
    expanded.bytes += result.parts[0].bytes.size();
    return result;
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(weight.label() + ": " + std::to_string(2 * weight.tensor->size) +
                           " bytes are needed to expand it from FP8 to BF16");
  }
}

bool has_type(const HfTensor* located, std::string_view type) {
  return located != nullptr && located->tensor->type->name == type;
}

}  // namespace

std::string HfTensor::label() const {
  return printable(file->path(), kPathLimit) + ": tensor " + printable(tensor->name);
}

bool is_companion(const HfTensors& tensors, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kCompanions[] = {
      {".scales", "U32"},
      {".biases", "U32"},
      {".scales", "U8"},
      {".weight_scale_inv", "F8_E4M3"},
      {".weight_scale", "F8_E4M3"}};
  for (const auto& [ending, type] : kCompanions)
    if (name.ends_with(ending)) {
      const std::string weight =
          std::string(name.substr(0, name.size() - ending.size())) + std::string(kWeight);
      if (has_type(find_tensor(tensors, weight), type)) return true;
    }
  return false;
}

SourceTensor plain_hf_tensor(const HfTensor& located) {
  const SafetensorsTensor& tensor = *located.tensor;
  SourceTensor result = without_bytes(located);
  const std::optional<Format> format = float_format(tensor.type->name);
  if (!format)
    throw UnsupportedModelError(result.label() + " has the number format " +
                                std::string(tensor.type->name) +
                                "; akunu has F32, F16, BF16, FP8 (F8_E4M3) and MLX's groups");
  const auto begin =
      std::ranges::find_if(tensor.shape, [](uint64_t length) { return length != 1; });
  const auto n_ones = static_cast<size_t>(begin - tensor.shape.begin());
  // Of more than three dimensions, leading ones of length 1 say nothing.
  const size_t n_dims =
      tensor.shape.size() - std::min(n_ones, tensor.shape.size() > 3 ? tensor.shape.size() - 3 : 0);
  if (n_dims == 0 || n_dims > 3)
    throw UnsupportedModelError(result.label() + " has " + std::to_string(tensor.shape.size()) +
                                " dimensions; akunu has one to three");
  if (tensor.size == 0) throw ModelFormatError(result.label() + " is empty");
  result.format = *format;
  result.n_dims = static_cast<uint32_t>(n_dims);
  std::copy(tensor.shape.end() - static_cast<ptrdiff_t>(n_dims), tensor.shape.end(),
            result.shape.end() - result.n_dims);
  result.parts[0] = part_of_file(located);
  return result;
}

SourceTensor hf_tensor(const HfTensors& tensors, std::string_view name,
                       const HfQuantization& quantization, Fp8Expanded& expanded) {
  const HfTensor& located = tensors.find(name)->second;
  const std::string_view type = located.tensor->type->name;
  if (name.ends_with(kWeight)) {
    const std::string layer(name.substr(0, name.size() - kWeight.size()));
    if (type == "U32") return mlx_tensor(tensors, located, layer, quantization);
    if (type == "U8") return mxfp4_stack(tensors, located, layer);
    if (type == "F8_E4M3") return fp8_tensor(tensors, located, layer, quantization, expanded);
  }
  return plain_hf_tensor(located);
}

HfQuantization quantization_of(const ModelDirectory& directory) {
  ConfigObject config(directory.config(), directory.config_path());
  std::optional<ConfigObject> text = config.object("text_config");
  const uint32_t hidden_size = (text ? *text : config).count("hidden_size").value_or(0);
  if (config.find("quantization") || config.find("quantization_config"))
    return HfQuantization(config, hidden_size);
  return HfQuantization(text ? *text : config, hidden_size);
}

std::vector<ListedTensor> list_tensors(const ModelDirectory& directory) {
  const HfQuantization quantization = quantization_of(directory);
  HfTensors all;
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors())
      all.emplace(tensor.name, HfTensor{&file, &tensor});
  std::vector<ListedTensor> listed;
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors()) {
      if (is_companion(all, tensor.name)) continue;
      ListedTensor& entry = listed.emplace_back();
      entry = {.name = tensor.name,
               .type = std::string(tensor.type->name),
               .shape = tensor.shape,
               .file = &file,
               .offset = tensor.offset,
               .size = tensor.size};
      if (!tensor.name.ends_with(kWeight)) continue;
      const std::string layer = tensor.name.substr(0, tensor.name.size() - kWeight.size());
      for (const char* ending : {".scales", ".biases", ".weight_scale_inv", ".weight_scale"})
        if (is_companion(all, layer + ending))
          if (const HfTensor* part = find_tensor(all, layer + ending))
            entry.size += part->tensor->size;
      if (tensor.type->name != "U32") continue;
      const SourceTensor whole = mlx_tensor(all, HfTensor{&file, &tensor}, layer, quantization);
      entry.type = format_info(whole.format).name;
      entry.shape = {whole.rows(), whole.k()};
    }
  return listed;
}

}  // namespace akunu
