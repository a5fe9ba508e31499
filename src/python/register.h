#pragma once

#include <pybind11/pybind11.h>

namespace akunu::python {

void register_errors(pybind11::module_& m);
void register_gguf(pybind11::module_& m);
void register_kernels(pybind11::module_& m);
void register_model(pybind11::module_& m);
void register_roofline(pybind11::module_& m);

}  // namespace akunu::python
