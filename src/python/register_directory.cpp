// _core.ModelDirectory: what the files of a Hugging Face or MLX directory hold, and which paths are such.
#include <pybind11/pybind11.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "files/huggingface/model_directory.h"
#include "files/huggingface/tensors.h"
#include "files/model_source.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

py::object path_object(const std::string& path) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<py::ssize_t>(path.size())));
}

// A tensor keeps its directory, whose mappings hold the names.
struct DirectoryTensor {
  std::shared_ptr<const ModelDirectory> directory;
  ListedTensor tensor;
};

py::tuple shape_of(const ListedTensor& tensor) {
  py::tuple result(tensor.shape.size());
  for (size_t i = 0; i < tensor.shape.size(); ++i) result[i] = tensor.shape[i];
  return result;
}

class NativeDirectory {
 public:
  explicit NativeDirectory(const std::filesystem::path& path) {
    const WithoutGil without_gil;
    directory_ = std::make_shared<const ModelDirectory>(ModelDirectory::open(path.native()));
  }

  py::object path() const { return path_object(directory_->path()); }
  py::list parts() const {
    py::list result;
    for (const SafetensorsFile& file : directory_->files()) result.append(path_object(file.path()));
    return result;
  }
  py::str config() const { return py::str(directory_->config_text()); }
  py::list tensors() const {
    py::list result;
    for (ListedTensor& tensor : list_tensors(*directory_))
      result.append(py::cast(DirectoryTensor{directory_, std::move(tensor)}));
    return result;
  }

 private:
  std::shared_ptr<const ModelDirectory> directory_;
};

}  // namespace

void register_directory(py::module_& m) {
  py::class_<DirectoryTensor>(m, "DirectoryTensor",
                              "One tensor of a ModelDirectory; made by ModelDirectory.tensors.")
      .def_property_readonly("name", [](const DirectoryTensor& view) { return view.tensor.name; })
      .def_property_readonly(
          "shape", [](const DirectoryTensor& view) { return shape_of(view.tensor); },
          "Tuple of int in NumPy's order: the last dimension is contiguous. () is one number.")
      .def_property_readonly(
          "type_name", [](const DirectoryTensor& view) { return view.tensor.type; },
          "Number format as safetensors names it, such as 'BF16', or 'mlx4_64' (bits, group) for\n"
          "MLX's groups, of which codes, scales and biases are one tensor here.")
      .def_property_readonly(
          "offset", [](const DirectoryTensor& view) { return view.tensor.offset; },
          "Where the data begins, in bytes from the start of its file.")
      .def_property_readonly(
          "path", [](const DirectoryTensor& view) { return path_object(view.tensor.file->path()); },
          "The file that holds it: one of ModelDirectory.parts.")
      .def_property_readonly(
          "size", [](const DirectoryTensor& view) { return view.tensor.size; },
          "Bytes of data, with scales and biases.");

  py::class_<NativeDirectory>(
      m, "ModelDirectory",
      "Configuration and tensor list of a Hugging Face or MLX directory, read-only.\n\n"
      "`path` names the directory, or a safetensors file in it. Opening checks\n"
      "the files but for the numbers in tensors. Raises ModelFormatError where\n"
      "files are missing or contradict themselves or each other (which, where),\n"
      "UnsupportedModelError for weights in other formats, and ArgumentError\n"
      "where a file cannot be opened.")
      .def(py::init<const std::filesystem::path&>(), py::arg("path"))
      .def_property_readonly("path", &NativeDirectory::path, "Of the directory.")
      .def_property_readonly("parts", &NativeDirectory::parts,
                             "List of str, the paths of its safetensors files.")
      .def_property_readonly("config", &NativeDirectory::config, "Text of its config.json.")
      .def_property_readonly("tensors", &NativeDirectory::tensors,
                             "List of DirectoryTensor, in the order of the files.");

  m.def(
      "is_model_directory",
      [](const std::filesystem::path& path) { return is_hf_model(path.native()); }, py::arg("path"),
      "Whether a path is a Hugging Face or MLX directory, or a safetensors file.");
}

}  // namespace akunu::python
