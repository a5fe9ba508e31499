#include "transcription/transcriber.h"

#include <algorithm>
#include <utility>

#include "speech/mel_frames.h"
#include "speech/wav.h"
#include "text/chat_writer.h"

namespace akunu {
namespace {

constexpr float kResetAbove = 0.5f;  // what was drawn at a higher temperature is no good prompt
constexpr uint32_t kFramesPerTimestamp =
    speech::kSampleRate / speech::kHop / WhisperVocabulary::kTimestampsPerSecond;

}  // namespace

std::vector<TextPart> split_text(std::span<const uint32_t> tokens, uint32_t first_timestamp,
                                 uint32_t n_frames, uint32_t& done) {
  const auto is_timestamp = [&](size_t i) { return tokens[i] >= first_timestamp; };
  const auto frame = [&](uint32_t token) {
    if (token < first_timestamp) return uint32_t{0};
    // Models hear things in the silence behind the audio, too.
    return std::min((token - first_timestamp) * kFramesPerTimestamp, n_frames);
  };
  std::vector<size_t> cuts;
  for (size_t i = 1; i < tokens.size(); ++i)
    if (is_timestamp(i) && is_timestamp(i - 1)) cuts.push_back(i);
  done = n_frames;
  if (cuts.empty()) {
    uint32_t end = n_frames;
    for (const uint32_t token : tokens)
      if (token >= first_timestamp) end = token == first_timestamp ? n_frames : frame(token);
    return {{0, end, tokens}};
  }
  const size_t n = tokens.size();
  const bool ends_alone = n >= 2 && is_timestamp(n - 1) && !is_timestamp(n - 2);
  if (ends_alone) cuts.push_back(n);
  std::vector<TextPart> parts;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    parts.push_back(
        {frame(tokens[begin]), frame(tokens[cut - 1]), tokens.subspan(begin, cut - begin)});
    begin = cut;
  }
  if (!ends_alone) done = frame(tokens[begin - 1]);
  return parts;
}

Transcriber::Transcriber(Scheduler& scheduler, const SpeechModel& model, TranscribeOptions options,
                         Running& running, Told told)
    : scheduler_(scheduler),
      model_(model),
      options_(std::move(options)),
      running_(running),
      told_(std::move(told)),
      decoder_(scheduler_, model_, options_, running_),
      language_(options_.language),
      said_(options_.prompt) {
  if (model_.words.is_multilingual()) {
    if (!language_.empty()) model_.words.language_token(language_);
    return;
  }
  if (!language_.empty() && language_ != "en")
    throw ArgumentError("language is '" + language_ + "'; this model knows only English");
  if (options_.translates)
    throw ArgumentError("the task is to translate; this model knows only English");
  language_ = "en";
}

void Transcriber::detect_language(std::span<const float> samples) {
  if (!language_.empty()) return;
  running_.check();
  const size_t window = size_t{model_.n_frames} * speech::kHop;
  const Spectrogram sound(model_, samples.first(std::min(window, samples.size())));
  const std::vector<double> probabilities = language_probabilities(scheduler_, model_, sound.at(0));
  if (probabilities.empty())
    throw ModelFormatError("the model's vocabulary has no token of a language: say which it is");
  const auto most = std::ranges::max_element(probabilities);
  language_ = model_.words.languages()[static_cast<size_t>(most - probabilities.begin())].first;
  language_probability_ = *most;
}

uint32_t Transcriber::hear_window(const std::shared_ptr<const SpeechWindow>& window, uint64_t seek,
                                  uint32_t n_frames) {
  const std::span<const uint32_t> previous = std::span(said_).subspan(said_since_);
  const WindowText text = decoder_.decode(window, language_, previous, options_.seed + seek);
  if (text.is_silent()) return n_frames;
  uint32_t done = n_frames;
  // Without timestamps, one that is written all the same says nothing.
  const std::vector<TextPart> parts =
      options_.has_timestamps
          ? split_text(text.tokens, model_.words.special().first_timestamp(), n_frames, done)
          : std::vector<TextPart>{{0, n_frames, text.tokens}};
  for (const TextPart& part : parts) {
    Segment segment{.id = n_segments_,
                    .seek = seek,
                    .start = seek + part.begin,
                    .end = seek + part.end,
                    .text = model_.words.decode(part.tokens),
                    .tokens = {part.tokens.begin(), part.tokens.end()},
                    .window = text};
    if (segment.start >= segment.end || stripped(segment.text).empty()) continue;
    said_.insert(said_.end(), segment.tokens.begin(), segment.tokens.end());
    ++n_segments_;
    if (!told_(segment)) {
      is_over_ = true;
      return n_frames;
    }
  }
  if (!options_.conditions_on_previous || text.last_temperature > kResetAbove)
    said_since_ = said_.size();
  // A text that ends where it began would be heard for ever.
  return done > 0 ? done : n_frames;
}

void Transcriber::hear_all(std::span<const float> samples) {
  detect_language(samples);
  const Spectrogram sound(model_, samples);
  for (uint32_t seek = 0; seek < sound.n_frames() && !is_over_;) {
    const uint32_t n_frames = std::min(model_.n_frames, sound.n_frames() - seek);
    seek += hear_window(sound.at(seek), seek, n_frames);
  }
}

void Transcriber::hear(std::span<const float> samples) {
  if (is_over_) return;
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  const size_t window = size_t{model_.n_frames} * speech::kHop;
  size_t at = 0;
  while (waiting_.size() - at >= window && !is_over_) {
    const std::span<const float> heard = std::span(waiting_).subspan(at, window);
    detect_language(heard);
    const uint32_t done = hear_window(Spectrogram(model_, heard).at(0), seek_, model_.n_frames);
    seek_ += done;
    at += size_t{done} * speech::kHop;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(at));
}

void Transcriber::finish() {
  for (std::vector<float> rest = std::exchange(waiting_, {}); !rest.empty() && !is_over_;) {
    detect_language(rest);
    const Spectrogram sound(model_, rest);
    if (sound.n_frames() == 0) return;
    const uint32_t n_frames = std::min(model_.n_frames, sound.n_frames());
    const uint32_t done = hear_window(sound.at(0), seek_, n_frames);
    seek_ += done;
    const size_t n_done = std::min(rest.size(), size_t{done} * speech::kHop);
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n_done));
  }
}

}  // namespace akunu
