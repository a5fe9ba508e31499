// _core.quantize and its kin: rows of a tensor in another number format (src/quantize).
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "quantize/quantize.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

using ContiguousBytes = py::array_t<uint8_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Shape = std::pair<uint64_t, uint64_t>;

uint32_t type_of(const std::string& name) {
  for (uint32_t type = 0; type < 256; ++type)
    if (!name.empty() && gguf_type_name(type) == name) return type;
  throw ArgumentError("there is no tensor type '" + name + "'");
}

quantize::Tensor tensor_of(std::string name, const ContiguousBytes& data, const std::string& type,
                           Shape shape, const std::optional<Floats>& importance) {
  quantize::Tensor tensor{
      .name = std::move(name),
      .type = type_of(type),
      .bytes = {reinterpret_cast<const std::byte*>(data.data()), static_cast<size_t>(data.size())},
      .n_rows = shape.first,
      .k = shape.second,
      .importance = {}};
  if (importance) tensor.importance = {importance->data(), static_cast<size_t>(importance->size())};
  return tensor;
}

// Ctrl-C ends the work; the exception is Python's own.
quantize::Work work_of(unsigned threads) {
  return {threads, [] {
            const py::gil_scoped_acquire gil;
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
          }};
}

template <class Element>
py::array_t<Element> room_for(uint64_t n) {
  if (n > static_cast<uint64_t>(PY_SSIZE_T_MAX) / sizeof(Element))
    throw ArgumentError("the tensor is too large");
  return py::array_t<Element>(static_cast<py::ssize_t>(n));
}

}  // namespace

void register_quantize(py::module_& m) {
  m.def(
      "gguf_block",
      [](const std::string& name) {
        const uint32_t type = type_of(name);
        const GgufBlock block = gguf_block(type).value();
        return py::make_tuple(type, block.block_size, block.block_bytes);
      },
      py::arg("type_name"),
      "GGUF's number of a tensor type, the numbers of its block and their bytes.");
  m.def(
      "can_quantize", [](const std::string& name) { return quantize::has_coder(type_of(name)); },
      py::arg("type_name"), "Whether rows of a tensor type can be read and written here.");
  m.def(
      "quantize",
      [](std::string name, const ContiguousBytes& data, const std::string& type, Shape shape,
         const std::string& to, const std::optional<Floats>& importance, unsigned threads) {
        const quantize::Tensor tensor = tensor_of(std::move(name), data, type, shape, importance);
        const uint32_t target = type_of(to);
        const GgufBlock block = gguf_block(target).value();
        py::array_t<uint8_t> result =
            room_for<uint8_t>(shape.first * (shape.second / block.block_size * block.block_bytes));
        std::byte* const begin = reinterpret_cast<std::byte*>(result.mutable_data());
        const size_t size = static_cast<size_t>(result.size());
        {
          const WithoutGil without_gil;
          quantize::write_as(tensor, target, {begin, size}, work_of(threads));
        }
        return result;
      },
      py::arg("name"), py::arg("data"), py::arg("type_name"), py::arg("shape"), py::arg("to"),
      py::kw_only(), py::arg("importance") = py::none(), py::arg("threads") = 1,
      "The rows of a tensor as blocks of the type `to`: uint8. `shape`: rows, and numbers of one.\n"
      "`importance`: how much each column counts, [k] or [matrices, k]. Raises ArgumentError for\n"
      "NaN, infinity and numbers too large for the type.");
  m.def(
      "quantization_error",
      [](std::string name, const ContiguousBytes& data, const std::string& type, Shape shape,
         const std::string& to, const std::optional<Floats>& importance, unsigned threads) {
        const quantize::Tensor tensor = tensor_of(std::move(name), data, type, shape, importance);
        const uint32_t target = type_of(to);
        quantize::Difference difference;
        {
          const WithoutGil without_gil;
          difference = quantize::measure_as(tensor, target, work_of(threads));
        }
        return std::make_pair(difference.squares, difference.of);
      },
      py::arg("name"), py::arg("data"), py::arg("type_name"), py::arg("shape"), py::arg("to"),
      py::kw_only(), py::arg("importance") = py::none(), py::arg("threads") = 1,
      "What `quantize` would change: the squares of the differences, and of the numbers.");
  m.def(
      "dequantize",
      [](std::string name, const ContiguousBytes& data, const std::string& type, Shape shape,
         unsigned threads) {
        const quantize::Tensor tensor = tensor_of(std::move(name), data, type, shape, std::nullopt);
        py::array_t<float> result(
            {static_cast<py::ssize_t>(shape.first), static_cast<py::ssize_t>(shape.second)});
        const std::span<float> room(result.mutable_data(), static_cast<size_t>(result.size()));
        {
          const WithoutGil without_gil;
          quantize::read_as_floats(tensor, room, work_of(threads));
        }
        return result;
      },
      py::arg("name"), py::arg("data"), py::arg("type_name"), py::arg("shape"), py::kw_only(),
      py::arg("threads") = 1, "The numbers of a tensor: float32 [rows, k].");
}

}  // namespace akunu::python
