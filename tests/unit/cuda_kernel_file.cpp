// The file of kernels that the package akunu-cuda brings: what is read of it, and what is refused.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "cuda/packed/kernel_file.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using cuda::KernelFile;

const std::string kId(64, 'a');

void put(std::string& bytes, size_t at, const void* value, size_t n) {
  std::memcpy(bytes.data() + at, value, n);
}

// A valid kernel file with two images: "one" at byte 320 and "two" at byte 384. kernel_file.h describes the
// layout.
std::string sound_file() {
  std::string bytes(400, '\0');
  const uint32_t version = 1, n_images = 2;
  put(bytes, 0, "akunuGPU", 8);
  put(bytes, 8, &version, 4);
  put(bytes, 12, &n_images, 4);
  put(bytes, 16, kId.data(), 64);
  put(bytes, 80, "sm_80 sm_90a", 12);
  const uint64_t first[] = {320, 5}, second[] = {384, 16};
  put(bytes, 144, "one", 3);
  put(bytes, 192, first, 16);
  put(bytes, 208, "two", 3);
  put(bytes, 256, second, 16);
  put(bytes, 320, "first", 5);
  put(bytes, 384, "0123456789abcdef", 16);
  return bytes;
}

// Writes the bytes to a file of this process.
std::string written(const std::string& bytes) {
  std::string path = "/tmp/akunu-kernels-XXXXXX";
  const int file = mkstemp(path.data());
  check(
      file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
      "a file to read");
  ::close(file);
  return path;
}

std::string refusal(const std::string& bytes, const std::string& id = kId) {
  const std::string path = written(bytes);
  const std::string message = message_of<ModelFormatError>([&] { KernelFile(path, id); });
  std::remove(path.c_str());
  check(contains(message, path), "it names the file");
  check(contains(message, "akunu-cuda"), "it says what to install");
  return message;
}

void test_sound() {
  const std::string path = written(sound_file());
  const KernelFile file(path, kId);
  std::remove(path.c_str());
  check(file.architectures() == "sm_80 sm_90a", "its architectures");
  check(file.images().size() == 2, "its images");
  check(file.images()[0].name == "one" && file.images()[1].name == "two", "their names");
  check(std::memcmp(file.images()[0].bytes, "first", 5) == 0, "the bytes of the first");
  check(std::memcmp(file.images()[1].bytes, "0123456789abcdef", 16) == 0, "and of the last");
}

void test_refused() {
  check(contains(message_of<ModelFormatError>([] { KernelFile("/nowhere/it.kernels", kId); }),
                 "cannot be read"),
        "a file that is not there");
  check(contains(refusal(sound_file(), std::string(64, 'b')), "another akunu"), "another id");
  check(contains(refusal(""), "too short"), "nothing");
  std::string bytes = sound_file();
  bytes[0] = 'X';
  check(contains(refusal(bytes), "no file of kernels"), "another file");
  bytes = sound_file();
  bytes[8] = 2;
  check(contains(refusal(bytes), "another akunu"), "a version that is not known");
  bytes = sound_file();
  bytes[12] = 9;
  check(contains(refusal(bytes), "no room for 9"), "more rows than bytes");
  bytes[12] = 0;
  check(contains(refusal(bytes), "no room for 0"), "no rows");
  for (size_t n = 0; n < sound_file().size(); ++n)
    check(!refusal(sound_file().substr(0, n)).empty(), "a file that was cut");
  bytes = sound_file();
  bytes[192] = 1;
  check(contains(refusal(bytes), "image 0"), "an image that is not aligned");
  bytes = sound_file();
  std::memset(bytes.data() + 256, 0xc0, 8);
  check(contains(refusal(bytes), "image 1"), "an image beyond the end");
  bytes = sound_file();
  std::memset(bytes.data() + 264, 0xff, 8);
  check(contains(refusal(bytes), "image 1"), "an image that is too long");
}

}  // namespace
}  // namespace akunu::test

int main() {
  akunu::test::test_sound();
  akunu::test::test_refused();
  return akunu::test::summary();
}
