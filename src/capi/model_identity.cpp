#include "capi/model_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "capi/file_bytes.h"
#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/huggingface/model_directory.h"
#include "files/model_source.h"
#include "files/printable.h"
#include "files/whisper_cpp/file.h"
#include "text/blake2b.h"

namespace akunu::capi {
namespace {

constexpr uint64_t kChunk = 1 << 24;  // bytes that one thread reads at a time
constexpr size_t kDigestBytes = 32;

SeenFile seen(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0)
    throw ArgumentError(printable(path, kPathLimit) + " cannot be read");
#ifdef __APPLE__
  const timespec changed = found.st_mtimespec;
#else
  const timespec changed = found.st_mtim;
#endif
  return {path, static_cast<uint64_t>(found.st_size),
          int64_t{changed.tv_sec} * 1'000'000'000 + changed.tv_nsec, found.st_ino};
}

bool is_unchanged(const SeenFile& file) {
  try {
    return seen(file.path) == file;
  } catch (const ArgumentError&) {
    return false;
  }
}

// Empty where the file is shorter by now.
std::vector<std::byte> digest_at(const SeenFile& file, uint64_t place) {
  std::vector<std::byte> bytes(std::min(kChunk, file.size - place));
  const FileBytes opened(file.path);
  if (!opened.is_open() || !opened.read(place, bytes)) return {};
  Blake2b digest(kDigestBytes);
  digest.update(bytes);
  return digest.digest();
}

std::vector<std::vector<std::byte>> digests_of_chunks(const SeenFile& file) {
  std::vector<std::vector<std::byte>> digests((file.size + kChunk - 1) / kChunk);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < digests.size(); i = next++)
      digests[i] = digest_at(file, i * kChunk);
  };
  const size_t n_threads =
      std::min<size_t>({8, digests.size(), std::max(1u, std::thread::hardware_concurrency())});
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < n_threads; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return digests;
}

}  // namespace

std::vector<SeenFile> seen_files(const std::string& path) {
  std::vector<SeenFile> files;
  if (is_hf_model(path)) {
    const ModelDirectory directory = ModelDirectory::open(path);
    for (const SafetensorsFile& file : directory.files()) files.push_back(seen(file.path()));
    files.push_back(seen((std::filesystem::path(directory.path()) / "config.json").string()));
  } else if (is_whisper_cpp_model(path)) {
    files.push_back(seen(path));
  } else {
    const GgufFile file = GgufFile::open(path);
    for (const GgufPart& part : file.parts()) files.push_back(seen(part.path));
  }
  return files;
}

std::string digest_of(const std::vector<SeenFile>& files) {
  Blake2b whole(kDigestBytes);
  for (const SeenFile& file : files) {
    bool is_same = is_unchanged(file);
    std::array<std::byte, 8> size;
    for (size_t i = 0; i < size.size(); ++i) size[i] = static_cast<std::byte>(file.size >> 8 * i);
    whole.update(size);
    if (is_same)
      for (const std::vector<std::byte>& digest : digests_of_chunks(file)) {
        is_same = is_same && !digest.empty();
        whole.update(digest);
      }
    if (!is_same || !is_unchanged(file))
      throw ArgumentError(
          printable(file.path, kPathLimit) +
          " has changed since the model was loaded, so it cannot be told which model "
          "this is; load it again");
  }
  return hex(whole.digest());
}

}  // namespace akunu::capi
