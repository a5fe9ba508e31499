// The C API's reader of GGUF files.
#include <optional>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"

using namespace akunu;
using namespace akunu::capi;

namespace {

void check_index(size_t index, size_t n, const char* what) {
  if (index >= n)
    throw ArgumentError("there is no " + std::string(what) + " " + std::to_string(index) +
                        ": the file has " + std::to_string(n));
}

template <class Value>
Value found(const std::optional<Value>& value, const char* key) {
  if (!value) throw ArgumentError("the file has no key '" + std::string(key) + "'");
  return *value;
}

}  // namespace

akunu_status akunu_open_gguf(const char* path, akunu_gguf* file) {
  return guarded([&] {
    need(path, "path");
    need(file, "file");
    *file = nullptr;
    *file =
        new_handle<akunu_gguf>(std::shared_ptr<GgufObject>(new GgufObject{GgufFile::open(path)}));
    return AKUNU_OK;
  });
}

akunu_status akunu_close_gguf(akunu_gguf file) {
  return guarded([&] {
    take_object<GgufObject>(file);
    return AKUNU_OK;
  });
}

akunu_status akunu_get_n_tensors(akunu_gguf file, size_t* n_tensors) {
  return guarded([&] {
    need(n_tensors, "n_tensors");
    *n_tensors = object_of<GgufObject>(file)->file.tensors().size();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_tensor(akunu_gguf file, size_t index, akunu_tensor_info* info) {
  return guarded([&] {
    const std::shared_ptr<GgufObject> object = object_of<GgufObject>(file);
    check_index(index, object->file.tensors().size(), "tensor");
    const GgufTensor& tensor = object->file.tensors()[index];
    // Names in the file have no zero at their end.
    const std::lock_guard lock(object->mutex);
    akunu_tensor_info known{};
    known.name = object->names.emplace(tensor.name).first->c_str();
    known.type = object->names.emplace(gguf_type_name(tensor.type)).first->c_str();
    known.n_dims = tensor.n_dims;
    std::ranges::copy(tensor.dims, known.dims);
    known.n_bytes = tensor.size;
    fill(info, known, "info");
    return AKUNU_OK;
  });
}

akunu_status akunu_get_n_keys(akunu_gguf file, size_t* n_keys) {
  return guarded([&] {
    need(n_keys, "n_keys");
    *n_keys = object_of<GgufObject>(file)->file.values().size();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_key(akunu_gguf file, size_t index, char* buffer, size_t capacity,
                           size_t* length) {
  return guarded([&] {
    const std::shared_ptr<GgufObject> object = object_of<GgufObject>(file);
    check_index(index, object->file.values().size(), "key");
    return give_text(object->file.values()[index].key, buffer, capacity, length);
  });
}

akunu_status akunu_get_string(akunu_gguf file, const char* key, char* buffer, size_t capacity,
                              size_t* length) {
  return guarded([&] {
    need(key, "key");
    const std::shared_ptr<GgufObject> object = object_of<GgufObject>(file);
    return give_text(found(object->file.get_string(key), key), buffer, capacity, length);
  });
}

akunu_status akunu_get_integer(akunu_gguf file, const char* key, int64_t* value) {
  return guarded([&] {
    need(key, "key");
    need(value, "value");
    *value = found(object_of<GgufObject>(file)->file.get_int(key), key);
    return AKUNU_OK;
  });
}

akunu_status akunu_get_number(akunu_gguf file, const char* key, double* value) {
  return guarded([&] {
    need(key, "key");
    need(value, "value");
    *value = found(object_of<GgufObject>(file)->file.get_float(key), key);
    return AKUNU_OK;
  });
}
