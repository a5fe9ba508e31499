#include "inference/latent_weights.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/memory_left.h"
#include "files/floats.h"
#include "files/gguf/gguf.h"
#include "quantize/quantize.h"

namespace akunu {
namespace {

bool is_absorbed(std::string_view name) {
  for (const std::string_view each : {"kv_b", "k_b", "v_b"})
    if (name.ends_with(".attention." + std::string(each) + ".weight")) return true;
  return false;
}

std::optional<uint32_t> gguf_type_of(Format format) {
  for (uint32_t type = 0; type < 256; ++type)
    if (format_from_gguf(type) == format) return type;
  return std::nullopt;
}

void read_blocks(const SourceTensor& tensor, uint32_t type, std::span<float> values) {
  quantize::read_as_floats({.name = tensor.name_in_file,
                            .type = type,
                            .bytes = tensor.parts[0].bytes,
                            .n_rows = tensor.rows(),
                            .k = tensor.k(),
                            .importance = {}},
                           values, {1, [] {}});
}

// scale * code + bias of each group; codes are a stream of bits from the lowest one on.
void read_mlx(const SourceTensor& tensor, std::span<float> values) {
  const MlxFormat format = mlx_format_at(static_cast<uint32_t>(tensor.format) -
                                         static_cast<uint32_t>(Format::mlx_first));
  const Format number = format.scale == MlxScale::f16    ? Format::f16
                        : format.scale == MlxScale::bf16 ? Format::bf16
                                                         : Format::f32;
  const std::span<const std::byte> codes = tensor.parts[0].bytes;
  const uint64_t mask = (1u << format.bits) - 1;
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t bit = i * format.bits;
    uint16_t two = 0;  // a code may lie across two bytes
    std::memcpy(&two, codes.data() + bit / 8, std::min<size_t>(2, codes.size() - bit / 8));
    const auto code = static_cast<float>(two >> bit % 8 & mask);
    const uint64_t group = i / format.group;
    values[i] = float_at(number, tensor.parts[1].bytes, group) * code +
                float_at(number, tensor.parts[2].bytes, group);
  }
}

}  // namespace

ModelSource with_latent_floats(ModelSource source) {
  uint64_t n_tensors = 0, bytes = 0;
  for (SourceTensor& tensor : source.tensors) {
    if (!is_absorbed(tensor.name)) continue;
    if (tensor.format == Format::f32 || tensor.format == Format::f16 ||
        tensor.format == Format::bf16)
      continue;
    const std::optional<uint32_t> type = gguf_type_of(tensor.format);
    if (!is_mlx_affine(tensor.format) && (!type || !quantize::has_coder(*type)))
      throw UnsupportedModelError(tensor.label() + " has the number format " +
                                  std::string(format_info(tensor.format).name) +
                                  ", which akunu does not have where latent attention absorbs it");
    const uint64_t n = tensor.rows() * tensor.k();
    try {
      const auto values = std::make_shared<std::vector<float>>(n);
      if (is_mlx_affine(tensor.format))
        read_mlx(tensor, *values);
      else
        read_blocks(tensor, *type, *values);
      tensor.parts = {};
      tensor.parts[0] = {.bytes = std::as_bytes(std::span(*values)), .owner = values};
    } catch (const std::bad_alloc&) {
      throw OutOfMemoryError(tensor.label() + ": " + std::to_string(n * sizeof(float)) +
                             " bytes are needed for its numbers as floats");
    } catch (const ArgumentError& error) {
      throw ModelFormatError(tensor.path + ": tensor " + error.what());
    }
    tensor.format = Format::f32;
    ++n_tensors;
    bytes += n * sizeof(float);
  }
  if (n_tensors > 0)
    source.config.notes.push_back(std::to_string(n_tensors) +
                                  " quantised tensors, which latent attention absorbs, were "
                                  "expanded to F32 and take " +
                                  mebibytes(bytes));
  return source;
}

}  // namespace akunu
