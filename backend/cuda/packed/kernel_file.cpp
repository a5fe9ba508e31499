#include "cuda/packed/kernel_file.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/system_file.h"

namespace akunu::cuda {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t n_images;
  char id[64];
  char architectures[64];
};
struct Row {
  char name[48];
  uint64_t offset;
  uint64_t n_bytes;
};
constexpr std::string_view kMagic = "akunuGPU";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kAlignment = 64;

template <size_t n>
std::string_view padded(const char (&text)[n]) {
  return {text, strnlen(text, n)};
}

}  // namespace

KernelFile::KernelFile(const std::string& path, std::string_view id) {
  const auto refuse = [&](const std::string& why) {
    throw ModelFormatError(path + ": " + why +
                           "; install the akunu-cuda of this akunu's version, or uninstall it");
  };
  std::optional<std::string> bytes = read_system_file(path);
  if (!bytes) refuse("this file of kernels cannot be read");
  bytes_ = std::move(*bytes);

  Head head;
  if (bytes_.size() < sizeof head) refuse("this is no file of kernels: it is too short");
  std::memcpy(&head, bytes_.data(), sizeof head);
  if (std::string_view(head.magic, sizeof head.magic) != kMagic)
    refuse("this is no file of kernels");
  if (head.version != kVersion || padded(head.id) != id)
    refuse("its kernels were made for another akunu");
  if (head.n_images == 0 || head.n_images > (bytes_.size() - sizeof head) / sizeof(Row))
    refuse("it is damaged: it has no room for " + std::to_string(head.n_images) + " kernels");
  const char* const begin = bytes_.data();
  architectures_ = padded(reinterpret_cast<const Head*>(begin)->architectures);
  for (uint32_t i = 0; i < head.n_images; ++i) {
    const char* const at = begin + sizeof head + i * sizeof(Row);
    Row row;
    std::memcpy(&row, at, sizeof row);
    if (row.offset % kAlignment != 0 || row.offset > bytes_.size() ||
        row.n_bytes > bytes_.size() - row.offset || row.n_bytes == 0)
      refuse("it is damaged: image " + std::to_string(i) + " does not lie in it");
    images_.push_back({padded(reinterpret_cast<const Row*>(at)->name), begin + row.offset});
  }
}

}  // namespace akunu::cuda
