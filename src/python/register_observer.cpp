// _core.InputObserver: the squares of what a model's matrices are multiplied
// with.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstring>
#include <memory>

#include "inference/observer.h"
#include "register.h"
#include "registry.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

class NativeObserver {
 public:
  NativeObserver(const std::filesystem::path& path, uint32_t context, const std::string& device,
                 uint32_t threads) {
    const WithoutGil without_gil;
    observer_ = Observer::load(path.string(), create_device(device, {.threads = threads}), context);
  }

  void add(const std::vector<uint32_t>& tokens) {
    const WithoutGil without_gil;
    observer_->add(tokens, [] {
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
  }

  py::dict squares() const {
    py::dict result;
    for (const auto& [name, squares] : observer_->squares()) {
      const size_t n = squares.n_rows.size();
      py::array_t<double> sums({n, squares.sums.size() / n});
      std::memcpy(sums.mutable_data(), squares.sums.data(), squares.sums.size() * sizeof(double));
      result[py::str(name)] = py::make_tuple(
          sums, py::array_t<uint64_t>(static_cast<py::ssize_t>(n), squares.n_rows.data()));
    }
    return result;
  }

 private:
  std::unique_ptr<Observer> observer_;
};

}  // namespace

void register_observer(py::module_& m) {
  py::class_<NativeObserver>(m, "InputObserver",
                             "A model that computes texts and keeps, for each "
                             "matrix, the squares of what it is\n"
                             "multiplied with. Raises what a load raises, and "
                             "UnsupportedModelError where the device\n"
                             "rounds those inputs.")
      .def(py::init<const std::filesystem::path&, uint32_t, const std::string&, uint32_t>(),
           py::arg("path"), py::kw_only(), py::arg("context"), py::arg("device") = "auto",
           py::arg("threads") = 0)
      .def("add", &NativeObserver::add, py::arg("tokens"),
           "Computes a text of at most `context` tokens, from its beginning.")
      .def_property_readonly(
          "squares", &NativeObserver::squares,
          "By the tensor's name: the sums of the squares, float64 [matrices, k], and\n"
          "how many rows they are of, uint64 [matrices]. Experts of a stack are\n"
          "matrices of their own.");
}

}  // namespace akunu::python
