// _core.ModelSource: a directory's model as the engine reads it, under the names that GGUF has for it.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/arch.h"
#include "core/error.h"
#include "core/format.h"
#include "core/model_config.h"
#include "files/huggingface/config.h"
#include "files/huggingface/model_directory.h"
#include "files/huggingface/source.h"
#include "files/model_source.h"
#include "files/names.h"
#include "models/common/describe.h"
#include "models/registry.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

struct SourceView {
  std::shared_ptr<const ModelSource> source;
  const SourceTensor* tensor;
};

py::tuple shape_of(const SourceTensor& tensor) {
  py::tuple result(tensor.n_dims);
  for (uint32_t i = 0; i < tensor.n_dims; ++i)
    result[i] = tensor.shape[tensor.shape.size() - tensor.n_dims + i];
  return result;
}

// Codes, scales and biases of MLX's groups, else one array; each keeps the files open.
py::list parts_of(const SourceView& view) {
  py::list result;
  for (uint32_t i = 0; i < format_info(view.tensor->format).n_planes; ++i) {
    const std::span<const std::byte> bytes = view.tensor->parts[i].bytes;
    const py::capsule owner(new std::shared_ptr<const ModelSource>(view.source), [](void* source) {
      delete static_cast<std::shared_ptr<const ModelSource>*>(source);
    });
    py::array_t<uint8_t> part(static_cast<py::ssize_t>(bytes.size()),
                              reinterpret_cast<const uint8_t*>(bytes.data()), owner);
    part.attr("setflags")(py::arg("write") = false);
    result.append(std::move(part));
  }
  return result;
}

py::object mlx_of(const SourceTensor& tensor) {
  if (!is_mlx_affine(tensor.format)) return py::none();
  const MlxFormat format = mlx_format_at(static_cast<uint32_t>(tensor.format) -
                                         static_cast<uint32_t>(Format::mlx_first));
  const char* scale = format.scale == MlxScale::f16    ? "F16"
                      : format.scale == MlxScale::bf16 ? "BF16"
                                                       : "F32";
  return py::make_tuple(format.bits, format.group, scale);
}

// What a file of this architecture is where it does not say.
ArchDescriptor usual(ModelConfig config) {
  config.rope_style.reset();
  config.attention_scale = 0;
  config.attention_soft_cap.reset();
  config.logit_soft_cap.reset();
  config.rope_theta_windowed = 0;
  config.rope_attention_factor = 1;
  config.embedding_scale = config.residual_scale = config.logit_scale = 0;
  const bool says_windows = find_family(config.architecture)->traits.layer_shapes;  // as every file
  for (LayerConfig& layer : config.layers) {
    if (!says_windows) layer.windowed.reset();
    layer.rotates.reset();
  }
  return describe(config);
}

std::vector<bool> rotating_layers(const ArchDescriptor& arch) {
  std::vector<bool> rotating;
  for (const LayerDescriptor& layer : arch.layers) rotating.push_back(layer.rotates());
  return rotating;
}

py::dict numbers_of(const Experts& experts) {
  py::dict result;
  result["n"] = experts.n;
  result["n_chosen"] = experts.n_chosen;
  result["dim"] = experts.dim;
  result["shared_dim"] = experts.shared_dim;
  result["scoring"] = experts.scoring == Scoring::softmax   ? "softmax"
                      : experts.scoring == Scoring::sigmoid ? "sigmoid"
                                                            : "chosen";
  result["normalised"] = experts.normalised;
  result["scale"] = experts.scale;
  result["n_groups"] = experts.n_groups;
  result["n_groups_chosen"] = experts.n_groups_chosen;
  return result;
}

py::object numbers_of(const Scan* scan) {
  if (scan == nullptr) return py::none();
  return py::dict(py::arg("n_heads") = scan->n_heads, py::arg("inner_dim") = scan->inner_dim(),
                  py::arg("state_dim") = scan->state_dim, py::arg("n_groups") = scan->n_groups,
                  py::arg("width") = scan->width,
                  py::arg("has_limits") = scan->time_min > 0 || std::isfinite(scan->time_max),
                  py::arg("gate_factor") = scan->gate_factor,
                  py::arg("time_factor") = scan->time_factor);
}

py::object numbers_of(const DeltaRule* rule) {
  if (rule == nullptr) return py::none();
  return py::dict(py::arg("n_key_heads") = rule->n_key_heads,
                  py::arg("n_value_heads") = rule->n_value_heads,
                  py::arg("key_dim") = rule->key_dim, py::arg("value_dim") = rule->value_dim,
                  py::arg("width") = rule->width, py::arg("per_channel") = rule->per_channel);
}

py::object numbers_of(const LatentAttention* latent) {
  if (latent == nullptr) return py::none();
  return py::dict(py::arg("rank") = latent->rank, py::arg("query_rank") = latent->query_rank,
                  py::arg("value_dim") = latent->value_dim,
                  py::arg("norm_epsilon") = latent->norm_epsilon);
}

// `from`: what the file says of the same layers, also of heads that a layer has no attention for.
py::list layers_of(const std::vector<LayerConfig>& from, const std::vector<LayerDescriptor>& of) {
  py::list layers;
  for (size_t i = 0; i < of.size(); ++i) {
    const LayerDescriptor& layer = of[i];
    const Attention* const attention = layer.attention();
    const auto* const latent = layer.find<LatentAttention>();
    const bool attends = attention != nullptr || latent != nullptr;
    const Rope rope = attends ? *layer.rope() : Rope{};
    const FeedForward network = layer.feed_forward.value_or(FeedForward{});
    py::dict each;
    each["n_heads"] = from[i].n_heads;
    each["n_kv_heads"] = attends || layer.has<DeltaRule>() ? from[i].n_kv_heads : 0;
    each["head_dim"] = from[i].head_dim;
    each["rope_dim"] = rope.dim;
    each["ffn_dim"] = network.dim;
    each["window"] = attention != nullptr ? attention->window : 0;
    each["rope_theta"] = rope.theta;
    each["attention_scale"] = py::none();
    if (attends) each["attention_scale"] = attention != nullptr ? attention->scale : latent->scale;
    each["attention_soft_cap"] = attention != nullptr ? attention->soft_cap : 0.0f;
    each["experts"] = py::none();
    if (network.experts) each["experts"] = numbers_of(*network.experts);
    each["gate_cut"] = network.gate_cut;
    const auto* const convolution = layer.find<ShortConvolution>();
    each["convolution_width"] = convolution != nullptr ? convolution->width : 0;
    each["scan"] = numbers_of(layer.scan());
    each["factors"] =
        py::dict(py::arg("attention") = attention != nullptr ? attention->factor : 1.0f,
                 py::arg("scan") = layer.scan() != nullptr ? layer.scan()->factor : 1.0f,
                 py::arg("feed_forward") = network.factor, py::arg("gate") = network.gate_factor);
    each["delta_rule"] = numbers_of(layer.find<DeltaRule>());
    each["rotates"] = layer.rotates();
    each["latent"] = numbers_of(latent);
    each["has_rope_factors"] = layer.rotates() && rope.has_model_factors;
    layers.append(each);
  }
  return layers;
}
py::dict numbers_of(const ModelConfig& config, const ArchDescriptor& arch) {
  py::dict result;
  result["layers"] = layers_of(config.layers, arch.layers);
  result["logit_soft_cap"] = arch.logit_soft_cap;
  result["embedding_scale"] = arch.embedding_scale;
  result["residual_scale"] = arch.residual_scale;
  result["logit_scale"] = arch.logit_scale;
  return result;
}

py::dict written(const GgufWriting& writing) {
  return py::dict(
      py::arg("rope_factors") = writing.rope_factors,
      py::arg("attention_scale") = writing.attention_scale,
      py::arg("always_with_experts") = writing.always_with_experts,
      py::arg("factors_unsaid") = writing.factors_unsaid,
      py::arg("factors_in_weights") = writing.factors_in_weights,
      py::arg("both_epsilons") = writing.both_epsilons,
      py::arg("expert_step") = writing.expert_step,
      py::arg("without_truncation") = writing.without_truncation,
      py::arg("b_and_a_by_key_head") = writing.b_and_a_by_key_head,
      py::arg("latents_apart") = writing.latents_apart,
      py::arg("joined") = std::vector<std::string>(writing.joined.begin(), writing.joined.end()));
}

class NativeSource {
 public:
  explicit NativeSource(const std::filesystem::path& path) {
    const WithoutGil without_gil;
    const ModelDirectory directory = ModelDirectory::open(path.native());
    source_ = std::make_shared<const ModelSource>(hf_source(directory));
    yarn_ = read_hf_config(directory.config(), directory.config_path()).yarn;
  }

  py::dict config() const {
    const ModelConfig& config = source_->config;
    py::dict result;
    result["architecture"] = config.architecture;
    result["dim"] = config.dim;
    result["vocab_size"] = config.vocab_size;
    result["context_length"] = config.context_length;
    result["window"] = config.window;
    result["rope_dim"] = config.rope.dim;
    result["rope_theta"] = config.rope.theta;
    result["rope_theta_windowed"] = config.rope_theta_windowed;
    result["rope_linear_factor"] = config.rope.linear_factor;
    result["rope_dynamic_factor"] = config.rope.dynamic_factor;
    result["rope_original_context"] = config.rope_original_context;
    result["rope_attention_factor"] = config.rope_attention_factor;
    result["yarn"] = py::none();
    if (yarn_) {
      py::dict yarn;
      yarn["factor"] = yarn_->factor;
      yarn["original_context"] = yarn_->original_context;
      yarn["beta_fast"] = yarn_->beta_fast;
      yarn["beta_slow"] = yarn_->beta_slow;
      yarn["truncate"] = yarn_->truncate;
      yarn["attention_factor"] = yarn_attention_factor(*yarn_);
      result["yarn"] = yarn;
    }
    result["norm_epsilon"] = config.norm_epsilon;
    const Family& family = *find_family(config.architecture);
    result["is_encoder"] = family.traits.encoder;
    result["has_soft_caps"] = family.traits.soft_caps;
    result["has_layer_norm"] = family.traits.layer_norm;
    result["has_layer_shapes"] = family.traits.layer_shapes;
    result["n_shared_kv_layers"] = config.n_shared_kv_layers;
    result["per_layer_dim"] = config.per_layer_dim;
    const ResidualStreams streams = config.streams.value_or(ResidualStreams{});
    result["n_streams"] = streams.n;
    result["active_stream"] = streams.active;
    result["scales_streams"] = streams.is_scaled;
    result["may_not_rotate"] = family.traits.may_not_rotate;
    result["tiles_values"] = family.traits.tiles_values;
    const ArchDescriptor described = describe(config), unsaid = usual(config);
    ModelConfig rotating = config;
    for (LayerConfig& layer : rotating.layers) layer.rotates.reset();
    result["rotates_as_usual"] = rotating_layers(described) == rotating_layers(describe(rotating));
    result["interleaves_rows"] =
        std::ranges::any_of(unsaid.layers,
                            [](const LayerDescriptor& layer) {
                              return layer.rotates() &&
                                     layer.rope()->style == RopeStyle::interleaved;
                            }) &&
        config.rope_style != RopeStyle::interleaved;
    result["audio"] = py::none();
    if (described.audio) {
      py::dict audio;
      audio["n_mels"] = described.audio->n_mels;
      audio["n_positions"] = described.audio->n_positions;
      audio["layers"] = layers_of(config.audio_layers, described.audio->layers);
      result["audio"] = audio;
    }
    result["query_growth"] = config.rope.query_growth;
    result["embedding_scale"] = config.embedding_scale;
    result["residual_scale"] = config.residual_scale;
    result["logit_scale"] = config.logit_scale;
    result["written"] = written(family.written);
    result["described"] = numbers_of(config, described);
    result["usual"] = numbers_of(config, unsaid);
    return result;
  }

  std::vector<std::string> notes() const { return source_->config.notes; }

  py::list tensors() const {
    py::list result;
    for (const SourceTensor& tensor : source_->tensors)
      result.append(py::cast(SourceView{source_, &tensor}));
    return result;
  }

  void check() const {
    if (const std::optional<std::string> damage = source_->damage())
      throw ModelFormatError(*damage);
  }

 private:
  std::shared_ptr<const ModelSource> source_;
  std::optional<Yarn> yarn_;
};

py::tuple texts_of(const std::array<std::string_view, ThinkingMarks::kMost>& texts) {
  std::vector<std::string> said;
  for (const std::string_view text : texts)
    if (!text.empty()) said.emplace_back(text);
  return py::tuple(py::cast(said));
}

py::dict marks_of(const ThinkingMarks& marks) {
  return py::dict(py::arg("signs") = texts_of(marks.signs),
                  py::arg("opening") = std::string(marks.opening),
                  py::arg("closing") = std::string(marks.closing),
                  py::arg("answer_openings") = texts_of(marks.answer_openings),
                  py::arg("answer_closings") = texts_of(marks.answer_closings),
                  py::arg("further_openings") = texts_of(marks.further_openings));
}

// Names of the same cuts together.
py::list listed_pre_tokenizers() {
  std::vector<std::pair<const PreTokenizer*, std::vector<std::string>>> all;
  for (const PreTokenizerName& each : pre_tokenizers()) {
    const auto same = [&](const auto& one) { return one.first == each.cuts; };
    auto found = std::ranges::find_if(all, same);
    if (found == all.end()) found = all.insert(all.end(), {each.cuts, {}});
    found->second.emplace_back(each.name);
  }
  py::list result;
  for (const auto& [cuts, names] : all) {
    const std::vector<std::string> splits(cuts->splits.begin(), cuts->splits.end());
    result.append(py::dict(py::arg("names") = py::tuple(py::cast(names)),
                           py::arg("splits") = py::tuple(py::cast(splits)),
                           py::arg("ignore_merges") = cuts->ignore_merges,
                           py::arg("add_bos") = cuts->add_bos, py::arg("add_sep") = cuts->add_sep));
  }
  return result;
}

// A family as those see it who list families.
py::dict listed(const Family& family) {
  py::dict titles;
  const auto add_title = [&](const char* kind, std::string_view title) {
    if (!title.empty()) titles[kind] = std::string(title);
  };
  add_title("dense", family.titles.dense);
  add_title("with_experts", family.titles.with_experts);
  add_title("recurrent", family.titles.recurrent);
  add_title("encoder", family.titles.encoder);
  add_title("speech", family.titles.speech);
  add_title("images", family.titles.images);
  py::list model_types, with_images;
  for (const HfModel& model : family.directories) model_types.append(std::string(model.model_type));
  for (const ImageModel& model : family.with_images)
    with_images.append(std::string(model.model_type));
  py::list thinking;
  for (const ThinkingMarks& marks : family.thinking) thinking.append(marks_of(marks));
  return py::dict(py::arg("architecture") = std::string(family.architecture),
                  py::arg("titles") = titles, py::arg("model_types") = model_types,
                  py::arg("with_images") = with_images, py::arg("thinking") = thinking);
}

}  // namespace

void register_source(py::module_& m) {
  m.def(
      "families",
      [] {
        py::list result;
        for (const Family* family : families()) result.append(listed(*family));
        return result;
      },
      "The families of models that akunu knows, in the order of their files: what people call "
      "them, by "
      "kind, the values of model_type in their directories, how they mark thoughts.");
  m.def("pre_tokenizers", &listed_pre_tokenizers,
        "How byte-level vocabularies cut text: names in files, regular expressions, defaults.");
  py::class_<SourceView>(m, "SourceTensor", "One tensor of a ModelSource.")
      .def_property_readonly(
          "name", [](const SourceView& view) { return view.tensor->name; },
          "The engine's name of it: 'layers.0.attention.q.weight'.")
      .def_property_readonly(
          "gguf_name",
          [](const SourceView& view) {
            return gguf_name(view.tensor->name, view.source->config.architecture);
          },
          "GGUF's name of it: 'blk.0.attn_q.weight'.")
      .def_property_readonly(
          "label", [](const SourceView& view) { return view.tensor->label(); },
          "Its file and its name there, for messages.")
      .def_property_readonly(
          "shape", [](const SourceView& view) { return shape_of(*view.tensor); },
          "Tuple of int in NumPy's order: the last dimension is contiguous.")
      .def_property_readonly(
          "format",
          [](const SourceView& view) { return std::string(format_info(view.tensor->format).name); },
          "Name of the engine's number format.")
      .def_property_readonly(
          "mlx", [](const SourceView& view) { return mlx_of(*view.tensor); },
          "(bits, group, type of scales) of MLX's groups, else None.")
      .def_property_readonly(
          "adds_one",
          [](const SourceView& view) { return view.tensor->transform == Transform::add_one; },
          "Whether the model multiplies by 1 more than what is stored.")
      .def_property_readonly(
          "is_logarithm",
          [](const SourceView& view) { return view.tensor->transform == Transform::minus_exp; },
          "Whether the model has -e^x of what is stored.")
      .def_property_readonly("parts", &parts_of,
                             "Its bytes where they lie, a uint8 array for each plane.");

  py::class_<NativeSource>(m, "ModelSource",
                           "A directory's model as the engine reads it: numbers and tensors. "
                           "Raises what loading raises.")
      .def(py::init<const std::filesystem::path&>(), py::arg("path"))
      .def_property_readonly("config", &NativeSource::config,
                             "The model's numbers: what the directory says, what that means for\n"
                             "each layer ('described'), and what the architecture means where a\n"
                             "file says nothing ('usual').")
      .def_property_readonly("notes", &NativeSource::notes, "What of it was not taken as it is.")
      .def_property_readonly("tensors", &NativeSource::tensors, "List of SourceTensor.")
      .def("check", &NativeSource::check,
           "Raises ModelFormatError where a file was truncated or changed since it was opened.");

  m.def("gguf_joined_names", &gguf_joined_names,
        "GGUF's names of a layer's tensors that hold several, and the engine's names of those.");
}

}  // namespace akunu::python
