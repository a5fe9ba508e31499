// A file that is read by place, without streams (core/system_file.h says why).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace akunu::capi {

class FileBytes {
 public:
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // Whether it is there, a regular file, and may be read.
  bool is_open() const { return descriptor_ >= 0; }
  uint64_t size() const { return size_; }  // when it was opened
  // Fills `bytes` with those from `place` on; false: there are not so many, or they cannot be read.
  bool read(uint64_t place, std::span<std::byte> bytes) const;

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace akunu::capi
