#include "weight/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "weight/printable.h"

namespace akunu {
namespace {

struct FileDescriptor {
  explicit FileDescriptor(int descriptor) : number(descriptor) {}
  ~FileDescriptor() {
    if (number >= 0) ::close(number);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number;
};

// generic_category and not strerror, which is allowed to share one buffer between threads.
std::string reason(int error) { return std::generic_category().message(error); }

// The caller named something that is not there or not for them; everything else is the system's.
bool is_the_callers(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
         error == ELOOP || error == ENAMETOOLONG || error == EISDIR || error == EINVAL ||
         error == ENXIO;
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a directory";
  if (S_ISFIFO(mode)) return "is a pipe";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const std::string shown = printable(path, kPathLimit);
  if (path.find('\0') != std::string::npos)
    throw ArgumentError(shown + ": a path cannot contain a zero byte");
  // O_NONBLOCK: opening a pipe would otherwise wait for someone to write into it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) {
    const int error = errno;
    const std::string message = shown + ": cannot be opened: " + reason(error);
    if (is_the_callers(error)) throw ArgumentError(message);
    throw Error(message);
  }
  struct stat status{};
  if (::fstat(file.number, &status) != 0)
    throw Error(shown + ": cannot be examined: " + reason(errno));
  if (!S_ISREG(status.st_mode))
    throw ArgumentError(shown + ": " + std::string(kind_of(status.st_mode)) +
                        "; a regular file is needed");
  if (status.st_size == 0) throw ModelFormatError(shown + ": the file is empty");

  const auto size = static_cast<size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED)
    throw Error(shown + ": " + std::to_string(size) + " bytes cannot be mapped: " + reason(errno));
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(address), size);
  try {
    return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
  } catch (...) {
    ::munmap(address, size);
    throw;
  }
}

MappedFile::MappedFile(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::~MappedFile() {
  // munmap takes no const; the pages were never writable.
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace akunu
