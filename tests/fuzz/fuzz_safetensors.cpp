// Any bytes either are a safetensors file whose every tensor can be used, or are refused with one of our
// two errors about files. What is accepted is touched in full and held to what safetensors.h says.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "core/error.h"
#include "files/safetensors/safetensors.h"

namespace akunu {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a file was accepted although this does not hold: %s\n", what);
  std::abort();
}

void use(const SafetensorsFile& file, std::span<const std::byte> bytes) {
  std::set<std::string_view> names;
  uint64_t end = 0, sum = 0;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    require(names.insert(tensor.name).second, "no name is there twice");
    require(end == 0 || tensor.offset == end, "tensors lie one behind the other");
    const std::span<const std::byte> data = file.bytes_of(tensor);
    require(data.size() == tensor.size && tensor.size <= bytes.size(),
            "the bytes are the tensor's");
    uint64_t bits = tensor.type->bits;
    for (const uint64_t n : tensor.shape) bits *= n;
    require(bits == 8 * tensor.size, "a tensor has the bytes of its shape");
    for (const std::byte byte : data) sum += static_cast<uint64_t>(byte);
    end = tensor.offset + tensor.size;
  }
  require(end == 0 || end == bytes.size(), "the last ends the file");
  require(sum < UINT64_MAX, "the sum is used");
}

void check_message(const Error& error) {
  const std::string_view message = error.what();
  require(!message.empty() && message.size() < 4096, "a message is short");
  for (const char letter : message)
    require(static_cast<unsigned char>(letter) >= 0x20, "a message is one printable line");
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    akunu::use(akunu::SafetensorsFile::parse(bytes, "fuzz.safetensors"), bytes);
  } catch (const akunu::ModelFormatError& error) {
    akunu::check_message(error);
  } catch (const akunu::UnsupportedModelError& error) {
    akunu::check_message(error);
  }
  return 0;
}
