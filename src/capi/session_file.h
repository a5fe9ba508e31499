// The file of a saved session, the one that the Python package writes and reads: akunu/storage/session_file.py
// says how its bytes lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/json.h"

namespace akunu::capi {

struct SessionFile {
  JsonValue header;  // every entry is there and of its type
  std::vector<uint32_t> tokens;
  std::vector<uint32_t> first_entries;
  uint32_t n_positions = 0;  // at most as many as there are tokens
  std::vector<std::byte> positions;
};

// Throws ArgumentError where there is no file that can be read, ModelFormatError where it is no saved
// session or is damaged.
SessionFile read_session_file(const std::string& path);

// Writes a file that appears whole or not at all, in the place of an earlier one. `header`: the entries of a
// JSON object, without its braces and without those that say what follows it. Throws ArgumentError for
// a path that cannot be written, and Error for a full disk.
void write_session_file(const std::string& path, const std::string& header,
                        const std::vector<uint32_t>& tokens,
                        const std::vector<std::byte>& positions);

// A text as JSON has it, with its quotes. Bytes that are no UTF-8 and control characters are spelled.
std::string json_string(std::string_view text);

}  // namespace akunu::capi
