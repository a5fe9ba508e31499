#include "capi/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace akunu::capi {

FileBytes::FileBytes(const std::string& path)
    // A pipe must not keep its opener waiting.
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat found;
  if (descriptor_ < 0) return;
  if (fstat(descriptor_, &found) == 0 && S_ISREG(found.st_mode)) {
    size_ = static_cast<uint64_t>(found.st_size);
    return;
  }
  close(descriptor_);
  descriptor_ = -1;
}

FileBytes::~FileBytes() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool FileBytes::read(uint64_t place, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    place += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace akunu::capi
