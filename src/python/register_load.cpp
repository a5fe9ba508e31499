// _core.NativeLoad: a load under way.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "arguments.h"
#include "core/error.h"
#include "core/home_process.h"
#include "core/kernel_params.h"
#include "core/rows.h"
#include "inference/engine.h"
#include "inference/speculation.h"
#include "native_model.h"
#include "register.h"
#include "registry.h"
#include "wait_until.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

template <class Value>
void take(py::dict& given, const char* name, Value& value) {
  if (!given.contains(name)) return;
  value = given[name].cast<Value>();
  given.attr("pop")(name);
}

#include "load_options.inc"

LoadOptions load_options(py::dict given) {
  LoadOptions options;
  take_numbers(given, options);
  for (const auto& [name, value] : given)
    throw py::type_error("NativeLoad has no option " + py::cast<std::string>(name));
  return options;
}

// Loads the engine in a thread of its own, which Python doesn't know, so that the process may end
// while it runs. A thread of Python's that begins while the interpreter ends reads what is freed.
class NativeLoad {
 public:
  NativeLoad(const std::filesystem::path& path, const std::string& device, uint32_t threads,
             const std::string& kv_type, uint32_t gpus, bool prefix_cache, uint32_t max_waiting,
             const std::map<std::string, std::filesystem::path>& adapters,
             const std::vector<std::pair<uint32_t, uint32_t>>& alignment_heads,
             const std::optional<std::filesystem::path>& draft,
             const std::optional<std::filesystem::path>& mmproj, LoadOptions options) {
    options.kv_format = kv_format(kv_type);
    for (const auto& [name, adapter] : adapters)
      options.adapters.push_back({name, adapter.string()});
    if (mmproj) options.mmproj = mmproj->string();
    for (const auto& [layer, head] : alignment_heads)
      options.alignment_heads.push_back({layer, head});
    begin(
        [path = path.string(), device, threads, gpus, options,
         of_scheduler = SchedulerOptions{.prefix_cache = prefix_cache, .most_waiting = max_waiting},
         draft_path = draft ? draft->string() : std::string()] {
          return Engine::load(path, draft_path,
                              share_device(device, {.threads = threads, .gpus = gpus}), options,
                              of_scheduler);
        });
  }
  // Another context over the weights of a model.
  NativeLoad(const NativeModel& of, const std::string& kv_type, bool prefix_cache,
             uint32_t max_waiting, LoadOptions options) {
    options.kv_format = kv_format(kv_type);
    const Context& context = of.engine()->model->context;
    const std::shared_ptr<const Adapters> loaded = context.adapters.get();
    begin([weights = context.weights,
           adapters = std::vector(loaded->slots().begin(), loaded->slots().end()), options,
           of_scheduler =
               SchedulerOptions{.prefix_cache = prefix_cache, .most_waiting = max_waiting}] {
      return Engine::over(weights, adapters, options, of_scheduler);
    });
  }
  ~NativeLoad() { abandon(); }
  NativeLoad(const NativeLoad&) = delete;
  NativeLoad& operator=(const NativeLoad&) = delete;

  // Once: waits for the model, and throws what its load threw.
  std::unique_ptr<NativeModel> result() {
    home_.refuse_elsewhere(
        "the process was forked while the model was loaded; load it in the child");
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
  template <class Load>
  void begin(Load&& run) {
    std::packaged_task<std::shared_ptr<Engine>()> load(std::forward<Load>(run));
    loaded_ = load.get_future();
    try {
      std::thread(std::move(load)).detach();
    } catch (const std::system_error& error) {
      throw DeviceError(std::string("the system refused a thread to load the model in: ") +
                        error.what());
    }
  }

  std::future<std::shared_ptr<Engine>> loaded_;
  HomeProcess home_;
};

}  // namespace

void register_load(py::module_& m) {
  m.attr("OPTION_LIMITS") =
      py::dict(py::arg("max_option_words") = kMaxOptionWords,
               py::arg("words_per_bias") = sizeof(TokenBias) / sizeof(uint32_t),
               py::arg("max_logprobs") = kMaxLogprobs, py::arg("most_drafted") = kMostDrafted,
               py::arg("max_gpus") = kMaxRanks);
  py::class_<NativeLoad>(m, "NativeLoad")
      .def(py::init([](const std::filesystem::path& path, const std::string& device,
                       uint32_t threads, const std::string& kv_type, uint32_t gpus,
                       bool prefix_cache, uint32_t max_waiting,
                       const std::map<std::string, std::filesystem::path>& adapters,
                       const std::vector<std::pair<uint32_t, uint32_t>>& alignment_heads,
                       const std::optional<std::filesystem::path>& draft,
                       const std::optional<std::filesystem::path>& mmproj,
                       const py::kwargs& options) {
             return std::make_unique<NativeLoad>(path, device, threads, kv_type, gpus, prefix_cache,
                                                 max_waiting, adapters, alignment_heads, draft,
                                                 mmproj, load_options(options));
           }),
           py::arg("path"), py::kw_only(), py::arg("device"), py::arg("threads"),
           py::arg("kv_type"), py::arg("gpus") = 1, py::arg("prefix_cache"), py::arg("max_waiting"),
           py::arg("adapters") = std::map<std::string, std::filesystem::path>(),
           py::arg("alignment_heads") = std::vector<std::pair<uint32_t, uint32_t>>(),
           py::arg("draft") = py::none(), py::arg("mmproj") = py::none())
      .def("result", &NativeLoad::result)
      .def("abandon", &NativeLoad::abandon);
  py::class_<NativeModel>(m.attr("NativeModel"))
      .def(
          "new_context",
          [](const NativeModel& model, const std::string& kv_type, bool prefix_cache,
             uint32_t max_waiting, const py::kwargs& options) {
            return std::make_unique<NativeLoad>(model, kv_type, prefix_cache, max_waiting,
                                                load_options(options));
          },
          py::kw_only(), py::arg("kv_type"), py::arg("prefix_cache"), py::arg("max_waiting"));
}

}  // namespace akunu::python
