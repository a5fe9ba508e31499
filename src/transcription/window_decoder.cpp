#include "transcription/window_decoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "speech/deflated_size.h"
#include "text/chat_writer.h"

namespace akunu {
namespace {

// The logits behind a token of a text.
std::vector<double> row_of(LogitsTask& task) {
  task.wait(kWithoutLimit);
  const std::unique_ptr<float[]> row = task.take();
  return {row.get(), row.get() + task.width()};
}

// Softmax, in place.
void normalise(std::vector<double>& logits) {
  const double most = std::ranges::max(logits);
  double sum = 0;
  for (double& each : logits) sum += each = std::exp(each - most);
  for (double& each : logits) each /= sum;
}

}  // namespace

void Running::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  for (const auto& text : texts_) text->cancel();
}

void Running::check() const {
  const std::lock_guard lock(mutex_);
  if (is_cancelled_) throw CancelledError("the transcription was cancelled");
}

void Running::begin(std::span<const std::shared_ptr<Generation>> texts) {
  const std::lock_guard lock(mutex_);
  texts_.assign(texts.begin(), texts.end());
  if (is_cancelled_)
    for (const auto& text : texts_) text->cancel();
}

void Running::end() {
  const std::lock_guard lock(mutex_);
  for (const auto& text : texts_) text->cancel();
  texts_.clear();
}

WindowText WindowDecoder::decode(const Window& window, const std::string& language,
                                 std::span<const uint32_t> previous, uint64_t seed) {
  ++counts_.n_windows;
  const WhisperVocabulary::Special& special = model_.words.special();
  std::vector<uint32_t> prompt;
  if (const size_t room = model_.context / 2 - 1; !previous.empty() && room > 0) {
    prompt.push_back(special.previous);
    const std::span<const uint32_t> latest = previous.last(std::min(room, previous.size()));
    prompt.insert(prompt.end(), latest.begin(), latest.end());
  }
  const auto start = static_cast<uint32_t>(prompt.size());
  const std::vector<uint32_t> opening = model_.words.start_of(language, options_.translates);
  prompt.insert(prompt.end(), opening.begin(), opening.end());
  if (!options_.has_timestamps) prompt.push_back(special.no_timestamps);

  // Behind the start it is said whether there is speech.
  const std::shared_ptr<LogitsTask> pending =
      scheduler_.logits({.tokens = {prompt.begin(), prompt.begin() + start + 1},
                         .first = start,
                         .chunks = {},
                         .window = window});
  std::optional<double> silence;
  std::vector<WindowText> tried;
  for (const float temperature : options_.temperatures) {
    WindowText text = draw(window, prompt, temperature, seed);
    if (!silence) {
      std::vector<double> row = row_of(*pending);
      normalise(row);
      silence = row[special.no_speech];
    }
    text.no_speech_prob = *silence;
    text.temperature = text.last_temperature = temperature;
    const std::string written = model_.words.decode(text.tokens);
    const std::string_view said = stripped(written);
    text.compression_ratio =
        static_cast<double>(said.size()) / static_cast<double>(speech::deflated_size(said));
    if (!text.fails()) return text;
    tried.push_back(std::move(text));
  }
  ++counts_.n_failed;
  const bool has_passed = !std::ranges::all_of(tried, &WindowText::repeats_itself);
  WindowText* best = nullptr;
  for (WindowText& text : tried)
    if (!(has_passed && text.repeats_itself()) &&
        (best == nullptr || text.avg_logprob > best->avg_logprob))
      best = &text;
  best->last_temperature = tried.back().temperature;
  return std::move(*best);
}

TranscriptionRules WindowDecoder::rules(size_t n_before) const {
  constexpr uint32_t kLatestFirst = WhisperVocabulary::kTimestampsPerSecond;  // 1 s
  const WhisperVocabulary::Special& special = model_.words.special();
  return {.first_timestamp = options_.has_timestamps ? special.first_timestamp() : 0,
          .end_of_text = special.end_of_text,
          .last_initial = special.first_timestamp() + kLatestFirst,
          .n_before = static_cast<uint32_t>(n_before)};
}

WindowText WindowDecoder::draw(const Window& window, const std::vector<uint32_t>& prompt,
                               float temperature, uint64_t seed) {
  running_.check();
  Sampling sampling;
  sampling.temperature = temperature;
  sampling.seed_low = static_cast<uint32_t>(seed);
  sampling.seed_high = static_cast<uint32_t>(seed >> 32);
  const uint32_t n = temperature > 0 ? options_.best_of : 1;
  struct Texts {  // they end, whatever happens
    Running& running;
    std::vector<std::shared_ptr<Generation>> started = {};
    ~Texts() {
      for (const auto& text : started) text->cancel();
      running.end();
    }
  } texts{running_};
  for (uint32_t choice = 0; choice < n; ++choice) {
    GenerateRequest request;
    request.prompt = prompt;
    request.max_tokens = model_.context - static_cast<uint32_t>(prompt.size());
    request.stop_ids = {model_.words.special().end_of_text};
    request.sampling = sampling;
    request.logprobs = 0;
    request.choice = choice;
    request.window = window;
    request.rules = rules(prompt.size());
    request.banned = model_.words.banned();
    request.banned_first = model_.words.banned_first();
    texts.started.push_back(scheduler_.generate(std::move(request)));
  }
  running_.begin(texts.started);
  std::optional<WindowText> best;
  for (const auto& generation : texts.started) {
    WindowText text = finished(*generation);
    if (!best || text.rank > best->rank) best = std::move(text);
  }
  return std::move(*best);
}

WindowText WindowDecoder::finished(Generation& generation) {
  WindowText text;
  uint32_t tokens[64];
  while (const std::optional<size_t> n = generation.next(tokens, kWithoutLimit))
    text.tokens.insert(text.tokens.end(), tokens, tokens + *n);
  running_.check();
  const size_t n = text.tokens.size();
  counts_.n_tokens += n;
  double logprob = 0;  // with that of the end
  for (const TokenLogprobs& each : generation.logprobs(0, n + 1)) logprob += double{each.chosen};
  text.rank = logprob / static_cast<double>(std::max<size_t>(1, n));
  text.avg_logprob = logprob / static_cast<double>(n + 1);
  return text;
}

std::vector<double> language_probabilities(Scheduler& scheduler, const SpeechModel& model,
                                           std::shared_ptr<const SpeechWindow> window) {
  const std::shared_ptr<LogitsTask> task =
      scheduler.logits({.tokens = {model.words.special().start},
                        .first = 0,
                        .chunks = {},
                        .window = std::move(window)});
  const std::vector<double> row = row_of(*task);
  std::vector<double> found;
  for (const auto& [code, token] : model.words.languages()) found.push_back(row[token]);
  if (!found.empty()) normalise(found);
  return found;
}

}  // namespace akunu
