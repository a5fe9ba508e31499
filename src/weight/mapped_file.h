// A file as memory: mapped whole and read-only, so that weights are used where the page cache has
// them and nothing is read before it is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace akunu {

// Owns the mapping; the bytes stay valid while a shared_ptr to it lives. Immutable: any thread may
// read it. (A file that somebody truncates while it is mapped is not seen here: touching the lost
// pages raises SIGBUS.)
class MappedFile {
 public:
  // Throws ArgumentError where the path names no regular file that we may read, ModelFormatError
  // for an empty one, and Error where the system fails; each with the path and the system's reason.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace akunu
