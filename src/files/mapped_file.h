// A file as memory: mapped whole and read-only, so that weights are used where the page cache has
// them and nothing is read before it is touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "files/bus_guard.h"

namespace akunu {

// An open file, closed at the end.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Owns the mapping; the bytes stay valid while a shared_ptr to it lives. Any thread may read it.
// Where somebody truncates the file meanwhile, what is lost reads as zeros, and `damage` says so:
// who has used the bytes asks before the result is believed.
class MappedFile {
 public:
  // Throws ArgumentError where the path names no regular file that we may read, ModelFormatError
  // for an empty one, and Error where the system fails; each with the path and the system's reason.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  const std::string& path() const { return path_; }

  // What became of the file since it was mapped, in a sentence with its path; nothing if its bytes
  // are all there. Once damaged, always damaged. (A file that is overwritten in place at its full
  // length is not noticed.)
  std::optional<std::string> damage() const;

 private:
  class Mapping {
   public:
    explicit Mapping(std::span<const std::byte> mapped) : bytes_(mapped) {}
    ~Mapping();
    Mapping(Mapping&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
    Mapping& operator=(Mapping&&) = delete;
    std::span<const std::byte> bytes() const { return bytes_; }

   private:
    std::span<const std::byte> bytes_;
  };

  MappedFile(std::string path, FileDescriptor file, Mapping mapping);

  std::string path_;
  FileDescriptor file_;
  Mapping mapping_;
  BusGuard guard_;  // ends before the mapping does
  mutable std::atomic<bool> cut_{false};
};

}  // namespace akunu
