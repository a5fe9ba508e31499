// How the linear layers of a directory are quantised: config.json's `quantization` (MLX) or
// `quantization_config`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/format.h"
#include "weight/config_object.h"

namespace akunu {

// One layer's groups, as MLX's files say them.
struct MlxGroups {
  uint32_t bits = 0;
  uint32_t group = 0;
  bool is_mxfp4 = false;  // else affine
};

class HfQuantization {
 public:
  // Throws UnsupportedModelError for a method that akunu does not have, and ModelFormatError for values
  // that make no sense; both name the key. `config` must live as long.
  explicit HfQuantization(ConfigObject& config);

  // How the layer is quantised whose weight is `layer` + ".weight", by its own entry or that of all; nothing
  // where config.json does not speak of MLX's groups. Throws like the constructor.
  std::optional<MlxGroups> mlx_groups(const std::string& layer) const;

  // Rows and columns of a weight in FP8 that share a scale of `weight_scale_inv`.
  uint32_t fp8_block_rows() const { return fp8_block_rows_; }
  uint32_t fp8_block_columns() const { return fp8_block_columns_; }

 private:
  static MlxGroups read_groups(ConfigObject& entry, const std::optional<MlxGroups>& usual);

  mutable std::optional<ConfigObject> mlx_;
  std::optional<MlxGroups> usual_;
  uint32_t fp8_block_rows_ = 128, fp8_block_columns_ = 128;
};

}  // namespace akunu
