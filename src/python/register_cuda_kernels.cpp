// The kernels of the package akunu-cuda, where it is installed.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "register.h"
#include "registry.h"

namespace py = pybind11;

namespace akunu::python {

void register_cuda_kernels(py::module_&) {
  const py::object spec = py::module_::import("importlib.util").attr("find_spec")("akunu_cuda");
  if (spec.is_none()) return;
  const py::object folders = spec.attr("submodule_search_locations");
  if (folders.is_none()) return;  // another package: a single file
  for (const py::handle folder : folders)
    use_cuda_kernels(py::cast<std::string>(folder) + "/akunu.kernels");
}

}  // namespace akunu::python
