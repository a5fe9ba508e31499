#include "wait_until.h"

namespace py = pybind11;

namespace akunu::python {

std::chrono::milliseconds signal_interval() {
  constexpr std::chrono::milliseconds kOfMainThread{50};
  const py::module_ threading = py::module_::import("threading");
  const py::object main = threading.attr("main_thread")().attr("ident");
  const py::object own = threading.attr("get_ident")();
  return main.equal(own) ? kOfMainThread : kWithoutLimit;
}

}  // namespace akunu::python
