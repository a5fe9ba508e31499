// Any bytes either are a GGUF file whose every part can be used, or are refused with one of our two
// errors about files. What is accepted is touched in full and held to what gguf.h says.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/printable.h"

namespace akunu {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a file was accepted although this does not hold: %s\n", what);
  std::abort();
}

// Reads every byte, so that a sanitizer sees each that is not ours.
uint64_t sum(std::span<const std::byte> bytes) {
  uint64_t result = 0;
  for (const std::byte byte : bytes) result += static_cast<uint64_t>(byte);
  return result;
}

uint64_t sum(std::string_view text) { return sum(std::as_bytes(std::span(text))); }

// An accessor gives a value or refuses it by name; whether it does is decided by type and value.
template <class Access>
bool gives(Access access) {
  try {
    return access().has_value();
  } catch (const ModelFormatError&) {
    return false;
  }
}

void use_value(const GgufFile& file, const GgufValue& value) {
  require(file.find(value.key) == &value, "a key is found under its name");
  require(value.type != GgufValueType::array, "arrays are not nested");
  require(value.is_array || value.count == 1, "what is no array is one value");
  uint64_t total = sum(value.key) + sum(value.bytes) + name_of(value.type).size();
  if (const uint32_t size = size_of(value.type); size != 0)
    require(value.bytes.size() == value.count * size, "numbers fill their bytes");

  const std::string_view key = value.key;
  const bool is_uint = gives([&] { return file.get_uint(key); });
  const bool is_int = gives([&] { return file.get_int(key); });
  const bool is_float = gives([&] { return file.get_float(key); });
  const bool is_bool = gives([&] { return file.get_bool(key); });
  const bool is_string = gives([&] { return file.get_string(key); });
  require(is_uint + is_bool + is_string <= 1, "a value has one kind");
  require(!(is_bool || is_string) || !(is_int || is_float), "only integers are floats too");
  require(!value.is_array || !(is_uint || is_int || is_float || is_bool || is_string),
          "an array is no scalar");
  require(gives([&] { return file.array_length(key); }) == value.is_array, "arrays have a length");
  if (is_string) total += sum(*file.get_string(key));

  gives([&] { return file.get_int_array(key); });
  gives([&] { return file.get_float_array(key); });
  gives([&] { return file.get_bool_array(key); });
  if (gives([&] { return file.get_string_array(key); })) {
    const std::vector<std::string_view> strings = file.get_string_array(key).value();
    require(strings.size() == value.count, "an array has all its strings");
    for (const std::string_view text : strings) total += sum(text);
  }
  require(printable(value.key).size() <= 4 * kNameLimit + 64, "messages stay short");
  require(total < UINT64_MAX, "the sum is used");
}

void use_tensors(const GgufFile& file, std::span<const std::byte> bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> regions;
  for (const GgufTensor& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor, "a tensor is found under its name");
    require(tensor.n_dims <= 4 && tensor.size > 0, "tensors have a shape and bytes");
    require(tensor.offset % file.alignment() == 0, "tensors are aligned");
    require(gguf_block(tensor.type).has_value(), "the type has a size");
    require(std::ranges::all_of(tensor.dims, [](uint64_t n) { return n > 0; }),
            "no dimension is 0");
    const std::span<const std::byte> data = file.tensor_bytes(tensor);
    require(data.data() == bytes.data() + tensor.offset && data.size() == tensor.size,
            "the bytes are the tensor's");
    require(sum(data) + sum(tensor.name) < UINT64_MAX, "the sum is used");
    regions.emplace_back(tensor.offset, tensor.offset + tensor.size);
  }
  std::ranges::sort(regions);
  for (size_t i = 1; i < regions.size(); ++i)
    require(regions[i - 1].second <= regions[i].first, "tensors do not overlap");
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const akunu::GgufFile file = akunu::GgufFile::parse(bytes, "fuzz.gguf");
    akunu::require(file.version() == 2 || file.version() == 3, "the version is known");
    for (const akunu::GgufValue& value : file.values()) akunu::use_value(file, value);
    akunu::use_tensors(file, bytes);
  } catch (const akunu::ModelFormatError&) {
  } catch (const akunu::UnsupportedModelError&) {
  }
  return 0;
}
