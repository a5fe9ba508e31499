// _core.profile: where the time of a step goes, command by command.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>

#include "arguments.h"
#include "inference/profile.h"
#include "register.h"
#include "registry.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

py::list profile_model(const std::filesystem::path& path, const std::string& device,
                       uint32_t threads, const std::string& kv_type, uint32_t n_prompt,
                       uint32_t depth, uint32_t repetitions, uint32_t gpus) {
  std::vector<ProfiledCommand> commands;
  {
    const WithoutGil without_gil;
    const std::unique_ptr<Model> model =
        Model::load(path.string(), create_device(device, {.threads = threads, .gpus = gpus}),
                    {.context = static_cast<uint32_t>(
                         std::min<uint64_t>(UINT32_MAX, uint64_t{depth} + std::max(1u, n_prompt))),
                     .kv_memory = std::nullopt,
                     .kv_format = kv_format(kv_type)});
    commands = profile(*model, {n_prompt, depth, repetitions, [] {
                                  const py::gil_scoped_acquire gil;
                                  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                                }});
  }
  py::list list;
  for (const ProfiledCommand& command : commands)
    list.append(py::dict(py::arg("label") = command.label, py::arg("seconds") = command.seconds));
  return list;
}

}  // namespace

void register_profile(py::module_& m) {
  m.def(
      "profile", &profile_model, py::arg("path"), py::kw_only(), py::arg("device") = "auto",
      py::arg("threads") = 0, py::arg("kv_type") = "f16", py::arg("n_prompt") = 0,
      py::arg("depth") = 0, py::arg("repetitions") = 5, py::arg("gpus") = 1,
      "The commands of one step of a model, in order, each with the median of its seconds, timed\n"
      "alone: {\"label\", \"seconds\"}. A step of `n_prompt` prompt rows, or of one row that\n"
      "generates where that is 0, after `depth` positions.");
}

}  // namespace akunu::python
