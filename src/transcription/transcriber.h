// From samples to segments: window after window, each beginning where the last one's text ended. The rules
// are those of the Python package (akunu/speech/transcriber.py).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "transcription/spectrogram.h"
#include "transcription/window_decoder.h"

namespace akunu {

// A stretch of speech that the model set between two timestamps.
struct Segment {
  uint32_t id = 0;
  uint64_t seek = 0;            // the frame (10 ms) at which its window began
  uint64_t start = 0, end = 0;  // likewise
  std::string text = {};
  std::vector<uint32_t> tokens = {};
  const WindowText& window;
};

// A part of a window's text, in frames of the window.
struct TextPart {
  uint32_t begin = 0, end = 0;
  std::span<const uint32_t> tokens = {};
};

// The parts of a text, and the frames of the window that are done. `n_frames`: of the window that are audio.
// Two timestamps in a row are the end of a segment and the beginning of the next. What follows the last of
// such pairs was cut off by the window's end, and is heard again in the next one.
std::vector<TextPart> split_text(std::span<const uint32_t> tokens, uint32_t first_timestamp,
                                 uint32_t n_frames, uint32_t& done);

class Transcriber {
 public:
  // False: no more is to be heard.
  using Told = std::function<bool(const Segment&)>;

  // All of these must outlive it. Throws ArgumentError for a language that the model does not know.
  Transcriber(Scheduler& scheduler, const SpeechModel& model, TranscribeOptions options,
              Running& running, Told told);
  Transcriber(const Transcriber&) = delete;
  Transcriber& operator=(const Transcriber&) = delete;

  // All of the samples, which have one spectrogram. Throws CancelledError, and what the scheduler throws.
  void hear_all(std::span<const float> samples);

  // Samples as they come, and what is left of them at the end: a window is heard once it is full, and its
  // spectrogram is of itself alone. Both throw as `hear_all`.
  void hear(std::span<const float> samples);
  void finish();

  bool is_over() const { return is_over_; }                  // the caller has enough
  const std::string& language() const { return language_; }  // "": not detected yet
  double language_probability() const { return language_probability_; }
  uint32_t n_segments() const { return n_segments_; }
  const TranscriptionCounts& counts() const { return decoder_.counts(); }

 private:
  void detect_language(std::span<const float> samples);
  // Of a window at frame `seek` of all audio. Returns its frames that are done.
  uint32_t hear_window(const std::shared_ptr<const SpeechWindow>& window, uint64_t seek,
                       uint32_t n_frames);

  Scheduler& scheduler_;
  const SpeechModel& model_;
  const TranscribeOptions options_;
  Running& running_;
  const Told told_;
  WindowDecoder decoder_;
  std::string language_;
  double language_probability_ = 1;
  std::vector<uint32_t> said_;
  size_t said_since_ = 0;  // what is the next window's prompt
  uint32_t n_segments_ = 0;
  bool is_over_ = false;
  std::vector<float> waiting_;  // samples that came and are not done, from frame seek_ on
  uint64_t seek_ = 0;
};

}  // namespace akunu
