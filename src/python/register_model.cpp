// _core.NativeModel (native_model.h): its methods, and what Python calls.
//
// 1. What it does. Turns Python's arguments (arguments.h) into requests of the scheduler
//    (inference/scheduler.h). It decides nothing: checks and defaults are in Python (python/akunu) or
//    in the scheduler. What comes out: register_generation.cpp, register_logits.cpp.
// 2. What bounds it. The GIL: everything slower than a lookup releases it, and waits look for Ctrl-C
//    (wait_until.h).
// 3. Where to change it. A new argument: the method of NativeModel, `register_model` at the end, and
//    _core.pyi. A new kind of request: a class beside NativeGeneration.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "inference/model.h"
#include "inference/scheduler.h"
#include "native_model.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {

std::unique_ptr<NativeGeneration> NativeModel::start(
    const Tokens& tokens, uint32_t max_tokens, std::vector<uint32_t> stop_ids,
    const Sampling& sampling, const std::map<uint32_t, float>& logit_bias,
    std::vector<uint32_t> dry_breakers, std::optional<uint32_t> logprobs,
    std::optional<uint32_t> prompt_logprobs, const NativeGeneration* shares_with, uint32_t choice,
    int32_t priority, NativeConstraint* constraint, const std::map<uint32_t, float>& adapters,
    const Window& window, const Rules* rules, uint32_t speculation, bool keeps_positions,
    const NativeGeneration* goes_on_from, const GivenImages& images) {
  const std::shared_ptr<Engine> engine = this->engine();
  std::vector<TokenBias> biases;
  for (const auto& [token, bias] : logit_bias) biases.push_back({token, bias});
  return std::make_unique<NativeGeneration>(
      engine->scheduler->generate(
          {.prompt = to_vector(tokens),
           .max_tokens = max_tokens,
           .stop_ids = std::move(stop_ids),
           .sampling = sampling,
           .logit_bias = std::move(biases),
           .dry_breakers = std::move(dry_breakers),
           .logprobs = logprobs.value_or(kNone),
           .prompt_logprobs = prompt_logprobs.value_or(kNone),
           .shares_with = shares_with ? shares_with->arrival() : 0,
           .choice = choice,
           .priority = priority,
           .speculation = speculation,
           .adapters = shares_of(adapters),
           .window = window,
           .images = placed(images),
           .rules = rules ? rules->fixed : TranscriptionRules{},
           .banned = rules ? rules->banned : std::vector<uint32_t>{},
           .banned_first = rules ? rules->banned_first : std::vector<uint32_t>{},
           .keeps_positions = keeps_positions,
           .goes_on_from = goes_on_from ? goes_on_from->shared() : nullptr},
          constraint ? constraint->take() : nullptr),
      engine);
}

std::unique_ptr<NativeLogits> NativeModel::start_logits(LogitsRequest request) {
  return std::make_unique<NativeLogits>(engine()->scheduler->logits(std::move(request)));
}

std::unique_ptr<NativeLogits> NativeModel::start_encode(EncodeRequest request) {
  return std::make_unique<NativeLogits>(engine()->scheduler->encode(std::move(request)));
}

py::array_t<float> NativeModel::logits(LogitsRequest request) {
  if (request.tokens.empty()) {
    const auto vocab_size = static_cast<py::ssize_t>(engine()->model->context.arch().vocab_size);
    return py::array_t<float>(py::array::ShapeContainer{py::ssize_t{0}, vocab_size});
  }
  return start_logits(std::move(request))->result();
}

bool NativeModel::wait_until_idle(int timeout_ms) const {
  const std::shared_ptr<Engine> engine = this->engine();
  const WithoutGil without_gil;
  return engine->scheduler->wait_until_idle(std::chrono::milliseconds(timeout_ms));
}

void NativeModel::close() {
  std::shared_ptr<Engine> engine = std::exchange(engine_, nullptr);
  if (!engine || engine->home.is_another()) return;
  const WithoutGil without_gil;
  engine->scheduler->stop();
  engine.reset();
}

py::dict NativeModel::config() const {
  const ModelConfig& config = engine()->model->context.weights->config;
  py::dict result;
  result["architecture"] = config.architecture;
  result["name"] = config.name;
  result["dim"] = config.dim;
  result["n_layers"] = n_own_layers(config);
  // Where layers differ, the most of any.
  const auto most = [&](uint32_t LayerConfig::* number) {
    uint32_t found = 0;
    for (const LayerConfig& layer : config.layers) found = std::max(found, layer.*number);
    return found;
  };
  result["n_heads"] = most(&LayerConfig::n_heads);
  result["n_kv_heads"] = most(&LayerConfig::n_kv_heads);
  result["head_dim"] = most(&LayerConfig::head_dim);
  result["ffn_dim"] = most(&LayerConfig::ffn_dim);
  py::tuple windows(n_own_layers(config));
  for (size_t i = 0; i < windows.size(); ++i) {
    const LayerDescriptor& layer = engine()->model->context.arch().layers[i];
    const auto* const convolution = layer.find<ShortConvolution>();
    const std::optional<RecurrentState> state = layer.state();
    windows[i] = layer.attention() != nullptr ? layer.attention()->window
                 : convolution != nullptr     ? convolution->width
                 : state                      ? state->width
                                              : 0;
  }
  result["windows"] = windows;
  result["vocab_size"] = config.vocab_size;
  result["context_length"] = config.context_length;
  result["rope_theta"] = config.rope.theta;
  result["rope_dim"] = config.rope.dim;
  result["norm_epsilon"] = config.norm_epsilon;
  result["latent_rank"] = config.latent.rank;
  return result;
}

py::dict NativeModel::memory() const {
  py::dict result;
  uint64_t total = 0;
  for (const MemoryUse& use : engine()->model->context.device->memory_use()) {
    result[py::str(use.mapped ? use.label + " (mapped)" : use.label)] = use.bytes;
    total += use.bytes;
  }
  result["total"] = total;
  return result;
}

py::dict NativeModel::occupancy() const {
  const std::shared_ptr<Engine> engine = this->engine();
  const std::vector<CacheGroup>& groups = engine->model->context.cache.groups();
  py::list cache;
  for (size_t i = 0; i < groups.size(); ++i) {
    const PageCounts counts = engine->scheduler->occupancy().pages(i);
    py::dict of_group;
    of_group["kind"] = akunu::name_of(groups[i].shape.kind);
    of_group["in_use"] = counts.needed;
    of_group["cached"] = counts.spare;
    of_group["free"] = groups[i].pages.n_pages() - counts.needed - counts.spare;
    cache.append(of_group);
  }
  py::dict result;
  result["waiting"] = engine->scheduler->n_waiting();
  result["running"] = engine->scheduler->occupancy().n_running();
  result["drafted"] = engine->scheduler->occupancy().n_drafted();
  result["accepted"] = engine->scheduler->occupancy().n_held();
  result["cache"] = cache;
  result["disk"] = py::none();
  if (const std::optional<DiskCounts> counts = engine->scheduler->disk_counts())
    result["disk"] =
        py::dict(py::arg("files") = counts->n_runs, py::arg("bytes") = counts->n_bytes,
                 py::arg("most_bytes") = counts->most_bytes, py::arg("written") = counts->n_written,
                 py::arg("restored") = counts->n_restored, py::arg("damaged") = counts->n_damaged,
                 py::arg("problem") = counts->problem);
  return result;
}

std::shared_ptr<Engine> NativeModel::engine() const {
  if (!engine_) throw Error("the model is closed");
  engine_->home.refuse_elsewhere(
      "the process was forked after the model was loaded; load the model in the child");
  return engine_;
}

void register_model(py::module_& m) {
  py::class_<Image, std::shared_ptr<Image>>(m, "Image")
      // What the encoder made of it, float32 [n_tokens * dim]; empty before a text with it has begun.
      .def_property_readonly("vectors", [](const Image& image) {
        return py::array_t<float>(static_cast<py::ssize_t>(image.vectors.size()),
                                  image.vectors.data());
      });
  py::class_<NativeModel>(m, "NativeModel")
      .def(
          "start",
          [](NativeModel& model, const Tokens& tokens, uint32_t max_tokens,
             std::vector<uint32_t> stop_ids, const std::string& sampling,
             const std::map<uint32_t, float>& logit_bias, std::vector<uint32_t> dry_breakers,
             std::optional<uint32_t> logprobs, std::optional<uint32_t> prompt_logprobs,
             const NativeGeneration* shares_with, uint32_t choice, int32_t priority,
             NativeConstraint* constraint, const std::map<uint32_t, float>& adapters,
             const Window& window, const Rules* rules, uint32_t speculation, bool keeps_positions,
             const NativeGeneration* goes_on_from, const GivenImages& images) {
            return model.start(tokens, max_tokens, std::move(stop_ids), sampling_of(sampling),
                               logit_bias, std::move(dry_breakers), logprobs, prompt_logprobs,
                               shares_with, choice, priority, constraint, adapters, window, rules,
                               speculation, keeps_positions, goes_on_from, images);
          },
          py::arg("tokens"), py::kw_only(), py::arg("max_tokens"), py::arg("stop_ids"),
          py::arg("sampling"), py::arg("logit_bias"),
          py::arg("dry_breakers") = std::vector<uint32_t>(), py::arg("logprobs") = py::none(),
          py::arg("prompt_logprobs") = py::none(), py::arg("shares_with") = py::none(),
          py::arg("choice") = 0, py::arg("priority") = 0, py::arg("constraint") = py::none(),
          py::arg("adapters") = std::map<uint32_t, float>(), py::arg("window") = py::none(),
          py::arg("rules") = py::none(), py::arg("speculation") = kSpeculationOff,
          py::arg("keeps_positions") = false, py::arg("goes_on_from") = py::none(),
          py::arg("images") = GivenImages())
      .def(
          "logits",
          [](NativeModel& model, const Tokens& tokens, uint32_t first, int32_t priority,
             const std::map<uint32_t, float>& adapters, const Window& window,
             const GivenImages& images) {
            return model.logits(
                logits_request(tokens, first, priority, adapters, window, false, images));
          },
          py::arg("tokens"), py::arg("first") = 0, py::arg("priority") = 0,
          py::arg("adapters") = std::map<uint32_t, float>(), py::arg("window") = py::none(),
          py::arg("images") = GivenImages())
      .def(
          "start_logits",
          [](NativeModel& model, const Tokens& tokens, uint32_t first, int32_t priority,
             const std::map<uint32_t, float>& adapters, const Window& window) {
            return model.start_logits(logits_request(tokens, first, priority, adapters, window));
          },
          py::arg("tokens"), py::arg("first") = 0, py::arg("priority") = 0,
          py::arg("adapters") = std::map<uint32_t, float>(), py::arg("window") = py::none())
      .def(
          "start_encode",
          [](NativeModel& model, const Tokens& tokens, const std::string& pooling,
             std::optional<uint32_t> second_segment, int32_t priority) {
            return model.start_encode({.tokens = to_vector(tokens),
                                       .pooling = pooling_of(pooling),
                                       .second_segment = second_segment.value_or(kNone),
                                       .priority = priority});
          },
          py::arg("tokens"), py::kw_only(), py::arg("pooling"),
          py::arg("second_segment") = py::none(), py::arg("priority") = 0)
      .def_property_readonly("embedding",
                             [](const NativeModel& model) -> py::object {
                               const ArchDescriptor& arch = model.engine()->model->context.arch();
                               if (!arch.embeds) return py::none();
                               const Model& loaded = *model.engine()->model;
                               return py::dict(
                                   py::arg("dim") = loaded.context.weights->output_width(),
                                   py::arg("pooling") = name_of(arch.pooling),
                                   py::arg("classifies") = loaded.context.weights->classifies());
                             })
      // Weights of cross-attention of the rows from `first` on: float32 [n, alignment heads * positions].
      .def(
          "start_alignment",
          [](NativeModel& model, const Tokens& tokens, const Window& window, uint32_t first,
             int32_t priority) {
            return model.start_logits(logits_request(tokens, first, priority, {}, window, true));
          },
          py::arg("tokens"), py::arg("window"), py::arg("first") = 0, py::arg("priority") = 0)
      // Of numbers of its patches, float32 [n_patches, numbers]; those that become a token lie one after the other.
      // `width`: how many patches wide the image is; 0: the model's fixed width.
      .def(
          "image",
          [](const NativeModel& model,
             const py::array_t<float, py::array::c_style | py::array::forcecast>& patches,
             uint32_t width) {
            const std::shared_ptr<Engine> engine = model.engine();
            const std::span<const float> numbers(patches.data(),
                                                 static_cast<size_t>(patches.size()));
            const WithoutGil released;
            return engine->scheduler->image(numbers, width);
          },
          py::arg("patches"), py::arg("width") = 0)
      // The numbers of its encoder of images; None: it has none.
      .def_property_readonly("images",
                             [](const NativeModel& model) -> py::object {
                               const auto& images = model.engine()->model->context.arch().images;
                               if (!images) return py::none();
                               return py::dict(
                                   py::arg("patch_size") = images->is.patch_size,
                                   py::arg("n_frames") = images->is.n_frames,
                                   py::arg("patches_per_side") = images->is.patches_per_side,
                                   py::arg("square_side") = images->is.square_side,
                                   py::arg("most_patches") = images->n_patches(),
                                   py::arg("token") = images->is.token,
                                   py::arg("preparation") = images->is.preparation,
                                   py::arg("longest_edge") = images->is.longest_edge);
                             })
      // The numbers of its encoder of audio; None: it has none.
      .def_property_readonly("audio",
                             [](const NativeModel& model) -> py::object {
                               const auto& audio = model.engine()->model->context.arch().audio;
                               if (!audio) return py::none();
                               return py::dict(
                                   py::arg("n_mels") = audio->n_mels,
                                   py::arg("n_frames") = audio->n_frames(),
                                   py::arg("n_alignment_heads") = audio->n_alignment_heads());
                             })
      .def(
          "logits_chunked",
          [](NativeModel& model, const Tokens& tokens, std::vector<uint32_t> chunks,
             const std::string& roles, uint32_t first, const std::map<uint32_t, float>& adapters) {
            if (roles != "prompt" && roles != "generated")
              throw ArgumentError("roles is '" + roles + "'; possible are prompt and generated");
            if (roles == "generated" && chunks.empty())
              throw ArgumentError("rows that count as generated need chunks");
            return model.logits({.tokens = to_vector(tokens),
                                 .first = first,
                                 .chunks = std::move(chunks),
                                 .generated = roles == "generated",
                                 .adapters = shares_of(adapters)});
          },
          py::arg("tokens"), py::arg("chunks"), py::arg("roles") = "prompt", py::arg("first") = 0,
          py::arg("adapters") = std::map<uint32_t, float>())
      // Of the prediction head, of all of these tokens but the last: float32 [n - 1, vocab_size].
      .def(
          "logits_ahead",
          [](NativeModel& model, const Tokens& tokens, uint32_t first) {
            std::vector<uint32_t> rows = to_vector(tokens);
            if (rows.size() < 2) throw ArgumentError("a prediction head reads two tokens at least");
            const uint32_t behind = rows.back();
            rows.pop_back();
            return model.logits(
                {.tokens = std::move(rows), .first = first, .chunks = {}, .behind = behind});
          },
          py::arg("tokens"), py::arg("first") = 0)
      .def("wait_until_idle", &NativeModel::wait_until_idle, py::arg("timeout_ms"))
      .def("close", &NativeModel::close)
      .def(
          "labels",
          [](const NativeModel& model, const std::string& row_class) {
            for (const RowClass each : {RowClass::single, RowClass::few, RowClass::many})
              if (akunu::name_of(each) == row_class)
                return model.engine()->model->programs.labels(each);
            throw ArgumentError("row_class is '" + row_class +
                                "'; possible are single, few and many");
          },
          py::arg("row_class") = "single")
      .def_property_readonly("config", &NativeModel::config)
      .def_property_readonly("memory", &NativeModel::memory)
      .def_property_readonly("occupancy", &NativeModel::occupancy)
      .def_property_readonly("adapters",
                             [](const NativeModel& model) {
                               return model.engine()->model->context.adapters.get()->names();
                             })
      .def(
          "load_adapter",
          [](const NativeModel& model, const std::string& name, const std::filesystem::path& path,
             std::vector<uint32_t> digest) {
            const std::shared_ptr<Engine> engine = model.engine();
            const WithoutGil without_gil;
            return engine->scheduler->load_adapter({name, path.string()}, std::move(digest));
          },
          py::arg("name"), py::arg("path"), py::arg("digest"))
      .def(
          "unload_adapter",
          [](const NativeModel& model, uint32_t number) {
            const std::shared_ptr<Engine> engine = model.engine();
            const WithoutGil without_gil;
            engine->scheduler->unload_adapter(number);
          },
          py::arg("number"))
      .def_property_readonly(
          "context",
          [](const NativeModel& model) { return model.engine()->model->context.n_positions(); })
      .def_property_readonly(
          "notes", [](const NativeModel& model) { return model.engine()->model->notes(); });
}

}  // namespace akunu::python
