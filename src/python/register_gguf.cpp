// _core.GgufFile: metadata and tensor list of a GGUF file. Strings are UTF-8 where they are, and
// bytes that are not come as surrogates (PEP 383), so that nothing is lost and nothing fails.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl/filesystem.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

py::object checked(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object to_str(std::string_view text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "surrogateescape"));
}

py::object to_path(const std::string& path) {
  return checked(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<py::ssize_t>(path.size())));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The reverse of to_str; nothing for a str that no file can hold.
std::optional<std::string> to_bytes(const py::str& text) {
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string(py::reinterpret_steal<py::bytes>(encoded));
}

template <class Number>
py::object numbers(const GgufValue& value) {
  py::array_t<Number> result(static_cast<py::ssize_t>(value.count));
  if (!value.bytes.empty())
    std::memcpy(result.mutable_data(), value.bytes.data(), value.bytes.size());
  if (value.is_array) return result;
  return result.attr("item")(0);
}

py::object to_python(const GgufFile& file, const GgufValue& value) {
  switch (value.type) {
    case GgufValueType::uint8:
      return numbers<uint8_t>(value);
    case GgufValueType::int8:
      return numbers<int8_t>(value);
    case GgufValueType::uint16:
      return numbers<uint16_t>(value);
    case GgufValueType::int16:
      return numbers<int16_t>(value);
    case GgufValueType::uint32:
      return numbers<uint32_t>(value);
    case GgufValueType::int32:
      return numbers<int32_t>(value);
    case GgufValueType::uint64:
      return numbers<uint64_t>(value);
    case GgufValueType::int64:
      return numbers<int64_t>(value);
    case GgufValueType::float32:
      return numbers<float>(value);
    case GgufValueType::float64:
      return numbers<double>(value);
    case GgufValueType::boolean:
      return numbers<bool>(value);  // the parser lets 0 and 1 pass only
    case GgufValueType::string:
      break;
    case GgufValueType::array:
      __builtin_unreachable();  // never the type of an element
  }
  if (!value.is_array) return to_str(as_text(value.bytes));
  py::list result(value.count);
  const std::vector<std::string_view> strings = file.get_string_array(value.key).value();
  for (size_t i = 0; i < strings.size(); ++i) result[i] = to_str(strings[i]);
  return result;
}

// A tensor keeps its file, whose mapping holds the name.
struct TensorView {
  std::shared_ptr<const GgufFile> file;
  const GgufTensor* tensor;
};

std::string type_name(const GgufTensor& tensor) {
  const std::string_view name = gguf_type_name(tensor.type);
  return name.empty() ? "type " + std::to_string(tensor.type) : std::string(name);
}

// The bytes where they lie, read-only; the array keeps their file open.
py::array_t<uint8_t> data(const TensorView& view) {
  const std::span<const std::byte> bytes = view.file->tensor_bytes(*view.tensor);
  const py::capsule owner(new std::shared_ptr<const GgufFile>(view.file), [](void* file) {
    delete static_cast<std::shared_ptr<const GgufFile>*>(file);
  });
  py::array_t<uint8_t> result(static_cast<py::ssize_t>(bytes.size()),
                              reinterpret_cast<const uint8_t*>(bytes.data()), owner);
  result.attr("setflags")(py::arg("write") = false);
  return result;
}

py::tuple shape(const GgufTensor& tensor) {
  py::tuple result(tensor.n_dims);
  for (uint32_t i = 0; i < tensor.n_dims; ++i) result[i] = tensor.dims[tensor.n_dims - 1 - i];
  return result;
}

class NativeGgufFile {
 public:
  explicit NativeGgufFile(const std::filesystem::path& path) {
    const WithoutGil without_gil;
    file_ = std::make_shared<const GgufFile>(GgufFile::open(path.native()));
  }

  const GgufFile& get() const { return *file_; }

  const GgufValue* find(const py::str& key) const {
    const std::optional<std::string> bytes = to_bytes(key);
    const GgufValue* value = bytes ? file_->find(*bytes) : nullptr;
    check_damage();  // keys that were cut off are not there to be found
    return value;
  }
  py::object at(const py::str& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
      PyErr_SetObject(PyExc_KeyError, key.ptr());
      throw py::error_already_set();
    }
    return converted(*value);
  }
  py::object value_or(const py::str& key, const py::object& fallback) const {
    const GgufValue* value = find(key);
    return value == nullptr ? fallback : converted(*value);
  }
  py::list keys() const {
    py::list result;
    for (const GgufValue& value : file_->values()) result.append(to_str(value.key));
    check_damage();
    return result;
  }
  py::list tensors() const {
    py::list result;
    for (const GgufTensor& tensor : file_->tensors())
      result.append(py::cast(TensorView{file_, &tensor}));
    return result;
  }
  py::tuple raw(const py::str& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
      PyErr_SetObject(PyExc_KeyError, key.ptr());
      throw py::error_already_set();
    }
    const py::bytes bytes(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
    check_damage();
    return py::make_tuple(static_cast<uint32_t>(value->type), value->is_array, value->count, bytes);
  }
  void check() const { check_damage(); }
  py::object path() const { return to_path(file_->path()); }
  py::list parts() const {
    py::list result;
    for (const GgufPart& part : file_->parts()) result.append(to_path(part.path));
    return result;
  }

 private:
  py::object converted(const GgufValue& value) const {
    py::object result = to_python(*file_, value);
    check_damage();
    return result;
  }
  void check_damage() const {
    if (const std::optional<std::string> damage = file_->damage()) throw ModelFormatError(*damage);
  }

  std::shared_ptr<const GgufFile> file_;
};

}  // namespace

void register_gguf(py::module_& m) {
  py::class_<TensorView>(m, "GgufTensor", "One tensor of a GGUF file; made by GgufFile.tensors.")
      .def_property_readonly("name",
                             [](const TensorView& view) { return to_str(view.tensor->name); })
      .def_property_readonly(
          "shape", [](const TensorView& view) { return shape(*view.tensor); },
          "Tuple of int in NumPy's order: the last dimension is contiguous. () is one number.")
      .def_property_readonly(
          "type_name", [](const TensorView& view) { return type_name(*view.tensor); },
          "Number format as GGUF names it, such as 'Q8_0', or 'type 77' where it has no name.")
      .def_property_readonly(
          "offset", [](const TensorView& view) { return view.tensor->offset; },
          "Where the data begins, in bytes from the start of its file.")
      .def_property_readonly(
          "path",
          [](const TensorView& view) { return to_path(view.file->part_of(*view.tensor).path); },
          "The file that holds it: one of GgufFile.parts.")
      .def_property_readonly(
          "size", [](const TensorView& view) { return view.tensor->size; }, "Bytes of data.")
      .def_property_readonly("data", &data,
                             "The bytes themselves, uint8 [size], read-only: nothing is copied. "
                             "Call check() of the file after they were used.")
      .def("__repr__", [](const TensorView& view) {
        return py::str("GgufTensor(name={!r}, shape={!r}, type_name={!r}, offset={!r}, size={!r})")
            .format(to_str(view.tensor->name), shape(*view.tensor), type_name(*view.tensor),
                    view.tensor->offset, view.tensor->size);
      });

  py::class_<NativeGgufFile>(
      m, "GgufFile",
      "Metadata and tensor list of a GGUF file, read-only.\n\n"
      "Opening checks the whole file except for the numbers in its tensors. Of\n"
      "a model that is split over several files (-00001-of-00003.gguf), `path`\n"
      "names any part; the values are those of the first, the tensors of all.\n"
      "Raises ModelFormatError where the file contradicts itself or the format\n"
      "(which byte, what is needed, what is there), where parts are missing or\n"
      "the file was truncated since it was opened, UnsupportedModelError for\n"
      "versions, types and other formats that akunu does not read, and\n"
      "ArgumentError where `path` names no readable file.\n\n"
      "Values are int, float, bool or str; arrays are a list of str or a NumPy\n"
      "array in the file's own dtype. Bytes that are not UTF-8 come as\n"
      "surrogates (`surrogateescape`).\n\n"
      ">>> file = GgufFile('model.gguf')\n"
      ">>> file['general.architecture']\n"
      "'llama'")
      .def(py::init<const std::filesystem::path&>(), py::arg("path"))
      .def("keys", &NativeGgufFile::keys, "List of str, in the order of the file.")
      .def("__len__", [](const NativeGgufFile& file) { return file.get().values().size(); })
      .def("__iter__", [](const NativeGgufFile& file) { return py::iter(file.keys()); })
      .def("__contains__",
           [](const NativeGgufFile& file, const py::str& key) { return file.find(key) != nullptr; })
      .def("__getitem__", &NativeGgufFile::at, py::arg("key"))
      .def("get", &NativeGgufFile::value_or, py::arg("key"), py::arg("default") = py::none(),
           "The value of `key`, or `default`.")
      .def("raw", &NativeGgufFile::raw, py::arg("key"),
           "A value as it lies in the file: GGUF's number of its type (of an array: of its\n"
           "elements), whether it is an array, how many elements, and their bytes.")
      .def("check", &NativeGgufFile::check,
           "Raises ModelFormatError where the file was truncated since it was opened.")
      .def_property_readonly("path", &NativeGgufFile::path, "Of the first part.")
      .def_property_readonly(
          "parts", &NativeGgufFile::parts,
          "List of str, the paths of all parts in order: one, if it is not split.")
      .def_property_readonly("version",
                             [](const NativeGgufFile& file) { return file.get().version(); })
      .def_property_readonly(
          "alignment", [](const NativeGgufFile& file) { return file.get().alignment(); },
          "Tensor data begins at multiples of this many bytes.")
      .def_property_readonly("tensors", &NativeGgufFile::tensors,
                             "List of GgufTensor, in the order of the files.");
}

}  // namespace akunu::python
