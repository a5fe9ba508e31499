#include "files/json_file.h"

#include "core/error.h"
#include "files/mapped_file.h"

namespace akunu {

JsonValue read_json_object(const std::string& path, const std::string& shown, size_t most_bytes) {
  const auto file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > most_bytes)
    throw ModelFormatError(shown + " has " + std::to_string(bytes.size()) + " bytes, at most " +
                           std::to_string(most_bytes) + " are read");
  JsonValue value = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, shown);
  if (const auto damage = file->damage()) throw ModelFormatError(*damage);
  if (value.kind != JsonValue::Kind::object) throw ModelFormatError(shown + " is no JSON object");
  return value;
}

}  // namespace akunu
