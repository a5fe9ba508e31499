// Which model somebody's keys and values are of: a digest of the model's files, the one that the Python
// package makes (akunu/storage/model_identity.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace akunu::capi {

// A file as it was when the model was loaded.
struct SeenFile {
  std::string path;
  uint64_t size = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;

  bool operator==(const SeenFile&) const = default;
};

// The files that say what a model computes. Throws what opening them throws.
std::vector<SeenFile> seen_files(const std::string& path);

// Of all bytes of these files, their names left out; several threads read. Throws ArgumentError where
// a file is no longer the one that was loaded.
std::string digest_of(const std::vector<SeenFile>& files);

}  // namespace akunu::capi
