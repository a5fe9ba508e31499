#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "native_generation.h"
#include "register.h"
#include "wait_until.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  __builtin_unreachable();
}

// Of each token its own, float32 [n], and those of the most likely ones with their ids, [n, kMaxLogprobs].
py::tuple as_arrays(const std::vector<TokenLogprobs>& logprobs) {
  const auto n = static_cast<py::ssize_t>(logprobs.size());
  const py::array::ShapeContainer each{n}, all{n, py::ssize_t{kMaxLogprobs}};
  py::array_t<float> own(each), most_likely(all);
  py::array_t<uint32_t> tokens(all);
  for (size_t i = 0; i < logprobs.size(); ++i) {
    own.mutable_data()[i] = logprobs[i].chosen;
    std::ranges::copy(logprobs[i].tokens, tokens.mutable_data() + i * kMaxLogprobs);
    std::ranges::copy(logprobs[i].logprobs, most_likely.mutable_data() + i * kMaxLogprobs);
  }
  return py::make_tuple(own, tokens, most_likely);
}

}  // namespace

NativeGeneration::~NativeGeneration() {
  generation_->cancel();  // nobody will take what is left
  if (home_.is_another())
    new std::shared_ptr<Generation>(std::move(generation_));
  else
    generation_->on_change({});
}

py::object NativeGeneration::next(std::optional<int> timeout_ms) {
  Generation& generation = get();
  std::array<uint32_t, 64> tokens;
  std::optional<size_t> n = 0;
  const auto is_done = [&](std::chrono::milliseconds timeout) {
    n = generation.next(tokens, timeout);
    return n != 0;
  };
  if (!timeout_ms) {
    wait_until(is_done);
  } else {
    const WithoutGil without_gil;
    is_done(std::chrono::milliseconds(*timeout_ms));
  }
  if (!n) return py::none();
  py::list list(*n);
  for (size_t i = 0; i < *n; ++i) list[i] = tokens[i];
  return list;
}

Generation& NativeGeneration::get() const {
  home_.refuse_elsewhere(
      "the process was forked after the generation began; it goes on in the parent only");
  return *generation_;
}

void NativeGeneration::wake(const std::shared_ptr<Waker>& waker, uint64_t id) {
  get().on_change(waker ? waker->teller(id) : std::function<void()>());
}

void NativeGeneration::cut(uint32_t n_tokens) {
  if (const std::shared_ptr<Engine> engine = engine_.lock())
    engine->scheduler->cut(generation_, n_tokens);
}

void register_generation(py::module_& m) {
  py::class_<NativeGeneration>(m, "Generation")
      .def("next", &NativeGeneration::next, py::arg("timeout_ms") = py::none())
      .def("wake", &NativeGeneration::wake, py::arg("waker"), py::arg("id") = 0)
      .def("cancel", &NativeGeneration::cancel)
      .def(
          "logprobs",
          [](const NativeGeneration& g, size_t first, size_t n) {
            return as_arrays(g.get().logprobs(first, n));
          },
          py::arg("first"), py::arg("n"))
      .def("prompt_logprobs",
           [](const NativeGeneration& g) { return as_arrays(g.get().prompt_logprobs()); })
      .def("cut", &NativeGeneration::cut, py::arg("n_tokens"))
      .def_property_readonly("finish_reason",
                             [](const NativeGeneration& g) { return name_of(g.get().reason()); })
      .def_property_readonly("prompt_tokens",
                             [](const NativeGeneration& g) { return g.prompt_tokens(); })
      .def_property_readonly("completion_tokens",
                             [](const NativeGeneration& g) { return g.get().completion_tokens(); })
      .def_property_readonly("prompt_tokens_done",
                             [](const NativeGeneration& g) { return g.get().n_given_done(); })
      .def_property_readonly("cached_tokens",
                             [](const NativeGeneration& g) { return g.get().n_cached(); })
      .def_property_readonly("moved_tokens",
                             [](const NativeGeneration& g) { return g.get().moved_tokens(); })
      .def_property_readonly(
          "prefix_end", [](const NativeGeneration& g) { return name_of(g.get().prefix_end()); })
      .def_property_readonly("drafted_tokens",
                             [](const NativeGeneration& g) { return g.get().n_drafted(); })
      .def_property_readonly("held_tokens",
                             [](const NativeGeneration& g) { return g.get().n_held(); })
      .def_property_readonly("prompt_seconds",
                             [](const NativeGeneration& g) { return g.get().prompt_seconds(); })
      .def(
          "completion_seconds",
          [](const NativeGeneration& g, uint32_t n_tokens) {
            return g.get().completion_seconds(n_tokens);
          },
          py::arg("n_tokens"));
}

}  // namespace akunu::python
