#include "files/safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "files/foreign.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the reference implementation's limit
constexpr size_t kMostDimensions = 64;
constexpr std::string_view kSafetensorsBegin =
    "a safetensors file begins with the length of its header in 8 bytes, at most 100000000, and "
    "'{'";

constexpr std::array<SafetensorsType, 22> kSafetensorsTypes{{
    {"F64", 64},        {"F32", 32},        {"F16", 16}, {"BF16", 16},   {"F8_E4M3", 8},
    {"F8_E5M2", 8},     {"F8_E8M0", 8},     {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
    {"I64", 64},        {"I32", 32},        {"I16", 16}, {"I8", 8},      {"U64", 64},
    {"U32", 32},        {"U16", 16},        {"U8", 8},   {"BOOL", 8},    {"C64", 64},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
}};

const SafetensorsType* find_safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kSafetensorsTypes)
    if (type.name == name) return &type;
  return nullptr;
}

std::string safetensors_type_names() {
  std::string names;
  for (const SafetensorsType& type : kSafetensorsTypes)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

uint64_t header_length_in(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length;
}

// The header's entries, each checked for itself.
class HeaderReader {
 public:
  HeaderReader(std::string path, uint64_t data_begin, uint64_t data_size)
      : path_(std::move(path)), data_begin_(data_begin), data_size_(data_size) {}

  std::vector<SafetensorsTensor> read(const JsonValue& header) const {
    if (header.kind != JsonValue::Kind::object)
      refuse("the header is " + std::string(header.kind_name()) + ", expected an object");
    std::vector<SafetensorsTensor> tensors;
    for (size_t i = 0; i < header.keys.size(); ++i) {
      if (header.keys[i] == "__metadata__")
        check_metadata(header.items[i]);
      else
        tensors.push_back(tensor(header.keys[i], header.items[i]));
    }
    check_order(tensors);
    return tensors;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ModelFormatError(path_ + ": " + what);
  }
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    refuse("tensor " + printable(name) + " " + what);
  }

  void check_metadata(const JsonValue& metadata) const {
    if (metadata.kind == JsonValue::Kind::null) return;
    if (metadata.kind != JsonValue::Kind::object)
      refuse("__metadata__ is " + std::string(metadata.kind_name()) + ", expected an object");
    for (size_t i = 0; i < metadata.keys.size(); ++i)
      if (metadata.items[i].kind != JsonValue::Kind::string)
        refuse("__metadata__ has " + std::string(metadata.items[i].kind_name()) + " for \"" +
               printable(metadata.keys[i]) + "\", expected a string");
  }

  const JsonValue& field(const std::string& name, const JsonValue& entry, std::string_view key,
                         JsonValue::Kind kind) const {
    const JsonValue* const value = entry.find(key);
    if (value == nullptr) refuse(name, "has no " + std::string(key));
    if (value->kind != kind)
      refuse(name, "has " + std::string(value->kind_name()) + " for its " + std::string(key));
    return *value;
  }

  std::vector<uint64_t> numbers(const std::string& name, const JsonValue& list,
                                std::string_view key) const {
    std::vector<uint64_t> result;
    for (const JsonValue& item : list.items) {
      const std::optional<uint64_t> number = item.unsigned_integer();
      if (!number)
        refuse(name, "has " + item.shown() + " in its " + std::string(key) +
                         ", expected whole numbers from 0 on");
      result.push_back(*number);
    }
    return result;
  }

  SafetensorsTensor tensor(const std::string& name, const JsonValue& entry) const {
    if (entry.kind != JsonValue::Kind::object)
      refuse(name, "is " + std::string(entry.kind_name()) + ", expected an object");
    SafetensorsTensor result;
    result.name = name;
    const JsonValue& type = field(name, entry, "dtype", JsonValue::Kind::string);
    result.type = find_safetensors_type(type.text);
    if (result.type == nullptr)
      throw UnsupportedModelError(path_ + ": tensor " + printable(name) +
                                  " has the number format " + type.shown() + "; known are " +
                                  safetensors_type_names());
    result.shape = numbers(name, field(name, entry, "shape", JsonValue::Kind::array), "shape");
    if (result.shape.size() > kMostDimensions)
      refuse(name, "has " + std::to_string(result.shape.size()) + " dimensions, at most " +
                       std::to_string(kMostDimensions) + " are possible");
    const std::vector<uint64_t> offsets =
        numbers(name, field(name, entry, "data_offsets", JsonValue::Kind::array), "data_offsets");
    if (offsets.size() != 2)
      refuse(name, "has " + std::to_string(offsets.size()) +
                       " data_offsets, expected two: begin and end");
    if (offsets[1] < offsets[0] || offsets[1] > data_size_)
      refuse(name, "has its bytes at " + std::to_string(offsets[0]) + " to " +
                       std::to_string(offsets[1]) + "; the file has " + std::to_string(data_size_) +
                       " bytes of tensors");
    result.offset = data_begin_ + offsets[0];
    result.size = offsets[1] - offsets[0];
    const uint64_t needed = needed_bytes(result);
    if (needed != result.size)
      refuse(name, "needs " + std::to_string(needed) +
                       " bytes for its shape, its data_offsets give " +
                       std::to_string(result.size));
    return result;
  }

  uint64_t needed_bytes(const SafetensorsTensor& tensor) const {
    uint64_t bits = tensor.type->bits;
    bool overflow = false;
    // Whatever the other dimensions are, a dimension of 0 leaves nothing; a product that is too large
    // for its type is refused all the same, as the reference implementation does.
    for (const uint64_t n : tensor.shape) overflow |= __builtin_mul_overflow(bits, n, &bits);
    if (overflow) refuse(tensor.name, "has a shape whose product is beyond 64 bits");
    if (bits % 8 != 0) refuse(tensor.name, "ends within a byte");
    return bits / 8;
  }

  // By the order of their bytes: each begins where the one before it ends, and the last ends the file.
  void check_order(std::vector<SafetensorsTensor>& tensors) const {
    std::ranges::sort(tensors, {}, [](const SafetensorsTensor& tensor) {
      return std::tuple(tensor.offset, tensor.offset + tensor.size, std::string_view(tensor.name));
    });
    uint64_t end = data_begin_;
    for (const SafetensorsTensor& tensor : tensors) {
      if (tensor.offset < end) refuse(tensor.name, "has bytes that belong to another one too");
      if (tensor.offset > end)
        refuse(std::to_string(tensor.offset - end) + " bytes before tensor " +
               printable(tensor.name) + " belong to no tensor");
      end += tensor.size;
    }
    if (const uint64_t left = data_begin_ + data_size_ - end; left != 0)
      refuse("the last " + std::to_string(left) + " bytes belong to no tensor");
  }

  std::string path_;
  uint64_t data_begin_, data_size_;
};

}  // namespace

bool looks_like_safetensors(std::string_view begin) {
  if (begin.size() <= kLengthBytes || begin[kLengthBytes] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, begin.data(), sizeof length);
  return length >= 2 && length <= kLongestHeader;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  const std::shared_ptr<const MappedFile> mapping = MappedFile::open(path);
  try {
    SafetensorsFile file = parse(mapping->bytes(), path);
    file.mapping_ = mapping;
    return file;
  } catch (const Error&) {
    if (const std::optional<std::string> damage = mapping->damage())
      throw ModelFormatError(*damage);
    throw;
  }
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string path) {
  const std::string shown = printable(path, kPathLimit);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < kLengthBytes)
    throw ModelFormatError(shown + ": the length of the header needs 8 bytes, the file has " +
                           std::to_string(bytes.size()));
  const uint64_t length = header_length_in(bytes);
  if (!looks_like_safetensors(text)) refuse_foreign(shown, bytes, kSafetensorsBegin);
  const uint64_t left = bytes.size() - kLengthBytes;
  if (length > left)
    throw ModelFormatError(shown + ": the header needs " + std::to_string(length) + " bytes, " +
                           std::to_string(left) + " are left; the file was cut, or its download " +
                           "was not finished");
  const JsonValue header = parse_json(text.substr(kLengthBytes, length), shown, kLengthBytes);
  SafetensorsFile file;
  file.bytes_ = bytes;
  file.tensors_ = HeaderReader(shown, kLengthBytes + length, left - length).read(header);
  file.path_ = std::move(path);
  return file;
}

}  // namespace akunu
