// akunu._core: the thin border between Python and the engine. One register_*.cpp per subject;
// docstrings, defaults and conversions that users see live in python/akunu.
#include <pybind11/pybind11.h>

#include "register.h"

PYBIND11_MODULE(_core, m) {
  akunu::python::register_errors(m);
  akunu::python::register_gguf(m);
  akunu::python::register_kernels(m);
  akunu::python::register_model(m);
  akunu::python::register_profile(m);
  akunu::python::register_roofline(m);
}
