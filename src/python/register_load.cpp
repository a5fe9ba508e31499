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
#include "inference/engine.h"
#include "native_model.h"
#include "register.h"
#include "registry.h"
#include "wait_until.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// Loads the engine in a thread of its own, which Python doesn't know, so that the process may end
// while it runs. A thread of Python's that begins while the interpreter ends reads what is freed.
class NativeLoad {
 public:
  NativeLoad(const std::filesystem::path& path, const std::string& device,
             std::optional<uint32_t> context, uint32_t threads, const std::string& kv_type,
             std::optional<uint64_t> kv_memory, std::optional<uint64_t> gpu_memory, uint32_t gpus,
             bool prefix_cache, uint32_t max_waiting,
             const std::map<std::string, std::filesystem::path>& adapters,
             const std::vector<std::pair<uint32_t, uint32_t>>& alignment_heads,
             const std::optional<std::filesystem::path>& draft, bool prediction_head,
             const std::optional<std::filesystem::path>& mmproj) {
    LoadOptions options{.context = context,
                        .kv_memory = kv_memory,
                        .gpu_memory = gpu_memory,
                        .kv_format = kv_format(kv_type),
                        .prediction_head = prediction_head};
    for (const auto& [name, adapter] : adapters)
      options.adapters.push_back({name, adapter.string()});
    if (mmproj) options.mmproj = mmproj->string();
    for (const auto& [layer, head] : alignment_heads)
      options.alignment_heads.push_back({layer, head});
    std::packaged_task<std::shared_ptr<Engine>()> load(
        [path = path.string(), device, threads, gpus, options, prefix_cache, max_waiting,
         draft_path = draft ? draft->string() : std::string()] {
          std::shared_ptr<Engine> engine = Engine::make();
          const std::shared_ptr<Device> share =
              share_device(device, {.threads = threads, .gpus = gpus});
          // First, so that the model takes what is left.
          if (!draft_path.empty())
            engine->draft_model = load_draft_model(draft_path, share, options);
          engine->model = Model::load(path, share, options);
          engine->scheduler = std::make_unique<Scheduler>(
              *engine->model,
              SchedulerOptions{.prefix_cache = prefix_cache, .most_waiting = max_waiting},
              engine->draft_model.get());
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
  std::future<std::shared_ptr<Engine>> loaded_;
  HomeProcess home_;
};

}  // namespace

void register_load(py::module_& m) {
  py::class_<NativeLoad>(m, "NativeLoad")
      .def(py::init<const std::filesystem::path&, const std::string&, std::optional<uint32_t>,
                    uint32_t, const std::string&, std::optional<uint64_t>, std::optional<uint64_t>,
                    uint32_t, bool, uint32_t, const std::map<std::string, std::filesystem::path>&,
                    const std::vector<std::pair<uint32_t, uint32_t>>&,
                    const std::optional<std::filesystem::path>&, bool,
                    const std::optional<std::filesystem::path>&>(),
           py::arg("path"), py::kw_only(), py::arg("device"), py::arg("context"),
           py::arg("threads"), py::arg("kv_type"), py::arg("kv_memory"),
           py::arg("gpu_memory") = py::none(), py::arg("gpus") = 1, py::arg("prefix_cache"),
           py::arg("max_waiting"),
           py::arg("adapters") = std::map<std::string, std::filesystem::path>(),
           py::arg("alignment_heads") = std::vector<std::pair<uint32_t, uint32_t>>(),
           py::arg("draft") = py::none(), py::arg("prediction_head") = false,
           py::arg("mmproj") = py::none())
      .def("result", &NativeLoad::result)
      .def("abandon", &NativeLoad::abandon);
}

}  // namespace akunu::python
