// _core.log_mel: Whisper's front end (src/speech).
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "core/error.h"
#include "register.h"
#include "speech/mel.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

std::span<const float> span_of(const Floats& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

py::array_t<float> log_mel(const Floats& samples, const Floats& filters, size_t padding,
                           unsigned threads) {
  if (samples.ndim() != 1) throw ArgumentError("samples must have one dimension");
  if (filters.ndim() != 2) throw ArgumentError("mel filters must have two dimensions");
  const auto n = static_cast<size_t>(samples.size());
  if (padding > static_cast<size_t>(PY_SSIZE_T_MAX) / 8 - n)
    throw ArgumentError("the padding is too large");
  const py::ssize_t n_mels = filters.shape(0);
  py::array_t<float> mel({n_mels, static_cast<py::ssize_t>(speech::n_mel_frames(n + padding))});
  const std::span<float> out{mel.mutable_data(), static_cast<size_t>(mel.size())};
  const speech::MelFilters weights{span_of(filters), static_cast<size_t>(n_mels)};
  const std::span<const float> in = span_of(samples);
  const WithoutGil released;
  speech::log_mel(in, padding, weights, threads, out);
  return mel;
}

}  // namespace

void register_speech(py::module_& m) {
  m.def(
      "log_mel", &log_mel, py::arg("samples"), py::arg("filters"), py::arg("padding") = 0,
      py::arg("threads") = 1,
      "The log-mel spectrogram [n_mels, frames] of finite samples at 16 kHz and zeros after them.");
}

}  // namespace akunu::python
