#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <functional>

#include "native_logits.h"
#include "register.h"
#include "wait_until.h"

namespace py = pybind11;

namespace akunu::python {

NativeLogits::~NativeLogits() {
  task_->cancel();
  if (home_.is_another())
    new std::shared_ptr<LogitsTask>(std::move(task_));
  else
    task_->on_change({});
}

void NativeLogits::wake(const std::shared_ptr<Waker>& waker, uint64_t id) {
  get().on_change(waker ? waker->teller(id) : std::function<void()>());
}

py::array_t<float> NativeLogits::take() {
  const auto n_rows = static_cast<py::ssize_t>(task_->n_outputs());
  std::unique_ptr<float[]> values = task_->take();
  const py::capsule owner(values.get(),
                          [](void* pointer) { delete[] static_cast<float*>(pointer); });
  float* const first_value = values.release();
  return py::array_t<float>(py::array::ShapeContainer{n_rows, py::ssize_t{task_->width()}},
                            first_value, owner);
}

py::array_t<float> NativeLogits::result() {
  wait_until([&](std::chrono::milliseconds timeout) { return wait(timeout); });
  return take();
}

LogitsTask& NativeLogits::get() const {
  home_.refuse_elsewhere(
      "the process was forked after the logits were asked for; they come in the parent");
  return *task_;
}

void register_logits(py::module_& m) {
  py::class_<NativeLogits>(m, "PendingLogits")
      .def("wake", &NativeLogits::wake, py::arg("waker"), py::arg("id") = 0)
      .def("cancel", &NativeLogits::cancel)
      .def("is_done",
           [](NativeLogits& logits) { return logits.wait(std::chrono::milliseconds(0)); })
      .def("take", &NativeLogits::take)
      .def("result", &NativeLogits::result);
}

}  // namespace akunu::python
