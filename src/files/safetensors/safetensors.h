// One safetensors file: the length of a header, the header (a JSON object that says of each tensor its
// number format, its shape and where its bytes lie), and the bytes.
//
//   const SafetensorsFile file = SafetensorsFile::open("model.safetensors");
//   for (const SafetensorsTensor& tensor : file.tensors()) use(tensor.name, file.bytes_of(tensor));
//
// Opening checks all of the header before anything of it is believed, by the rules of the reference
// implementation: tensors lie one behind the other, without gaps, and fill the file. What the file says
// is then good for use, except for its meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json.h"
#include "files/mapped_file.h"

namespace akunu {

// A number format of the container, whether the engine computes with it or not.
struct SafetensorsType {
  std::string_view name;  // "BF16"
  uint32_t bits;          // per number
};

struct SafetensorsTensor {
  std::string name;
  const SafetensorsType* type = nullptr;
  std::vector<uint64_t> shape;  // the last dimension is contiguous; none: a single number
  uint64_t offset = 0;          // from the start of the file
  uint64_t size = 0;            // bytes; 0 where a dimension is 0
};

// Immutable after opening: any thread may read it.
class SafetensorsFile {
 public:
  // Throws ModelFormatError for a file that contradicts itself or the format (what, and where),
  // UnsupportedModelError for a number format that has no name here, and what MappedFile::open throws.
  static SafetensorsFile open(const std::string& path);

  // From bytes that the caller keeps alive; `path` is for messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string path);

  const std::string& path() const { return path_; }
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }  // null after parse
  std::span<const SafetensorsTensor> tensors() const {
    return tensors_;
  }  // in the order of the bytes
  std::span<const std::byte> bytes_of(const SafetensorsTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.size);
  }

 private:
  SafetensorsFile() = default;

  std::string path_;
  std::shared_ptr<const MappedFile> mapping_;
  std::span<const std::byte> bytes_;
  std::vector<SafetensorsTensor> tensors_;
};

// Whether a file that begins with these bytes looks like one: a length, and a JSON object.
bool looks_like_safetensors(std::string_view begin);

}  // namespace akunu
