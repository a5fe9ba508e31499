// A file that is one JSON object.
#pragma once

#include <cstddef>
#include <string>

#include "files/json.h"

namespace akunu {

// `shown`: what messages call the file. Throws ModelFormatError for a file of more than `most_bytes`, one that is
// no object, or one that was damaged meanwhile; and as MappedFile::open.
JsonValue read_json_object(const std::string& path, const std::string& shown, size_t most_bytes);

}  // namespace akunu
