#include "files/gguf/keys.h"

#include <limits>

#include "core/error.h"
#include "files/printable.h"

namespace akunu {

GgufKeys::GgufKeys(const GgufFile& file) : file_(file) {
  const std::optional<std::string_view> architecture = file.get_string("general.architecture");
  if (!architecture) throw ModelFormatError(path() + ": the key general.architecture is missing");
  architecture_ = *architecture;
}

std::string GgufKeys::path() const { return printable(file_.path(), kPathLimit); }

void GgufKeys::refuse(const std::string& what) const {
  throw UnsupportedModelError(path() + ": " + what);
}

std::optional<uint32_t> GgufKeys::optional(std::string_view name) const {
  const std::optional<uint64_t> value = file_.get_uint(key(name));
  if (value && *value > std::numeric_limits<int32_t>::max())
    throw ModelFormatError(path() + ": " + key(name) + " is " + std::to_string(*value) +
                           ", which is out of any sensible range");
  if (!value) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

uint32_t GgufKeys::required(std::string_view name) const {
  const std::optional<uint32_t> value = optional(name);
  if (!value) throw ModelFormatError(path() + ": the key " + key(name) + " is missing");
  return *value;
}

std::optional<float> GgufKeys::number(std::string_view name) const {
  const std::optional<double> value = file_.get_float(key(name));
  if (!value) return std::nullopt;
  return static_cast<float>(*value);
}

}  // namespace akunu
