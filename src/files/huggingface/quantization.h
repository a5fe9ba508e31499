// How the linear layers of a directory are quantised: config.json's `quantization` (MLX) or
// `quantization_config`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/format.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// One layer's groups, as MLX's files say them.
struct MlxGroups {
  uint32_t bits = 0;
  uint32_t group = 0;
  bool is_mxfp4 = false;  // else affine
};

// What tensors of a quantised layer show of it: words of 32 bits and scales, in a row each.
struct MlxShape {
  uint64_t words = 0;
  uint64_t scales = 0;
  bool has_byte_scales = false;  // as mxfp4 has
};

class HfQuantization {
 public:
  // Throws UnsupportedModelError for a method that akunu does not have, and ModelFormatError for values
  // that make no sense; both name the key. `config` must live as long. `hidden_size`: columns of the weights
  // that read the text's rows; 0: not known.
  explicit HfQuantization(ConfigObject& config, uint32_t hidden_size = 0);

  // How the layer is quantised whose weight is `layer` + ".weight"; nothing where config.json does not speak
  // of MLX's groups. Its own entry is taken at its word. Without one, the first that fits the shape: an entry
  // whose name differs by "model." or "language_model." in front, that of the columns where its name tells
  // them, that of all, groups of the size or of the bits of all, and the only ones that there are. Where none
  // fits, that of all. Throws like the constructor, and ModelFormatError where several are left; `label` names
  // the tensor in that.
  std::optional<MlxGroups> mlx_groups(const std::string& layer, const MlxShape& shape,
                                      const std::string& label) const;

  // Rows and columns of a weight in FP8 that share a scale of `weight_scale_inv`.
  uint32_t fp8_block_rows() const { return fp8_block_rows_; }
  uint32_t fp8_block_columns() const { return fp8_block_columns_; }

 private:
  MlxGroups groups_of_entry(const std::string& layer) const;
  static MlxGroups read_groups(ConfigObject& entry, const std::optional<MlxGroups>& usual);

  mutable std::optional<ConfigObject> mlx_;
  std::multimap<std::string, std::string, std::less<>>
      entries_;  // of layers, by name without prefixes
  std::optional<MlxGroups> usual_;
  uint32_t hidden_size_;
  uint32_t fp8_block_rows_ = 128, fp8_block_columns_ = 128;
};

}  // namespace akunu
