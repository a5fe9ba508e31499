// A window of speech becomes tokens: drawn at one temperature after the other until they pass. The rules are
// those of the Python package (akunu/speech/window_decoder.py).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "inference/scheduler.h"
#include "transcription/speech_model.h"

namespace akunu {

// The transcription was cancelled.
struct CancelledError : Error {
  using Error::Error;
};

struct TranscribeOptions {
  std::string language;  // "en"; "": detected
  bool translates = false;
  // Tried in order until a window's text passes: it does not repeat itself, and it is likely. At 0 it is
  // greedy.
  std::vector<float> temperatures = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
  uint32_t best_of = 5;  // texts that are drawn at a temperature above 0
  bool has_timestamps = true;
  bool conditions_on_previous = true;  // what was said before is the next window's prompt
  std::vector<uint32_t> prompt = {};   // as if it had been said before
  uint64_t seed = 0;
};

constexpr double kMostCompression = 2.4;  // of a text's bytes over its deflated ones
constexpr double kLeastLogprob = -1.0;    // mean of a text's tokens
constexpr double kMostSilence = 0.6;      // probability of no speech

// What was heard in a window.
struct WindowText {
  std::vector<uint32_t> tokens = {};  // text and timestamps, without the end of the text
  double rank = 0;                    // what the best of several drawn texts has most of
  float temperature = 0;
  float last_temperature = 0;  // the last one tried: a higher one, where none passed
  double avg_logprob = 0;
  double compression_ratio = 0;
  double no_speech_prob = 0;

  bool repeats_itself() const { return compression_ratio > kMostCompression; }
  // The window has no speech, and the text that was heard is none.
  bool is_silent() const { return no_speech_prob > kMostSilence && !(avg_logprob > kLeastLogprob); }
  // Another temperature shall be tried.
  bool fails() const {
    const bool is_unlikely = avg_logprob < kLeastLogprob;
    return (repeats_itself() || is_unlikely) && !(is_unlikely && no_speech_prob > kMostSilence);
  }
};

// What the engine computes for one transcription, so that another thread can end it.
class Running {
 public:
  void cancel();
  void check() const;  // throws CancelledError
  // Counts texts among those that `cancel` ends, until `end`, which ends them too.
  void begin(std::span<const std::shared_ptr<Generation>> texts);
  void end();

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Generation>> texts_;
  bool is_cancelled_ = false;
};

// What a transcription took.
struct TranscriptionCounts {
  uint32_t n_windows = 0;
  uint32_t n_failed = 0;  // of them, those of which no text passed
  uint64_t n_tokens = 0;
};

class WindowDecoder {
 public:
  // All of these must outlive it.
  WindowDecoder(Scheduler& scheduler, const SpeechModel& model, const TranscribeOptions& options,
                Running& running)
      : scheduler_(scheduler), model_(model), options_(options), running_(running) {}

  // The text of a window. `previous`: tokens that were said before. Throws CancelledError, and what the
  // scheduler throws.
  WindowText decode(const std::shared_ptr<const SpeechWindow>& window, const std::string& language,
                    std::span<const uint32_t> previous, uint64_t seed);

  const TranscriptionCounts& counts() const { return counts_; }

 private:
  using Window = std::shared_ptr<const SpeechWindow>;

  WindowText draw(const Window& window, const std::vector<uint32_t>& prompt, float temperature,
                  uint64_t seed);
  WindowText finished(Generation& generation);
  TranscriptionRules rules(size_t n_before) const;

  Scheduler& scheduler_;
  const SpeechModel& model_;
  const TranscribeOptions& options_;
  Running& running_;
  TranscriptionCounts counts_;
};

// The probability of each language, in the order of the vocabulary's, for the window. Throws what the
// scheduler throws.
std::vector<double> language_probabilities(Scheduler& scheduler, const SpeechModel& model,
                                           std::shared_ptr<const SpeechWindow> window);

}  // namespace akunu
