// _core.measure_roofline, _core.levels: what a device can do at most, and which kernels it has.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "register.h"
#include "registry.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

py::dict measure(const std::string& device, uint32_t threads) {
  Roofline roofline;
  {
    const WithoutGil without_gil;
    roofline = measure_roofline(device, {.threads = threads});
  }
  return py::dict(py::arg("level") = roofline.level, py::arg("workers") = roofline.workers,
                  py::arg("buffer_bytes") = roofline.buffer_bytes,
                  py::arg("read_bytes_per_second") = roofline.read_bytes_per_second,
                  py::arg("float_operations_per_second") = roofline.float_operations_per_second,
                  py::arg("byte_operations_per_second") = roofline.byte_operations_per_second,
                  py::arg("pair_operations_per_second") = roofline.pair_operations_per_second,
                  py::arg("bfloat_operations_per_second") = roofline.bfloat_operations_per_second);
}

py::list list_levels(const std::string& device) {
  py::list list;
  for (const Level& level : levels_of(device))
    list.append(py::dict(py::arg("name") = level.name, py::arg("needs") = level.needs,
                         py::arg("is_available") = level.is_available,
                         py::arg("is_built") = level.is_built));
  return list;
}

}  // namespace

void register_roofline(py::module_& m) {
  m.def("measure_roofline", &measure, py::arg("device") = "auto", py::arg("threads") = 0);
  m.def("levels", &list_levels, py::arg("device") = "auto");
}

}  // namespace akunu::python
