// _core.WhisperCppFile: what a model file of whisper.cpp holds.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "core/error.h"
#include "files/model_source.h"
#include "files/whisper_cpp/file.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// A tensor keeps its file, whose mapping holds its name and its bytes.
struct WhisperCppTensor {
  std::shared_ptr<const WhisperCppFile> file;
  const GgufTensor* tensor;
};

py::object path_object(const std::string& path) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<py::ssize_t>(path.size())));
}

py::tuple shape_of(const GgufTensor& tensor) {
  py::tuple result(tensor.n_dims);
  for (uint32_t i = 0; i < tensor.n_dims; ++i) result[i] = tensor.dims[tensor.n_dims - 1 - i];
  return result;
}

py::array_t<uint8_t> data_of(const WhisperCppTensor& view) {
  const std::span<const std::byte> bytes = view.file->tensor_bytes(*view.tensor);
  const py::capsule owner(new std::shared_ptr<const WhisperCppFile>(view.file), [](void* file) {
    delete static_cast<std::shared_ptr<const WhisperCppFile>*>(file);
  });
  py::array_t<uint8_t> data(static_cast<py::ssize_t>(bytes.size()),
                            reinterpret_cast<const uint8_t*>(bytes.data()), owner);
  data.attr("setflags")(py::arg("write") = false);
  return data;
}

// Bytes that are not UTF-8 as surrogates, as in GGUF files.
py::str text_of(std::string_view bytes) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
      bytes.data(), static_cast<py::ssize_t>(bytes.size()), "surrogateescape"));
}

class NativeWhisperCppFile {
 public:
  explicit NativeWhisperCppFile(const std::filesystem::path& path) {
    const WithoutGil without_gil;
    file_ = std::make_shared<const WhisperCppFile>(WhisperCppFile::open(path.native()));
  }

  py::object path() const { return path_object(file_->path()); }
  py::dict numbers() const {
    const WhisperCppNumbers& is = file_->numbers();
    py::dict result;
    result["n_vocab"] = is.n_vocab;
    result["n_audio_ctx"] = is.n_audio_ctx;
    result["n_audio_state"] = is.n_audio_state;
    result["n_audio_head"] = is.n_audio_head;
    result["n_audio_layer"] = is.n_audio_layer;
    result["n_text_ctx"] = is.n_text_ctx;
    result["n_text_state"] = is.n_text_state;
    result["n_text_head"] = is.n_text_head;
    result["n_text_layer"] = is.n_text_layer;
    result["n_mels"] = is.n_mels;
    result["ftype"] = is.file_type;
    return result;
  }
  py::array_t<float> mel_filters() const {
    py::array_t<float> result(
        {py::ssize_t{file_->numbers().n_mels}, py::ssize_t{WhisperCppFile::kBins}});
    std::ranges::copy(file_->mel_filters(), result.mutable_data());
    return result;
  }
  py::list words() const {
    py::list result;
    for (const std::string_view word : file_->words()) result.append(py::bytes(word));
    check();
    return result;
  }
  py::list tensors() const {
    py::list result;
    for (const GgufTensor& tensor : file_->tensors())
      result.append(py::cast(WhisperCppTensor{file_, &tensor}));
    return result;
  }
  void check() const {
    if (const std::optional<std::string> damage = file_->damage()) throw ModelFormatError(*damage);
  }

 private:
  std::shared_ptr<const WhisperCppFile> file_;
};

}  // namespace

void register_whisper_cpp(py::module_& m) {
  py::class_<WhisperCppTensor>(m, "WhisperCppTensor", "One tensor of a WhisperCppFile.")
      .def_property_readonly(
          "name", [](const WhisperCppTensor& view) { return text_of(view.tensor->name); })
      .def_property_readonly(
          "shape", [](const WhisperCppTensor& view) { return shape_of(*view.tensor); },
          "Tuple of int in NumPy's order: the last dimension is contiguous.")
      .def_property_readonly(
          "type_name",
          [](const WhisperCppTensor& view) {
            return std::string(gguf_type_name(view.tensor->type));
          },
          "Number format as ggml names it, such as 'Q5_0'.")
      .def_property_readonly(
          "offset", [](const WhisperCppTensor& view) { return view.tensor->offset; },
          "Where the data begins, in bytes from the start of the file.")
      .def_property_readonly(
          "path", [](const WhisperCppTensor& view) { return path_object(view.file->path()); },
          "The file that holds it.")
      .def_property_readonly(
          "size", [](const WhisperCppTensor& view) { return view.tensor->size; }, "Bytes of data.")
      .def_property_readonly("data", &data_of, "Its bytes as they lie in the file.");

  py::class_<NativeWhisperCppFile>(
      m, "WhisperCppFile",
      "A model file of whisper.cpp ('ggml-tiny.en.bin'), read-only.\n\n"
      "Opening checks all of it but the numbers in tensors. Raises\n"
      "ModelFormatError for a file that contradicts itself (which byte, what it\n"
      "needs), UnsupportedModelError for types that akunu does not know, and\n"
      "ArgumentError where the file cannot be opened.")
      .def(py::init<const std::filesystem::path&>(), py::arg("path"))
      .def_property_readonly("path", &NativeWhisperCppFile::path, "As it was given.")
      .def_property_readonly(
          "numbers", &NativeWhisperCppFile::numbers,
          "The model's numbers by whisper.cpp's names; 'ftype' is ggml's number\n"
          "of most matrices.")
      .def_property_readonly("mel_filters", &NativeWhisperCppFile::mel_filters,
                             "float32 [n_mels, 201].")
      .def_property_readonly("words", &NativeWhisperCppFile::words,
                             "List of bytes, by token; special tokens have none.")
      .def_property_readonly("tensors", &NativeWhisperCppFile::tensors,
                             "List of WhisperCppTensor, in the order of the file.")
      .def("check", &NativeWhisperCppFile::check,
           "Raises ModelFormatError where the file was truncated since it was opened.");

  m.def(
      "is_whisper_cpp_model",
      [](const std::filesystem::path& path) { return is_whisper_cpp_model(path.native()); },
      py::arg("path"), "Whether a path names a file that begins as whisper.cpp's models do.");
}

}  // namespace akunu::python
