#include "files/huggingface/quantization.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace akunu {
namespace {

constexpr uint32_t kBits[] = {2, 3, 4, 5, 6, 8}, kGroups[] = {32, 64, 128};

// The name of a layer without what programs put in front of it, or leave out.
std::string_view without_prefixes(std::string_view name) {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const std::string_view prefix : {"model.", "language_model."})
      if (name.starts_with(prefix)) {
        name.remove_prefix(prefix.size());
        is_done = false;
      }
  }
  return name;
}

bool fits(const MlxGroups& groups, const MlxShape& shape) {
  return groups.is_mxfp4 == shape.has_byte_scales && shape.words % groups.bits == 0 &&
         shape.words / groups.bits * 32 == shape.scales * groups.group;
}

// Whether such a layer of a text model has hidden_size columns, in all families.
bool reads_hidden_rows(std::string_view layer) {
  for (const std::string_view other : {"vision", "visual", "audio"})
    if (layer.find(other) != std::string_view::npos) return false;
  for (const std::string_view ending :
       {".q_proj", ".k_proj", ".v_proj", ".gate_proj", ".up_proj", "embed_tokens", "lm_head"})
    if (layer.ends_with(ending)) return true;
  return false;
}

}  // namespace

HfQuantization::HfQuantization(ConfigObject& config, uint32_t hidden_size)
    : hidden_size_(hidden_size) {
  mlx_ = config.object("quantization");
  std::optional<ConfigObject> other = config.object("quantization_config");
  if (!mlx_ && other && !other->find("quant_method") && other->find("bits")) mlx_ = other;
  if (mlx_) {
    usual_ = read_groups(*mlx_, std::nullopt);
    for (const std::string& key : mlx_->keys())
      if (mlx_->find(key) != nullptr && mlx_->find(key)->kind == JsonValue::Kind::object)
        entries_.emplace(without_prefixes(key), key);
    return;
  }
  if (!other) return;
  const std::string method = other->text("quant_method").value_or("");
  constexpr std::string_view kHere =
      "akunu has fp8, fbgemm_fp8, compressed-tensors and modelopt of FP8, mxfp4, and MLX's groups";
  if (method == "compressed-tensors") {
    if (other->text("format").value_or("float-quantized") != "float-quantized")
      other->refuse_support("format", std::string(kHere));
  } else if (method == "modelopt") {
    if (other->text("quant_algo").value_or("FP8") != "FP8")
      other->refuse_support("quant_algo", std::string(kHere));
  } else if (method != "fp8" && method != "fbgemm_fp8" && method != "mxfp4") {
    other->refuse_support("quant_method", std::string(kHere));
  }
  if (const JsonValue* block = other->find("weight_block_size")) {
    const bool is_pair = block->items.size() == 2;
    const auto size = [&](size_t i) {
      return is_pair ? block->items[i].unsigned_integer().value_or(0) : 0;
    };
    constexpr uint64_t kMost = 1u << 30;
    if (size(0) == 0 || size(1) == 0 || size(0) > kMost || size(1) > kMost)
      other->refuse_value("weight_block_size", "two whole numbers from 1 on are needed");
    fp8_block_rows_ = static_cast<uint32_t>(size(0));
    fp8_block_columns_ = static_cast<uint32_t>(size(1));
  }
}

std::optional<MlxGroups> HfQuantization::mlx_groups(const std::string& layer, const MlxShape& shape,
                                                    const std::string& label) const {
  if (!mlx_) return std::nullopt;
  const JsonValue* const entry = mlx_->find(layer);
  if (entry != nullptr && entry->kind == JsonValue::Kind::object) return groups_of_entry(layer);
  const auto [first, last] = entries_.equal_range(without_prefixes(layer));
  for (auto named = first; named != last; ++named)
    if (const MlxGroups groups = groups_of_entry(named->second); fits(groups, shape)) return groups;
  if (hidden_size_ > 0 && reads_hidden_rows(layer) && !shape.has_byte_scales && shape.scales > 0)
    if (const MlxGroups groups = {static_cast<uint32_t>(shape.words * 32 / hidden_size_),
                                  static_cast<uint32_t>(hidden_size_ / shape.scales)};
        mlx_format({groups.bits, groups.group, MlxScale::f16}) && fits(groups, shape))
      return groups;
  if (fits(*usual_, shape)) return usual_;
  if (constexpr MlxGroups kMxfp4 = {4, 32, true}; fits(kMxfp4, shape)) return kMxfp4;
  std::vector<MlxGroups> found;
  for (const uint32_t group : kGroups)
    for (const uint32_t bits : kBits)
      if (const MlxGroups groups = {bits, group}; fits(groups, shape)) found.push_back(groups);
  for (const auto value : {&MlxGroups::group, &MlxGroups::bits})
    if (const auto same = std::ranges::find(found, (*usual_).*value, value); same != found.end())
      return *same;
  if (found.size() < 2) return found.empty() ? usual_ : found[0];
  std::string choices;
  for (const MlxGroups& groups : found)
    choices += (choices.empty() ? "" : " or ") + std::to_string(groups.group) + " at " +
               std::to_string(groups.bits) + " bits";
  throw ModelFormatError(label + " has groups of " + choices +
                         " by its shape, and config.json has no entry that says which");
}

MlxGroups HfQuantization::groups_of_entry(const std::string& layer) const {
  ConfigObject own = *mlx_->object(layer);
  return read_groups(own, usual_);
}

MlxGroups HfQuantization::read_groups(ConfigObject& entry, const std::optional<MlxGroups>& usual) {
  MlxGroups groups;
  const std::string mode =
      entry.text("mode").value_or(usual && usual->is_mxfp4 ? "mxfp4" : "affine");
  groups.is_mxfp4 = mode == "mxfp4";
  if (mode != "affine" && !groups.is_mxfp4)
    entry.refuse_support("mode", "akunu has \"affine\" and \"mxfp4\"");
  groups.bits = entry.needed_count("bits", groups.is_mxfp4 ? 4 : usual ? usual->bits : 0);
  groups.group = entry.needed_count("group_size", groups.is_mxfp4 ? 32 : usual ? usual->group : 0);
  if (groups.is_mxfp4) {
    if (groups.bits != 4) entry.refuse_value("bits", "mxfp4 has 4");
    if (groups.group != 32) entry.refuse_value("group_size", "mxfp4 has 32");
    return groups;
  }
  if (!mlx_format({groups.bits, 64, MlxScale::f16}))
    entry.refuse_support("bits", "akunu has 2, 3, 4, 5, 6 and 8");
  if (!mlx_format({4, groups.group, MlxScale::f16}))
    entry.refuse_support("group_size", "akunu has 32, 64 and 128");
  return groups;
}

}  // namespace akunu
