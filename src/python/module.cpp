// akunu._core: the thin border between Python and the engine. One register_*.cpp per subject;
// docstrings, defaults and conversions that users see live in python/akunu.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "register.h"

PYBIND11_MODULE(_core, m) {
  // pybind11 asks NumPy for its functions once, in whichever thread comes first, and lets go of the
  // GIL meanwhile: a daemon thread in which the interpreter ends there would abort (without_gil.h).
  static_cast<void>(pybind11::dtype::of<float>());
  akunu::python::register_errors(m);
  akunu::python::register_cuda_kernels(m);
  akunu::python::register_gguf(m);
  akunu::python::register_directory(m);
  akunu::python::register_grammar(m);
  akunu::python::register_kernels(m);
  akunu::python::register_merges(m);
  akunu::python::register_waker(m);
  akunu::python::register_generation(m);
  akunu::python::register_logits(m);
  akunu::python::register_model(m);
  akunu::python::register_load(m);
  akunu::python::register_observer(m);
  akunu::python::register_profile(m);
  akunu::python::register_quantize(m);
  akunu::python::register_roofline(m);
  akunu::python::register_saved_text(m);
  akunu::python::register_source(m);
  akunu::python::register_speech(m);
  akunu::python::register_whisper_cpp(m);
}
