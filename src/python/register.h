#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "core/format.h"

namespace akunu::python {

// The format of a cache that users call "f16" or "f32". Throws ArgumentError.
Format kv_format(const std::string& name);

void register_directory(pybind11::module_& m);
void register_errors(pybind11::module_& m);
void register_gguf(pybind11::module_& m);
void register_grammar(pybind11::module_& m);
void register_kernels(pybind11::module_& m);
void register_merges(pybind11::module_& m);
void register_model(pybind11::module_& m);
void register_observer(pybind11::module_& m);
void register_profile(pybind11::module_& m);
void register_quantize(pybind11::module_& m);
void register_roofline(pybind11::module_& m);
void register_source(pybind11::module_& m);
void register_speech(pybind11::module_& m);
void register_waker(pybind11::module_& m);

}  // namespace akunu::python
