// GGUF files: metadata and tensors of a model in one file, or in several that each hold some of the
// tensors (versions 2 and 3, little-endian).
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   const std::optional<uint64_t> layers = file.get_uint("llama.block_count");
//   for (const GgufTensor& tensor : file.tensors()) use(tensor.name, file.tensor_bytes(tensor));
//
// Opening checks the whole file: every count, length, offset and product before it is believed.
// What is returned needs no further check, except for its meaning. docs/reference/model-files.md says what is
// accepted and what is refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "files/mapped_file.h"

namespace akunu {

// The numbers that the file uses for the types of metadata values.
enum class GgufValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,  // never the type of a GgufValue: see is_array
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

// "UINT32", as the specification of the format writes it.
std::string_view name_of(GgufValueType type);

// Bytes of one value; 0 for strings and arrays.
uint32_t size_of(GgufValueType type);

// One key with its value, as it lies in the file.
struct GgufValue {
  std::string_view key;
  GgufValueType type;  // of an array: of its elements
  bool is_array;
  uint64_t count;   // elements; 1 for what is no array
  uint64_t offset;  // of `bytes`, from the start of the file
  // Little-endian, back to back, unaligned. A string is its characters; in an array of strings,
  // each follows its length as 64 bits.
  std::span<const std::byte> bytes;
};

// Blocks of a tensor type: `block_size` numbers in `block_bytes` bytes.
struct GgufBlock {
  uint32_t block_size;
  uint32_t block_bytes;
};

// The blocks of the tensor type with this number, whether the engine computes with it or not; none
// for numbers that were never given or have been withdrawn.
std::optional<GgufBlock> gguf_block(uint32_t type);

// The name that ggml gives the type ("Q4_K"); empty where it gives none.
std::string_view gguf_type_name(uint32_t type);

// The engine's format for the type, if it computes with it.
std::optional<Format> format_from_gguf(uint32_t type);

// "F32, F16, Q4_0, ...": the types that have such a format, by increasing number.
std::string gguf_types_with_a_format();

struct GgufTensor {
  std::string_view name;
  std::array<uint64_t, 4>
      dims;         // dims[0] is contiguous: [n, k] row-major is {k, n}; 1 where absent
  uint32_t n_dims;  // 0 is a single number
  uint32_t type;    // GGUF's number; see format_from_gguf
  uint64_t offset;  // from the start of its file; a multiple of the alignment
  uint64_t size;    // bytes; never 0
  uint32_t part;    // which file of a model that is split over several, from 0
};

// One file of a model.
struct GgufPart {
  std::shared_ptr<const MappedFile> mapping;  // null after parse
  std::span<const std::byte> bytes;
  std::string path;
};

// Immutable after opening: any thread may read it. Keys, names, strings and bytes point into the
// files and live as long as their mappings, or the bytes given to `parse`.
class GgufFile {
 public:
  // Opens all parts of a model that is split over several files, whichever of them `path` names.
  // Throws ModelFormatError for a file that contradicts itself or the format (which byte, what it
  // needs, what is there) and for parts that are missing or do not belong together,
  // UnsupportedModelError for what is no GGUF file (it says what it is) and for a version, byte
  // order, tensor type or nesting that akunu does not read, and what MappedFile::open throws.
  static GgufFile open(const std::string& path);

  // One file from bytes that the caller keeps alive; `path` is for messages.
  static GgufFile parse(std::span<const std::byte> bytes, std::string path);

  // All parts of a split model, in order: the values of the first, the tensors of all. Throws
  // ModelFormatError where they do not belong together.
  static GgufFile join(std::vector<GgufFile> parts);

  const std::string& path() const { return parts_.front().path; }  // of the first part
  std::span<const GgufPart> parts() const { return parts_; }       // one, unless it is split
  const GgufPart& part_of(const GgufTensor& tensor) const { return parts_[tensor.part]; }
  uint32_t version() const { return version_; }      // of the first part
  uint64_t alignment() const { return alignment_; }  // of the first part

  // What became of a mapped part meanwhile (see MappedFile::damage); nothing if all is well. Ask
  // after the bytes were used and before they are believed.
  std::optional<std::string> damage() const;

  std::span<const GgufValue> values() const { return values_; }     // in the order of the file
  std::span<const GgufTensor> tensors() const { return tensors_; }  // in the order of the files
  const GgufValue* find(std::string_view key) const;                // null if absent
  const GgufTensor* find_tensor(std::string_view name) const;       // null if absent
  std::span<const std::byte> tensor_bytes(const GgufTensor& tensor) const {
    return part_of(tensor).bytes.subspan(tensor.offset, tensor.size);
  }

  // Values by key; nullopt if it is absent. Writers disagree about widths, so integers of every
  // width are taken as long as the value fits, and as floats too. Anything else is a
  // ModelFormatError that names the key, what it is and what it should be.
  std::optional<uint64_t> get_uint(std::string_view key) const;
  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;  // finite
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;

  // Arrays by key, with the same rules for each element, except that floats may be infinite or NaN.
  std::optional<uint64_t> array_length(std::string_view key) const;
  std::optional<std::vector<int64_t>> get_int_array(std::string_view key) const;
  std::optional<std::vector<double>> get_float_array(std::string_view key) const;
  std::optional<std::vector<bool>> get_bool_array(std::string_view key) const;
  std::optional<std::vector<std::string_view>> get_string_array(std::string_view key) const;

 private:
  friend class GgufParser;
  GgufFile() = default;

  static GgufFile open_one(const std::string& path);
  const GgufValue* find_array(std::string_view key, std::string_view wanted) const;
  const GgufValue* find_scalar(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void refuse(const GgufValue& value, const std::string& found,
                           std::string_view wanted) const;

  std::vector<GgufPart> parts_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::vector<size_t> values_by_key_;  // indices, sorted by key: no hash that a file could attack
  std::vector<size_t> tensors_by_name_;
};

}  // namespace akunu
