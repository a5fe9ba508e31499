// A folder of runs of positions (prefix_tree.h), a file each, named by the run:
//
//   bytes 0 to 8    "AKUNURUN"
//   8 to 24         uint32: version of the form (1), words, words of the key, 1 if the run has states, else 0
//   24 to 48        uint64: the run that it lies behind (high, low), the groups whose pages are here
//   48 to 72        uint64: bytes of the pages, their checksum, the checksum of bytes 0 to 64 and the words
//   then            the words, uint32; the pages, group after group, as SavedPositions has them
//
// All numbers are little-endian. A file is written beside its place, flushed to the disk and renamed: it is
// there whole or not at all, whatever ends the process. Several processes may use one folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/prefix_tree.h"

namespace akunu {

// What lies in a folder, as its file says.
struct StoredRun {
  RunName name;
  PrefixRun run;
  uint64_t n_bytes = 0;   // of the file
  uint64_t last_use = 0;  // nanoseconds since 1970
};

uint64_t file_bytes(const PrefixRun& run, uint64_t n_page_bytes);
uint64_t nanoseconds_now();

// Any thread, one at a time.
class PrefixFolder {
 public:
  // Makes the folder. ArgumentError where that is not possible.
  explicit PrefixFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // The names of all runs that are there.
  std::vector<RunName> names() const;
  // What a file says of its run; nothing where there is none any more. Of one that is damaged nothing
  // either: `problem` says what is wrong with it.
  std::optional<StoredRun> look(const RunName& name, std::string& problem) const;
  // The pages of a run, `run` as `look` has it; else as there.
  std::optional<std::vector<std::byte>> read(const RunName& name, const PrefixRun& run,
                                             uint64_t n_page_bytes, std::string& problem) const;
  // What went wrong, "" where it is there now.
  std::string write(const RunName& name, const PrefixRun& run, std::span<const std::byte> pages);
  // That it was used now, for others too.
  void touch(const RunName& name) const;
  void remove(const RunName& name) const;
  // What processes that ended in the middle of writing left behind.
  void remove_leftovers() const;

 private:
  std::filesystem::path file_of(const RunName& name) const;

  std::filesystem::path path_;
  uint64_t n_written_ = 0;  // files, for their names while they are written
};

}  // namespace akunu
