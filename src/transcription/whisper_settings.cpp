#include "transcription/whisper_settings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/json_file.h"
#include "files/model_source.h"
#include "files/printable.h"
#include "speech/mel_frames.h"

namespace akunu {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestJson = size_t{1} << 24;  // bytes; real ones have some kilobytes

std::vector<int64_t> integers(const JsonValue& object, std::string_view key) {
  std::vector<int64_t> found;
  const JsonValue* listed = object.find(key);
  if (listed == nullptr || listed->kind != JsonValue::Kind::array) return found;
  for (const JsonValue& each : listed->items)
    if (const auto integer = each.unsigned_integer(); integer && *integer <= INT64_MAX)
      found.push_back(static_cast<int64_t>(*integer));  // there are no tokens below 0
  return found;
}

WhisperSettings of_directory(const fs::path& folder) {
  const fs::path path = folder / "generation_config.json";
  if (!fs::is_regular_file(path)) return {};
  const JsonValue said =
      read_json_object(path.string(), printable(path.string(), kPathLimit), kLargestJson);
  WhisperSettings settings;
  const JsonValue* multilingual = said.find("is_multilingual");
  if (multilingual != nullptr && multilingual->kind == JsonValue::Kind::boolean)
    settings.is_multilingual = multilingual->boolean;
  settings.suppress_tokens = integers(said, "suppress_tokens");
  settings.begin_suppress_tokens = integers(said, "begin_suppress_tokens");
  return settings;
}

WhisperSettings of_gguf(const GgufFile& file, size_t n_mels) {
  constexpr std::string_view kFilters = "whisper.encoder.mel_filters";
  WhisperSettings settings;
  settings.is_multilingual = file.get_bool("whisper.is_multilingual");
  settings.suppress_tokens =
      file.get_int_array("whisper.suppress_tokens").value_or(std::vector<int64_t>());
  settings.begin_suppress_tokens =
      file.get_int_array("whisper.begin_suppress_tokens").value_or(std::vector<int64_t>());
  if (const auto filters = file.get_float_array(kFilters)) {
    const size_t wanted = n_mels * speech::kBins;
    const bool is_finite =
        std::ranges::all_of(*filters, [](double number) { return std::isfinite(number); });
    if (filters->size() != wanted || !is_finite)
      throw ModelFormatError(printable(file.path(), kPathLimit) + ": " + std::string(kFilters) +
                             " must be " + std::to_string(wanted) + " finite numbers, " +
                             std::to_string(speech::kBins) + " for each of " +
                             std::to_string(n_mels) + " bands");
    for (const double number : *filters) settings.mel_filters.push_back(static_cast<float>(number));
  }
  return settings;
}

}  // namespace

WhisperSettings read_whisper_settings(const std::string& path, size_t n_mels) {
  if (is_hf_model(path)) {
    const fs::path given(path);
    return of_directory(fs::is_directory(given) ? given : given.parent_path());
  }
  const GgufFile file = GgufFile::open(path);
  WhisperSettings settings = of_gguf(file, n_mels);
  if (const auto damage = file.damage()) throw ModelFormatError(*damage);
  return settings;
}

}  // namespace akunu
