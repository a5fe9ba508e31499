// A request and what becomes of it: made by a caller's thread, worked on by the scheduler's.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/rows.h"

namespace akunu {

// Neutral values switch a setting off; see SequenceRecord.
struct SamplingSettings {
  float temperature = 0;
  uint32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  uint32_t penalty_window = 64;
  uint64_t seed = 0;
  uint32_t choice = 0;
};

struct GenerateRequest {
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 0;
  std::vector<uint32_t> stop_ids;
  SamplingSettings sampling;
};

enum class FinishReason : uint8_t { none, stop, length, cancelled };

// Something that a caller waits for and may give up.
class Task {
 public:
  virtual ~Task() = default;

  uint64_t id = 0;  // the order of arrival; set before the scheduler's thread sees the task

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // The scheduler's side. Ends the task; the first call counts.
  void fail(std::exception_ptr error);
  void finish(FinishReason reason);

 protected:
  void rethrow_error() const;  // with mutex_ held

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  FinishReason reason_ = FinishReason::none;
  std::exception_ptr error_;

 private:
  std::atomic<bool> cancelled_{false};
};

class Generation : public Task {
 public:
  explicit Generation(GenerateRequest request);

  // Copies tokens that were not taken yet into `out`, waiting for the first of them. Returns how
  // many: 0 means that the time is up, or that it is over (see reason()). Throws the error that
  // ended the generation once every token before it has been taken.
  size_t next(std::span<uint32_t> out, std::chrono::milliseconds timeout);

  // none: still under way, or tokens are left to take.
  FinishReason reason() const;
  uint32_t prompt_tokens() const { return static_cast<uint32_t>(request_.prompt.size()); }
  uint32_t completion_tokens() const;
  // Tokens of the prompt whose positions are in the cache so far, and how many of them were there
  // before it began.
  uint32_t prompt_tokens_done() const { return prompt_done_.load(std::memory_order_relaxed); }
  uint32_t cached_tokens() const { return cached_.load(std::memory_order_relaxed); }
  double prompt_seconds() const;                       // from the request to the first token
  double completion_seconds(uint32_t n_tokens) const;  // from the first of these tokens to the last

  // The scheduler's side.
  const GenerateRequest& request() const { return request_; }
  void set_cached_tokens(uint32_t n) { cached_.store(n, std::memory_order_relaxed); }
  void set_prompt_tokens_done(uint32_t n);  // never less than before, nor more than there are
  void publish(uint32_t token);             // never allocates
  // Every token so far. Only `publish` changes them.
  const std::vector<uint32_t>& tokens() const { return tokens_; }

 private:
  using Clock = std::chrono::steady_clock;

  const GenerateRequest request_;
  std::vector<uint32_t> tokens_;  // capacity max_tokens
  size_t taken_ = 0;
  Clock::time_point requested_ = Clock::now();
  std::vector<Clock::time_point> times_;  // of each token; capacity max_tokens
  std::atomic<uint32_t> prompt_done_{0};
  std::atomic<uint32_t> cached_{0};
};

// Which logits are wanted.
struct LogitsRequest {
  std::vector<uint32_t> tokens;
  uint32_t first = 0;  // of these tokens, the first whose logits are wanted
  // Rows per step; empty: as many as the device likes. Otherwise exactly these rows run, whatever
  // is in the cache, and `first` begins one of them.
  std::vector<uint32_t> chunks;
  bool generated = false;  // the rows' role: generated, not prompt; only with chunks
};

// Logits of a text's tokens, run through the cache in chunks.
class LogitsTask : public Task {
 public:
  LogitsTask(LogitsRequest request, uint32_t vocab_size);

  // False when the time is up. Throws the error that ended the task.
  bool wait(std::chrono::milliseconds timeout);
  // float32 [tokens - first, vocab_size], once `wait` was true.
  std::unique_ptr<float[]> take() { return std::move(logits_); }

  const LogitsRequest& request() const { return request_; }
  // The scheduler's side: the logits of some rows.
  std::span<float> logits(size_t first_row, size_t n_rows);

 private:
  const LogitsRequest request_;
  const uint32_t vocab_size_;
  std::unique_ptr<float[]> logits_;  // not zeroed: of a long text they are hundreds of megabytes
};

}  // namespace akunu
