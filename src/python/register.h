#pragma once

#include <pybind11/pybind11.h>

namespace akunu::python {

void register_cuda_kernels(pybind11::module_& m);
void register_directory(pybind11::module_& m);
void register_errors(pybind11::module_& m);
void register_gguf(pybind11::module_& m);
void register_generation(pybind11::module_& m);
void register_grammar(pybind11::module_& m);
void register_kernels(pybind11::module_& m);
void register_load(pybind11::module_& m);
void register_logits(pybind11::module_& m);
void register_merges(pybind11::module_& m);
void register_model(pybind11::module_& m);
void register_observer(pybind11::module_& m);
void register_profile(pybind11::module_& m);
void register_quantize(pybind11::module_& m);
void register_roofline(pybind11::module_& m);
void register_saved_text(pybind11::module_& m);
void register_source(pybind11::module_& m);
void register_speech(pybind11::module_& m);
void register_waker(pybind11::module_& m);
void register_whisper_cpp(pybind11::module_& m);

}  // namespace akunu::python
