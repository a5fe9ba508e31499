#include "files/huggingface/images.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/error.h"

namespace akunu {
namespace {

constexpr std::string_view kTower = "vision_tower.", kProjector = "multi_modal_projector.",
                           kQwenTower = "visual.";
constexpr std::string_view kQwen2[]{"qwen2_vl", "qwen2_vl_vision"};
constexpr std::string_view kSiglip[]{"siglip_vision_model"};
constexpr std::string_view kIdefics3[]{"idefics3_vision", "idefics3", "smolvlm_vision", "smolvlm",
                                       "siglip_vision_model"};

// What transformers takes where a vision_config leaves keys out.
struct SiglipDefaults {
  std::span<const std::string_view> model_types;
  uint32_t dim = 768;
  uint32_t n_heads = 12;
  uint32_t patch_size = 16;
};

void refuse_other_type(ConfigObject& vision, std::span<const std::string_view> types) {
  if (const auto type = vision.text("model_type");
      type && std::ranges::find(types, *type) == types.end())
    vision.refuse_support("model_type", "akunu has " + std::string(types.front()) + " there");
}

uint32_t read_layers(ConfigObject& vision, const char* key, uint32_t usual) {
  const uint32_t n = vision.needed_count(key, usual);
  if (n > kMostLayers) vision.refuse_value(key, "that is out of any sensible range");
  return n;
}

uint32_t read_heads(ConfigObject& vision, const char* key, uint32_t usual, uint32_t dim) {
  const uint32_t n = vision.needed_count(key, usual);
  if (dim % n != 0)
    vision.refuse_value(key, "rows have " + std::to_string(dim) +
                                 " numbers, which it does not "
                                 "divide");
  return n;
}

void refuse_other_channels(ConfigObject& vision, const char* key) {
  if (vision.needed_count(key, ImageEncoder::kChannels) != ImageEncoder::kChannels)
    vision.refuse_support(key, "akunu has images of 3 channels");
}

ImageConfig read_siglip(ConfigObject& vision, const SiglipDefaults& usual) {
  ImageConfig images;
  refuse_other_type(vision, usual.model_types);
  images.dim = vision.needed_count("hidden_size", usual.dim);
  images.n_layers = read_layers(vision, "num_hidden_layers", 12);
  images.n_heads = read_heads(vision, "num_attention_heads", usual.n_heads, images.dim);
  images.ffn_dim = vision.needed_count("intermediate_size", 3072);
  images.norm_epsilon = vision.number("layer_norm_eps").value_or(1e-6f);
  images.patch_size = vision.needed_count("patch_size", usual.patch_size);
  const uint32_t side = vision.needed_count("image_size", 224);
  images.patches_per_side = side / images.patch_size;
  if (images.patches_per_side == 0 ||
      uint64_t{images.patches_per_side} * images.patches_per_side > ImageConfig::kMostPatches)
    vision.refuse_value("image_size", "patches of " + std::to_string(images.patch_size) +
                                          " pixels do not make an image of it");
  refuse_other_channels(vision, "num_channels");
  if (const auto act = vision.text("hidden_act"); act && *act != "gelu_pytorch_tanh")
    vision.refuse_support("hidden_act", "akunu has gelu_pytorch_tanh in encoders of images");
  return images;
}

}  // namespace

ImageConfig read_gemma3_images(ConfigObject& whole, ConfigObject& vision) {
  ImageConfig images = read_siglip(vision, {.model_types = kSiglip});
  images.preparation = "gemma3";
  images.sees_later_rows = true;
  const uint32_t n_tokens = whole.needed_count("mm_tokens_per_image", 256);
  const auto tokens_per_side = static_cast<uint32_t>(std::lround(std::sqrt(n_tokens)));
  if (tokens_per_side * tokens_per_side != n_tokens ||
      images.patches_per_side % tokens_per_side != 0)
    whole.refuse_support("mm_tokens_per_image",
                         "akunu needs a square number whose root divides the " +
                             std::to_string(images.patches_per_side) + " patches of a side");
  images.square_side = images.patches_per_side / tokens_per_side;
  const char* const key =
      whole.find("image_token_id") != nullptr ? "image_token_id" : "image_token_index";
  images.token = whole.needed_count(key, 262144);
  return images;
}

ImageConfig read_idefics3_images(ConfigObject& whole, ConfigObject& vision) {
  ImageConfig images =
      read_siglip(vision, {.model_types = kIdefics3, .dim = 1152, .n_heads = 16, .patch_size = 32});
  images.preparation = "idefics3";
  images.merger = PatchMerger::concatenate;
  const uint32_t side = whole.needed_count("scale_factor", 2);
  if (images.patches_per_side % side != 0)
    whole.refuse_value(
        "scale_factor",
        "it does not divide the " + std::to_string(images.patches_per_side) + " patches of a side");
  images.square_side = side;
  images.token = whole.needed_count("image_token_id", 128257);
  return images;
}

// `hidden_size` is the width of the text model; `embed_dim` is that of the encoder. A patch holds two video frames; an
// image is used for both.
ImageConfig read_qwen2_images(ConfigObject& whole, ConfigObject& vision) {
  refuse_other_type(vision, kQwen2);
  ImageConfig images;
  images.preparation = "qwen2";
  images.dim = vision.needed_count("embed_dim", 1280);
  images.n_layers = read_layers(vision, "depth", 32);
  images.n_heads = read_heads(vision, "num_heads", 16, images.dim);
  const float ratio = vision.number("mlp_ratio").value_or(4.0f);
  if (!(ratio > 0 && ratio <= 100)) vision.refuse_value("mlp_ratio", "it must be above 0");
  images.ffn_dim = static_cast<uint32_t>(static_cast<float>(images.dim) * ratio);
  images.norm_epsilon = 1e-6f;
  images.patch_size = vision.needed_count("patch_size", 14);
  images.n_frames = vision.needed_count("temporal_patch_size", 2);
  images.square_side = vision.needed_count("spatial_merge_size", 2);
  refuse_other_channels(vision, vision.find("in_chans") != nullptr ? "in_chans" : "in_channels");
  if (const auto act = vision.text("hidden_act"); act && *act != "quick_gelu")
    vision.refuse_support("hidden_act", "akunu has quick_gelu in Qwen2-VL's encoder of images");
  images.activation = Activation::quick_gelu;
  images.rotates = true;
  images.merger = PatchMerger::concatenate;
  images.projector_activation = Activation::gelu;
  images.has_text_axes = true;
  images.token = whole.needed_count("image_token_id", 151655);
  return images;
}

std::optional<std::string> name_of_image_tensor(std::string_view name) {
  constexpr std::string_view kModel = "model.", kInner = "vision_model.",
                             kConnector = "connector.modality_projection.";
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  if (name.starts_with(kQwenTower)) return std::string(name);
  const bool is_of_tower = name.starts_with(kTower);
  if (is_of_tower) name.remove_prefix(kTower.size());
  if (name.starts_with(kInner)) {
    name.remove_prefix(kInner.size());
    return std::string(kTower) + std::string(name);
  }
  if (is_of_tower) return std::string(kTower) + std::string(name);
  if (name.starts_with(kConnector))
    return std::string(kProjector) + std::string(name.substr(kConnector.size()));
  if (!name.starts_with(kProjector)) return std::nullopt;
  // A bare parameter, without a suffix.
  constexpr std::string_view kProjection = "mm_input_projection_weight";
  if (name.ends_with(kProjection)) {
    name.remove_suffix(std::string_view("_weight").size());
    return std::string(name) + ".weight";
  }
  return std::string(name);
}

bool has_image_tensors(const ModelDirectory& directory) {
  return std::ranges::any_of(directory.files(), [](const SafetensorsFile& file) {
    return std::ranges::any_of(file.tensors(), [](const SafetensorsTensor& tensor) {
      return name_of_image_tensor(tensor.name).has_value();
    });
  });
}

bool is_patch_embedding(std::string_view name) {
  return name == "vision_tower.embeddings.patch_embedding.weight" ||
         name == "visual.patch_embed.proj.weight";
}

SourceTensor patch_embedding(const HfTensor& located) {
  SafetensorsTensor flat = *located.tensor;
  if (flat.shape.size() != 4 && flat.shape.size() != 5) return plain_hf_tensor(located);
  std::vector<uint64_t> shape(flat.shape.begin(), flat.shape.end());
  // Frames count as rows of pixels.
  if (shape.size() == 5) {
    const size_t frames = shape[1] == ImageEncoder::kChannels ? 2 : 1;
    shape[frames + 1] *= shape[frames];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(frames));
  }
  flat.shape = {shape[0], shape[1], shape[2] * shape[3]};
  SourceTensor result = plain_hf_tensor({located.file, &flat});
  const uint64_t channels = shape[3];
  if (channels != ImageEncoder::kChannels || shape[1] == ImageEncoder::kChannels) return result;
  const uint64_t n_places = shape[1] * shape[2], size = row_bytes(result.format, 1);
  const std::span<const std::byte> from = result.parts[0].bytes;
  const auto bytes = std::make_shared<std::vector<std::byte>>(from.size());
  for (uint64_t row = 0; row < shape[0]; ++row)
    for (uint64_t place = 0; place < n_places; ++place)
      for (uint64_t channel = 0; channel < channels; ++channel)
        std::ranges::copy(
            from.subspan(((row * n_places + place) * channels + channel) * size, size),
            bytes->data() + ((row * channels + channel) * n_places + place) * size);
  result.shape = {shape[0], channels, n_places};
  result.parts[0] = {.bytes = *bytes, .owner = bytes};
  return result;
}

bool is_image_projection(std::string_view name) {
  return name == "multi_modal_projector.mm_input_projection.weight";
}

}  // namespace akunu
