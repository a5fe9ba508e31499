#include "files/gguf/images.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/gguf/keys.h"
#include "files/gguf/source.h"
#include "files/huggingface/experts.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr std::string_view kLayers = "v.blk.", kPatches = "v.patch_embd.weight",
                           kProjection = "mm.input_projection.weight";

// What clip.projector_type says of an encoder.
struct Projector {
  std::string_view type, of_text;
  PatchMerger merger;
  bool sees_later_rows;
  std::string_view token;  // its name; empty: any that no text has
  uint32_t usual_scale;
};
constexpr Projector kProjectors[]{
    {"gemma3", "gemma3", PatchMerger::average, true, "", 4},
    {"idefics3", "llama", PatchMerger::concatenate, false, "<image>", 4},
};

using Names = std::pair<std::string_view, std::string_view>;  // in the file, and ours

constexpr Names kNames[] = {
    {"v.patch_embd", "encoder.patch_embedding"},
    {"v.position_embd", "encoder.position_embedding"},
    {"v.post_ln", "encoder.output_norm"},
    {"mm.soft_emb_norm", "encoder.projection_norm"},
    {"mm.input_projection", "encoder.projection"},
    {"mm.model.fc", "encoder.projection"},
};
constexpr Names kLayerNames[] = {
    {"attn_q", "attention.q"}, {"attn_k", "attention.k"},
    {"attn_v", "attention.v"}, {"attn_out", "attention.output"},
    {"ln1", "attention_norm"}, {"ln2", "ffn_norm"},
    {"ffn_up", "ffn.up"},      {"ffn_down", "ffn.down"},
};

class EncoderReader : GgufKeys {
 public:
  explicit EncoderReader(const GgufFile& file) : GgufKeys(file) {
    if (architecture_ != "clip")
      refuse("general.architecture is '" + printable(architecture_) +
             "'; an encoder of images (mmproj) has 'clip'");
  }

  // `vocabulary`: the text model's file.
  ImageConfig config(const ModelConfig& text, const GgufFile& vocabulary) const {
    std::optional<std::string_view> kind = file_.get_string(key("projector_type"));
    if (!kind) kind = file_.get_string(key("vision.projector_type"));
    const auto projector = std::ranges::find(kProjectors, kind.value_or(""), &Projector::type);
    if (projector == std::end(kProjectors))
      refuse("clip.projector_type is '" + printable(kind.value_or("")) +
             "'; akunu has gemma3 and idefics3");
    if (text.architecture != projector->of_text)
      refuse("this encoder of images is of " + std::string(projector->of_text) +
             ", and the model is " + text.architecture);
    if (!file_.get_bool(key("use_gelu")).value_or(true) ||
        file_.get_bool(key("use_silu")).value_or(false))
      refuse("clip.use_gelu is false; akunu has GELU");
    for (const char* const name : {"vision.image_mean", "vision.image_std"})
      for (const double each : file_.get_float_array(key(name)).value_or(std::vector<double>{}))
        if (std::abs(each - 0.5) > 1e-6) refuse(key(name) + " has other numbers than 0.5");
    if (const uint32_t dim = required("vision.projection_dim"); dim != text.dim)
      contradicts("vision.projection_dim is " + std::to_string(dim) + ", the model has rows of " +
                  std::to_string(text.dim) + " numbers");

    ImageConfig images;
    images.dim = required("vision.embedding_length");
    images.n_layers = required("vision.block_count");
    images.n_heads = required("vision.attention.head_count");
    images.ffn_dim = required("vision.feed_forward_length");
    images.patch_size = required("vision.patch_size");
    images.norm_epsilon = number("vision.attention.layer_norm_epsilon").value_or(1e-6f);
    const uint32_t side = required("vision.image_size");
    if (images.dim == 0 || images.n_heads == 0 || images.dim % images.n_heads != 0)
      contradicts("vision.attention.head_count does not divide vision.embedding_length");
    if (images.n_layers == 0 || images.n_layers > kMostLayers || images.ffn_dim == 0)
      contradicts("vision.block_count or vision.feed_forward_length makes no sense");
    images.patches_per_side = images.patch_size == 0 ? 0 : side / images.patch_size;
    if (images.patches_per_side == 0 ||
        uint64_t{images.patches_per_side} * images.patches_per_side > ImageConfig::kMostPatches)
      contradicts("vision.image_size is " + std::to_string(side) + ", vision.patch_size " +
                  std::to_string(images.patch_size));
    const uint32_t merged =
        optional("vision.projector.scale_factor").value_or(projector->usual_scale);
    if (merged == 0 || images.patches_per_side % merged != 0)
      contradicts("vision.projector.scale_factor does not divide the " +
                  std::to_string(images.patches_per_side) + " patches of a side");
    images.square_side = merged;
    images.preparation = projector->type;
    images.merger = projector->merger;
    images.sees_later_rows = projector->sees_later_rows;
    images.longest_edge = optional("vision.preproc_image_size").value_or(0);
    // The vocabulary of Gemma's file ends before the token that directories have for images. That of padding is in no
    // text either.
    images.token = projector->token.empty() ? 0 : token_of(vocabulary, projector->token);
    return images;
  }

  std::vector<SourceTensor> tensors(const ImageConfig& images) const {
    std::vector<SourceTensor> found;
    for (const GgufTensor& tensor : file_.tensors()) {
      GgufTensor flat = tensor;
      if (tensor.name == kPatches) {  // a convolution: a row of numbers for each result
        flat.dims = {tensor.dims[0] * tensor.dims[1] * tensor.dims[2], tensor.dims[3], 1, 1};
        flat.n_dims = 2;
      }
      SourceTensor one = gguf_tensor(file_, flat);
      if (tensor.name == kProjection && one.n_dims == 2) {  // as [inputs, outputs]
        if (format_info(one.format).block_size > 1)
          throw UnsupportedModelError(one.label() + " is quantised; take an mmproj of F16 or F32");
        one = transposed(one);
      }
      one.name = name_of(tensor, images);
      if (one.name.empty())
        throw UnsupportedModelError(one.label() + " is not one that akunu knows what to do with");
      found.push_back(std::move(one));
    }
    return found;
  }

 private:
  uint32_t token_of(const GgufFile& vocabulary, std::string_view name) const {
    const auto names = vocabulary.get_string_array("tokenizer.ggml.tokens")
                           .value_or(std::vector<std::string_view>{});
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      refuse("the model's vocabulary has no token " + std::string(name) + " for images");
    return static_cast<uint32_t>(found - names.begin());
  }

  // "encoder.layers.3.ffn.up.weight"; empty where it has no place.
  static std::string name_of(const GgufTensor& tensor, const ImageConfig& images) {
    const size_t dot = tensor.name.rfind('.');
    if (dot == std::string_view::npos) return {};
    std::string_view stem = tensor.name.substr(0, dot);
    const std::string_view suffix = tensor.name.substr(dot);
    std::string prefix;
    std::span<const Names> names = kNames;
    if (stem.starts_with(kLayers)) {
      const size_t end = stem.find('.', kLayers.size());
      if (end == std::string_view::npos) return {};
      prefix =
          "encoder.layers." + std::string(stem.substr(kLayers.size(), end - kLayers.size())) + ".";
      stem = stem.substr(end + 1);
      names = kLayerNames;
      // Older files call the first of the two matrices ffn_down.
      if (stem.starts_with("ffn_") && images.dim != images.ffn_dim)
        stem = (suffix == ".weight") == (tensor.dims[0] == images.dim) ? "ffn_up" : "ffn_down";
    }
    const auto rule = std::ranges::find(names, stem, &Names::first);
    if (rule == names.end()) return {};
    return prefix + std::string(rule->second) + std::string(suffix);
  }

  [[noreturn]] void contradicts(const std::string& why) const {
    throw ModelFormatError(path() + ": " + why);
  }
};

}  // namespace

void add_gguf_images(ModelSource& source, const std::string& path) {
  const GgufFile file = GgufFile::open(path);
  const EncoderReader reader(file);
  if (source.config.images)
    throw UnsupportedModelError(printable(path, kPathLimit) +
                                ": the model has an encoder of images already");
  source.config.images = reader.config(source.config, GgufFile::open(source.path));
  for (SourceTensor& tensor : reader.tensors(*source.config.images)) {
    if (std::ranges::find(source.tensors, tensor.name, &SourceTensor::name) != source.tensors.end())
      throw ModelFormatError(tensor.label() + " is " + tensor.name + ", which is there twice");
    source.tensors.push_back(std::move(tensor));
  }
  for (const GgufPart& part : file.parts())
    if (part.mapping) source.files.push_back(part.mapping);
}

}  // namespace akunu
