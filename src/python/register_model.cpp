// _core.NativeLoad, _core.NativeModel, _core.Generation and what computes logits: a load under way,
// a loaded model with its scheduler, and requests under way.
//
// 1. What it does. Turns Python's arguments into requests of the scheduler (inference/scheduler.h),
//    and what comes out into arrays. It decides nothing: checks and defaults are in Python
//    (python/akunu) or in the scheduler.
// 2. What bounds it. The GIL: everything slower than a lookup releases it, and waits look for
//    Ctrl-C every kSignalInterval.
// 3. Where to change it. A new argument: the method of NativeModel, `register_model` at the end,
//    and _core.pyi. A new kind of request: a class beside NativeGeneration.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "inference/model.h"
#include "inference/scheduler.h"
#include "native_constraint.h"
#include "register.h"
#include "registry.h"
#include "waker.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// Python runs signal handlers in its main thread only, and between two instructions of Python: when
// Ctrl-C comes, nobody wakes that thread out of a wait in here. So it looks so often whether one
// came; no other thread has to.
constexpr std::chrono::milliseconds kSignalInterval{50};

bool is_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  const py::object main = threading.attr("main_thread")().attr("ident");
  const py::object own = threading.attr("get_ident")();
  return main.equal(own);
}

// Until `is_done(timeout)`, which waits that long at most. Throws what a signal handler raises.
template <class IsDone>
void wait_until(const IsDone& is_done) {
  if (is_done(std::chrono::milliseconds(0))) return;
  const std::chrono::milliseconds timeout = is_main_thread() ? kSignalInterval : kWithoutLimit;
  for (bool done = false; !done;) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const WithoutGil without_gil;
    done = is_done(timeout);
  }
}

// In a process that was forked from the one of its threads, nobody can join those or get hold of
// what they had locked; destroying what they wait on may take for ever. There, everything is left.
class Process {
 public:
  bool is_another() const { return getpid() != made_in_; }
  void check(const char* message) const {
    if (is_another()) throw DeviceError(message);
  }

 private:
  pid_t made_in_ = getpid();
};

struct Engine {
  std::unique_ptr<Model> model;
  std::unique_ptr<Scheduler> scheduler;  // after the model: it dies first
  Process process;

  static std::shared_ptr<Engine> make() {
    return {new Engine, [](Engine* engine) {
              if (!engine->process.is_another()) delete engine;
            }};
  }
};

using Tokens = py::array_t<uint32_t, py::array::c_style>;

std::vector<uint32_t> to_vector(const Tokens& tokens) {
  if (tokens.ndim() != 1) throw ArgumentError("tokens must be one-dimensional");
  return {tokens.data(), tokens.data() + tokens.size()};
}

std::vector<AdapterShare> shares_of(const std::map<uint32_t, float>& adapters) {
  std::vector<AdapterShare> shares;
  for (const auto& [adapter, weight] : adapters) shares.push_back({adapter, weight});
  return shares;
}

LogitsRequest logits_request(const Tokens& tokens, uint32_t first, int32_t priority,
                             const std::map<uint32_t, float>& adapters) {
  return {.tokens = to_vector(tokens),
          .first = first,
          .chunks = {},
          .generated = false,
          .priority = priority,
          .adapters = shares_of(adapters)};
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  __builtin_unreachable();
}

// Of each token its own, float32 [n], and those of the most likely ones with their ids, [n, kMaxLogprobs].
py::tuple as_arrays(const std::vector<TokenLogprobs>& logprobs) {
  const auto n = static_cast<py::ssize_t>(logprobs.size());
  const py::array::ShapeContainer each{n}, all{n, py::ssize_t{kMaxLogprobs}};
  py::array_t<float> own(each), most_likely(all);
  py::array_t<uint32_t> tokens(all);
  for (size_t i = 0; i < logprobs.size(); ++i) {
    own.mutable_data()[i] = logprobs[i].chosen;
    std::ranges::copy(logprobs[i].tokens, tokens.mutable_data() + i * kMaxLogprobs);
    std::ranges::copy(logprobs[i].logprobs, most_likely.mutable_data() + i * kMaxLogprobs);
  }
  return py::make_tuple(own, tokens, most_likely);
}

class NativeGeneration {
 public:
  NativeGeneration(std::shared_ptr<Generation> generation, const std::shared_ptr<Engine>& engine)
      : generation_(std::move(generation)), engine_(engine) {}
  ~NativeGeneration() {
    generation_->cancel();  // nobody will take what is left
    if (!process_.is_another()) generation_->on_change({});
    if (process_.is_another()) new std::shared_ptr<Generation>(std::move(generation_));
  }
  NativeGeneration(const NativeGeneration&) = delete;
  NativeGeneration& operator=(const NativeGeneration&) = delete;

  // New tokens; [] when the time is up; None when it is over. Without a time, until either comes.
  py::object next(std::optional<int> timeout_ms) {
    Generation& generation = get();
    std::array<uint32_t, 64> tokens;
    std::optional<size_t> n = 0;
    const auto is_done = [&](std::chrono::milliseconds timeout) {
      n = generation.next(tokens, timeout);
      return n != 0;
    };
    if (!timeout_ms) {
      wait_until(is_done);
    } else {
      const WithoutGil without_gil;
      is_done(std::chrono::milliseconds(*timeout_ms));
    }
    if (!n) return py::none();
    py::list list(*n);
    for (size_t i = 0; i < *n; ++i) list[i] = tokens[i];
    return list;
  }
  // Whatever is asked of it may take a lock.
  Generation& get() const {
    process_.check(
        "the process was forked after the generation began; it goes on in the parent only");
    return *generation_;
  }
  // Whenever tokens can be had, or it is over, the waker hears of this id; None: no more.
  void wake(const std::shared_ptr<Waker>& waker, uint64_t id) {
    get().on_change(waker ? waker->teller(id) : std::function<void()>());
  }
  uint32_t prompt_tokens() const { return generation_->n_given(); }
  void cancel() { generation_->cancel(); }
  uint64_t arrival() const { return generation_->arrival; }
  // The text ends after this many tokens, and so does what stays in the cache.
  void cut(uint32_t n_tokens) {
    if (const std::shared_ptr<Engine> engine = engine_.lock())
      engine->scheduler->cut(generation_, n_tokens);
  }

 private:
  std::shared_ptr<Generation> generation_;
  std::weak_ptr<Engine> engine_;
  Process process_;
};

// The struct of core/rows.h as akunu/options.py packs it.
Sampling sampling_of(const std::string& packed) {
  Sampling sampling;
  if (packed.size() != sizeof sampling)
    throw ArgumentError("options of sampling are " + std::to_string(sizeof sampling) +
                        " bytes, got " + std::to_string(packed.size()));
  std::memcpy(&sampling, packed.data(), sizeof sampling);
  return sampling;
}

// Logits under way.
class NativeLogits {
 public:
  explicit NativeLogits(std::shared_ptr<LogitsTask> task) : task_(std::move(task)) {}
  ~NativeLogits() {
    task_->cancel();
    if (!process_.is_another()) task_->on_change({});
    if (process_.is_another()) new std::shared_ptr<LogitsTask>(std::move(task_));
  }
  NativeLogits(const NativeLogits&) = delete;
  NativeLogits& operator=(const NativeLogits&) = delete;

  void wake(const std::shared_ptr<Waker>& waker, uint64_t id) {
    get().on_change(waker ? waker->teller(id) : std::function<void()>());
  }
  void cancel() { task_->cancel(); }
  bool wait(std::chrono::milliseconds timeout) { return get().wait(timeout); }
  // float32 [n_outputs, width], once `wait` was true.
  py::array_t<float> take() {
    const auto n_rows = static_cast<py::ssize_t>(task_->n_outputs());
    std::unique_ptr<float[]> values = task_->take();
    const py::capsule owner(values.get(),
                            [](void* pointer) { delete[] static_cast<float*>(pointer); });
    float* const first_value = values.release();
    return py::array_t<float>(py::array::ShapeContainer{n_rows, py::ssize_t{task_->width()}},
                              first_value, owner);
  }
  // Waits until it can be taken.
  py::array_t<float> result() {
    wait_until([&](std::chrono::milliseconds timeout) { return wait(timeout); });
    return take();
  }

 private:
  LogitsTask& get() const {
    process_.check(
        "the process was forked after the logits were asked for; they come in the parent");
    return *task_;
  }

  std::shared_ptr<LogitsTask> task_;
  Process process_;
};

Pooling pooling_of(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "cls") return Pooling::first;
  if (name == "last") return Pooling::last;
  if (name == "max") return Pooling::max;
  if (name == "none") return Pooling::none;
  throw ArgumentError("pooling is '" + name + "'; possible are mean, cls, last, max and none");
}

const char* name_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::none:
      return "none";
    case Pooling::mean:
      return "mean";
    case Pooling::first:
      return "cls";
    case Pooling::last:
      return "last";
    case Pooling::max:
      return "max";
  }
  __builtin_unreachable();
}

class NativeModel {
 public:
  explicit NativeModel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  ~NativeModel() { close(); }
  NativeModel(const NativeModel&) = delete;
  NativeModel& operator=(const NativeModel&) = delete;

  std::unique_ptr<NativeGeneration> start(
      const Tokens& tokens, uint32_t max_tokens, std::vector<uint32_t> stop_ids,
      const Sampling& sampling, const std::map<uint32_t, float>& logit_bias,
      std::vector<uint32_t> dry_breakers, std::optional<uint32_t> logprobs,
      std::optional<uint32_t> prompt_logprobs, const NativeGeneration* shares_with, uint32_t choice,
      int32_t priority, NativeConstraint* constraint, const std::map<uint32_t, float>& adapters) {
    const std::shared_ptr<Engine> engine = this->engine();
    std::vector<TokenBias> biases;
    for (const auto& [token, bias] : logit_bias) biases.push_back({token, bias});
    return std::make_unique<NativeGeneration>(
        engine->scheduler->generate({.prompt = to_vector(tokens),
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
                                     .adapters = shares_of(adapters)},
                                    constraint ? constraint->take() : nullptr),
        engine);
  }

  std::unique_ptr<NativeLogits> start_logits(LogitsRequest request) {
    return std::make_unique<NativeLogits>(engine()->scheduler->logits(std::move(request)));
  }
  std::unique_ptr<NativeLogits> start_encode(EncodeRequest request) {
    return std::make_unique<NativeLogits>(engine()->scheduler->encode(std::move(request)));
  }
  // float32 [n - first, vocab_size]
  py::array_t<float> logits(LogitsRequest request) {
    if (request.tokens.empty()) {
      const auto vocab_size = static_cast<py::ssize_t>(engine()->model->arch().vocab_size);
      return py::array_t<float>(py::array::ShapeContainer{py::ssize_t{0}, vocab_size});
    }
    return start_logits(std::move(request))->result();
  }

  bool wait_until_idle(int timeout_ms) const {
    const std::shared_ptr<Engine> engine = this->engine();
    const WithoutGil without_gil;
    return engine->scheduler->wait_until_idle(std::chrono::milliseconds(timeout_ms));
  }

  // Ends what is under way; memory goes when the last caller inside has left.
  void close() {
    std::shared_ptr<Engine> engine = std::exchange(engine_, nullptr);
    if (!engine || engine->process.is_another()) return;
    const WithoutGil without_gil;
    engine->scheduler->stop();
    engine.reset();
  }

  py::dict config() const {
    const ModelConfig& config = engine()->model->config();
    py::dict result;
    result["architecture"] = config.architecture;
    result["name"] = config.name;
    result["dim"] = config.dim;
    result["n_layers"] = config.layers.size();
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
    py::tuple windows(config.layers.size());
    for (size_t i = 0; i < windows.size(); ++i)
      windows[i] = engine()->model->arch().layers[i].window;
    result["windows"] = windows;
    result["vocab_size"] = config.vocab_size;
    result["context_length"] = config.context_length;
    result["rope_theta"] = config.rope_theta;
    result["rope_dim"] = config.rope_dim;
    result["norm_epsilon"] = config.norm_epsilon;
    return result;
  }

  // Bytes by label, as the device counts them.
  py::dict memory() const {
    py::dict result;
    uint64_t total = 0;
    for (const MemoryUse& use : engine()->model->device().memory_use()) {
      result[py::str(use.mapped ? use.label + " (mapped)" : use.label)] = use.bytes;
      total += use.bytes;
    }
    result["total"] = total;
    return result;
  }

  // What waits and runs, and the pages of each group of the cache. Waits for nobody.
  py::dict occupancy() const {
    const std::shared_ptr<Engine> engine = this->engine();
    const std::vector<CacheGroup>& groups = engine->model->cache().groups();
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
    result["cache"] = cache;
    return result;
  }

  std::shared_ptr<Engine> engine() const {
    if (!engine_) throw Error("the model is closed");
    engine_->process.check(
        "the process was forked after the model was loaded; load the model in the child");
    return engine_;
  }

 private:
  std::shared_ptr<Engine> engine_;
};

// Loads the engine in a thread of its own, which Python doesn't know, so that the process may end
// while it runs. A thread of Python's that begins while the interpreter ends reads what is freed.
class NativeLoad {
 public:
  NativeLoad(const std::filesystem::path& path, const std::string& device,
             std::optional<uint32_t> context, uint32_t threads, const std::string& kv_type,
             std::optional<uint64_t> kv_memory, bool prefix_cache, uint32_t max_waiting,
             const std::map<std::string, std::filesystem::path>& adapters) {
    LoadOptions options{
        .context = context, .kv_memory = kv_memory, .kv_format = kv_format(kv_type)};
    for (const auto& [name, adapter] : adapters)
      options.adapters.push_back({name, adapter.string()});
    std::packaged_task<std::shared_ptr<Engine>()> load(
        [path = path.string(), device, threads, options, prefix_cache, max_waiting] {
          std::shared_ptr<Engine> engine = Engine::make();
          engine->model = Model::load(path, share_device(device, {.threads = threads}), options);
          engine->scheduler = std::make_unique<Scheduler>(
              *engine->model,
              SchedulerOptions{.prefix_cache = prefix_cache, .most_waiting = max_waiting});
          return engine;
        });
    loaded_ = load.get_future();
    try {
      std::thread(std::move(load)).detach();
    } catch (const std::system_error& error) {
      throw DeviceError(std::string("the system refused a thread to load the model in: ") +
                        error.what());
    }
  }
  ~NativeLoad() { abandon(); }
  NativeLoad(const NativeLoad&) = delete;
  NativeLoad& operator=(const NativeLoad&) = delete;

  // Once: waits for the model, and throws what its load threw.
  std::unique_ptr<NativeModel> result() {
    process_.check("the process was forked while the model was loaded; load it in the child");
    if (!loaded_.valid()) throw Error("the load was abandoned, or its result is taken");
    try {
      wait_until([&](std::chrono::milliseconds timeout) {
        if (timeout == kWithoutLimit) loaded_.wait();
        return timeout == kWithoutLimit || loaded_.wait_for(timeout) == std::future_status::ready;
      });
    } catch (...) {
      abandon();
      throw;
    }
    return std::make_unique<NativeModel>(loaded_.get());
  }

  // The model goes as soon as it is loaded.
  void abandon() {
    const WithoutGil without_gil;
    loaded_ = {};
  }

 private:
  std::future<std::shared_ptr<Engine>> loaded_;
  Process process_;
};

}  // namespace

Format kv_format(const std::string& name) {
  if (name == "f16") return Format::f16;
  if (name == "f32") return Format::f32;
  throw ArgumentError("kv_type is '" + name + "'; possible are f16 and f32");
}

void register_model(py::module_& m) {
  py::class_<NativeGeneration>(m, "Generation")
      .def("next", &NativeGeneration::next, py::arg("timeout_ms") = py::none())
      .def("wake", &NativeGeneration::wake, py::arg("waker"), py::arg("id") = 0)
      .def("cancel", &NativeGeneration::cancel)
      .def(
          "logprobs",
          [](const NativeGeneration& g, size_t first, size_t n) {
            return as_arrays(g.get().logprobs(first, n));
          },
          py::arg("first"), py::arg("n"))
      .def("prompt_logprobs",
           [](const NativeGeneration& g) { return as_arrays(g.get().prompt_logprobs()); })
      .def("cut", &NativeGeneration::cut, py::arg("n_tokens"))
      .def_property_readonly("finish_reason",
                             [](const NativeGeneration& g) { return name_of(g.get().reason()); })
      .def_property_readonly("prompt_tokens",
                             [](const NativeGeneration& g) { return g.prompt_tokens(); })
      .def_property_readonly("completion_tokens",
                             [](const NativeGeneration& g) { return g.get().completion_tokens(); })
      .def_property_readonly("prompt_tokens_done",
                             [](const NativeGeneration& g) { return g.get().n_given_done(); })
      .def_property_readonly("cached_tokens",
                             [](const NativeGeneration& g) { return g.get().n_cached(); })
      .def_property_readonly("prompt_seconds",
                             [](const NativeGeneration& g) { return g.get().prompt_seconds(); })
      .def(
          "completion_seconds",
          [](const NativeGeneration& g, uint32_t n_tokens) {
            return g.get().completion_seconds(n_tokens);
          },
          py::arg("n_tokens"));

  py::class_<NativeLogits>(m, "PendingLogits")
      .def("wake", &NativeLogits::wake, py::arg("waker"), py::arg("id") = 0)
      .def("cancel", &NativeLogits::cancel)
      .def("is_done",
           [](NativeLogits& logits) { return logits.wait(std::chrono::milliseconds(0)); })
      .def("take", &NativeLogits::take)
      .def("result", &NativeLogits::result);

  py::class_<NativeLoad>(m, "NativeLoad")
      .def(py::init<const std::filesystem::path&, const std::string&, std::optional<uint32_t>,
                    uint32_t, const std::string&, std::optional<uint64_t>, bool, uint32_t,
                    const std::map<std::string, std::filesystem::path>&>(),
           py::arg("path"), py::kw_only(), py::arg("device"), py::arg("context"),
           py::arg("threads"), py::arg("kv_type"), py::arg("kv_memory"), py::arg("prefix_cache"),
           py::arg("max_waiting"),
           py::arg("adapters") = std::map<std::string, std::filesystem::path>())
      .def("result", &NativeLoad::result)
      .def("abandon", &NativeLoad::abandon);

  py::class_<NativeModel>(m, "NativeModel")
      .def(
          "start",
          [](NativeModel& model, const Tokens& tokens, uint32_t max_tokens,
             std::vector<uint32_t> stop_ids, const std::string& sampling,
             const std::map<uint32_t, float>& logit_bias, std::vector<uint32_t> dry_breakers,
             std::optional<uint32_t> logprobs, std::optional<uint32_t> prompt_logprobs,
             const NativeGeneration* shares_with, uint32_t choice, int32_t priority,
             NativeConstraint* constraint, const std::map<uint32_t, float>& adapters) {
            return model.start(tokens, max_tokens, std::move(stop_ids), sampling_of(sampling),
                               logit_bias, std::move(dry_breakers), logprobs, prompt_logprobs,
                               shares_with, choice, priority, constraint, adapters);
          },
          py::arg("tokens"), py::kw_only(), py::arg("max_tokens"), py::arg("stop_ids"),
          py::arg("sampling"), py::arg("logit_bias"),
          py::arg("dry_breakers") = std::vector<uint32_t>(), py::arg("logprobs") = py::none(),
          py::arg("prompt_logprobs") = py::none(), py::arg("shares_with") = py::none(),
          py::arg("choice") = 0, py::arg("priority") = 0, py::arg("constraint") = py::none(),
          py::arg("adapters") = std::map<uint32_t, float>())
      .def(
          "logits",
          [](NativeModel& model, const Tokens& tokens, uint32_t first, int32_t priority,
             const std::map<uint32_t, float>& adapters) {
            return model.logits(logits_request(tokens, first, priority, adapters));
          },
          py::arg("tokens"), py::arg("first") = 0, py::arg("priority") = 0,
          py::arg("adapters") = std::map<uint32_t, float>())
      .def(
          "start_logits",
          [](NativeModel& model, const Tokens& tokens, uint32_t first, int32_t priority,
             const std::map<uint32_t, float>& adapters) {
            return model.start_logits(logits_request(tokens, first, priority, adapters));
          },
          py::arg("tokens"), py::arg("first") = 0, py::arg("priority") = 0,
          py::arg("adapters") = std::map<uint32_t, float>())
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
                               const ArchDescriptor& arch = model.engine()->model->arch();
                               if (!arch.embeds) return py::none();
                               const Model& loaded = *model.engine()->model;
                               return py::dict(py::arg("dim") = loaded.output_width(),
                                               py::arg("pooling") = name_of(arch.pooling),
                                               py::arg("classifies") = loaded.classifies());
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
      .def("wait_until_idle", &NativeModel::wait_until_idle, py::arg("timeout_ms"))
      .def("close", &NativeModel::close)
      .def(
          "labels",
          [](const NativeModel& model, const std::string& row_class) {
            for (const RowClass each : {RowClass::single, RowClass::few, RowClass::many})
              if (akunu::name_of(each) == row_class) return model.engine()->model->labels(each);
            throw ArgumentError("row_class is '" + row_class +
                                "'; possible are single, few and many");
          },
          py::arg("row_class") = "single")
      .def_property_readonly("config", &NativeModel::config)
      .def_property_readonly("memory", &NativeModel::memory)
      .def_property_readonly("occupancy", &NativeModel::occupancy)
      .def_property_readonly("adapters",
                             [](const NativeModel& model) {
                               const auto names = model.engine()->model->adapters().names();
                               return std::vector<std::string>(names.begin(), names.end());
                             })
      .def_property_readonly(
          "context", [](const NativeModel& model) { return model.engine()->model->context(); })
      .def_property_readonly(
          "notes", [](const NativeModel& model) { return model.engine()->model->notes(); });
}

}  // namespace akunu::python
