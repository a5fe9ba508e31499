// A task whose output is the logits of a text's tokens, or what an encoder makes of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/arch.h"
#include "inference/task.h"

namespace akunu {

// Which logits are wanted.
struct LogitsRequest {
  std::vector<uint32_t> tokens;
  uint32_t first = 0;            // of these tokens, the first whose logits are wanted
  std::vector<uint32_t> chunks;  // see TaskRows; `first` begins one of them
  bool generated = false;
  int32_t priority = 0;
  std::vector<TextAdapter> adapters = {};  // each once
  std::shared_ptr<const SpeechWindow> window = {};
  // They are those of the prediction head, whose last row is in front of this token; kNone: the model's.
  uint32_t behind = kNone;
  std::vector<PlacedImage> images = {};
  bool aligns = false;  // not the logits are wanted, but where in the window the tokens are
};

// A text for an encoder.
struct EncodeRequest {
  std::vector<uint32_t> tokens;
  Pooling pooling = Pooling::mean;  // none: a vector for each token
  uint32_t second_segment = kNone;  // the first token of type 1
  int32_t priority = 0;
};

class LogitsTask : public Task {
 public:
  // `width`: numbers of one output, which are logits or an encoder's vector.
  LogitsTask(LogitsRequest request, uint32_t width);
  LogitsTask(EncodeRequest request, uint32_t width);

  // False when the time is up. Throws the error that ended the task.
  bool wait(std::chrono::milliseconds timeout);
  // float32 [n_outputs, width], once `wait` was true.
  std::unique_ptr<float[]> take() { return std::move(logits_); }

  uint32_t n_outputs() const { return n_given() - rows().first_output; }
  uint32_t width() const { return width_; }

  // The scheduler's side.
  const std::vector<uint32_t>& chosen() const override { return none_; }
  void take_tokens(std::span<const uint32_t>) override {}
  std::span<float> logits_of(uint32_t first_row, uint32_t n_rows) override;

 protected:
  bool has_news() const override { return false; }  // all of it comes with the end

 private:
  LogitsTask(TaskRows rows, int32_t priority, uint32_t width);

  const uint32_t width_;
  const std::vector<uint32_t> none_;
  std::unique_ptr<float[]> logits_;  // not zeroed: of a long text they are hundreds of megabytes
};

}  // namespace akunu
