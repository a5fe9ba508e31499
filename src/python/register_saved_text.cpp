// Texts that are saved and loaded: keys and values as arrays of bytes, and what they depend on beside
// the tokens. The file around them is Python's (akunu/storage/session_file.py).
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstring>
#include <memory>
#include <utility>

#include "inference/model.h"
#include "inference/scheduler.h"
#include "native_model.h"
#include "register.h"
#include "wait_until.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;  // [n]

// Waits in a way that Ctrl-C ends, the task too.
template <class AnyTask>
void await(AnyTask& task) {
  try {
    wait_until([&](std::chrono::milliseconds timeout) { return task.wait(timeout); });
  } catch (...) {
    task.cancel();
    throw;
  }
}

py::tuple save(const NativeModel& model, const Tokens& tokens) {
  const std::shared_ptr<Engine> engine = model.engine();
  const std::shared_ptr<SavingTask> task = engine->scheduler->save(to_vector(tokens));
  await(*task);
  auto saved = std::make_unique<SavedPositions>(task->take());
  const auto n = static_cast<py::ssize_t>(saved->bytes.size());
  const auto* const first = reinterpret_cast<const uint8_t*>(saved->bytes.data());
  const std::vector<uint32_t> entries = saved->first_entries;
  const py::capsule owner(saved.release(),
                          [](void* pointer) { delete static_cast<SavedPositions*>(pointer); });
  return py::make_tuple(entries, Bytes(py::array::ShapeContainer{n}, first, owner));
}

uint32_t restore(const NativeModel& model, const Tokens& tokens,
                 std::vector<uint32_t> first_entries, const Bytes& bytes) {
  const std::shared_ptr<Engine> engine = model.engine();
  SavedPositions saved{std::move(first_entries),
                       std::vector<std::byte>(static_cast<size_t>(bytes.size()))};
  if (!saved.bytes.empty()) std::memcpy(saved.bytes.data(), bytes.data(), saved.bytes.size());
  const std::shared_ptr<RestoringTask> task =
      engine->scheduler->restore(to_vector(tokens), std::move(saved));
  await(*task);
  return task->n_cached();
}

py::list layout(const NativeModel& model) {
  py::list groups;
  for (const CacheGroup& group : model.engine()->model->context.cache.groups()) {
    py::list layers;
    for (const LayerShape& layer : group.shape.layers)
      layers.append(
          py::make_tuple(layer.layer, layer.n_heads, layer.key_bytes, layer.has_values() ? 2 : 1));
    groups.append(py::dict(py::arg("kind") = akunu::name_of(group.shape.kind),
                           py::arg("format") = format_info(group.shape.format).name,
                           py::arg("layers") = layers));
  }
  return groups;
}

}  // namespace

void register_saved_text(py::module_& m) {
  auto model = py::class_<NativeModel>(m.attr("NativeModel"));
  model.def("save_positions", &save, py::arg("tokens"))
      .def("restore_positions", &restore, py::arg("tokens"), py::arg("first_entries"),
           py::arg("bytes"))
      .def(
          "keep_on_disk",
          [](const NativeModel& each, const std::filesystem::path& folder, uint64_t most_bytes,
             std::vector<std::vector<uint32_t>> adapters) {
            const std::shared_ptr<Engine> engine = each.engine();
            const WithoutGil without_gil;
            engine->scheduler->keep_on_disk(folder, most_bytes, std::move(adapters));
          },
          py::arg("folder"), py::arg("most_bytes"), py::arg("adapters"))
      .def_property_readonly("cache_layout", &layout)
      .def_property_readonly(
          "state_bytes",
          [](const NativeModel& each) {
            uint64_t bytes = 0;
            for (const CacheGroup& group : each.engine()->model->context.cache.groups())
              if (group.shape.has_states()) bytes += group.shape.page_bytes();
            return bytes;
          })
      .def_property_readonly("frequencies",
                             [](const NativeModel& each) {
                               const auto all = each.engine()->model->context.frequencies.bytes();
                               return py::bytes(reinterpret_cast<const char*>(all.data()),
                                                all.size());
                             })
      .def_property_readonly("computes_on", [](const NativeModel& each) {
        const Device& device = *each.engine()->model->context.device;
        return py::dict(py::arg("backend") = device.backend(), py::arg("name") = device.chip().name,
                        py::arg("level") = device.chip().level);
      });
}

}  // namespace akunu::python
