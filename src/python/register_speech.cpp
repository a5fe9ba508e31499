// _core.log_mel: Whisper's front end (src/speech).
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>

#include "core/error.h"
#include "native_speech.h"
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

// [n_mels, frames], as log_mel has it. Every window has a number of its own.
Window make_window(const Floats& mel) {
  static std::atomic<uint64_t> last{0};
  if (mel.ndim() != 2) throw ArgumentError("a spectrogram must have two dimensions");
  const auto n_mels = static_cast<size_t>(mel.shape(0)),
             n_frames = static_cast<size_t>(mel.shape(1));
  auto window = std::make_shared<SpeechWindow>();
  window->id = ++last;
  window->frames.resize(n_mels * n_frames);
  const float* const from = mel.data();
  const WithoutGil released;
  for (size_t band = 0; band < n_mels; ++band)
    for (size_t frame = 0; frame < n_frames; ++frame)
      window->frames[frame * n_mels + band] = from[band * n_frames + frame];
  return window;
}

}  // namespace

void register_speech(py::module_& m) {
  py::class_<SpeechWindow, Window>(m, "SpeechWindow").def(py::init(&make_window), py::arg("mel"));
  py::class_<Rules>(m, "TranscriptionRules")
      .def(py::init([](uint32_t first_timestamp, uint32_t end_of_text, uint32_t last_initial,
                       uint32_t n_before, std::vector<uint32_t> banned,
                       std::vector<uint32_t> banned_first) {
             return Rules{{.first_timestamp = first_timestamp,
                           .end_of_text = end_of_text,
                           .last_initial = last_initial,
                           .n_before = n_before},
                          std::move(banned),
                          std::move(banned_first)};
           }),
           py::kw_only(), py::arg("first_timestamp"), py::arg("end_of_text"),
           py::arg("last_initial"), py::arg("n_before"), py::arg("banned"),
           py::arg("banned_first"));
  m.def(
      "log_mel", &log_mel, py::arg("samples"), py::arg("filters"), py::arg("padding") = 0,
      py::arg("threads") = 1,
      "The log-mel spectrogram [n_mels, frames] of finite samples at 16 kHz and zeros after them.");
}

}  // namespace akunu::python
