// A task: rows of one sequence that a caller wants to have run, which of them have an output, and
// what takes it. Made by a caller's thread, worked on by the scheduler's. A kind of task derives
// from this: it says what its rows are, and is the sink of what comes out of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "cache/moved_positions.h"
#include "core/rows.h"
#include "inference/image.h"
#include "inference/text_masks.h"

namespace akunu {

class PositionCopies;
enum class PrefixEnd : uint8_t;
struct SavedPositions;

enum class FinishReason : uint8_t { none, stop, length, cancelled };

constexpr std::chrono::milliseconds kWithoutLimit = std::chrono::milliseconds::max();

// A window of speech: the frames of its log-mel spectrogram, float32 [n_frames, n_mels], and a number
// that it has alone. What the encoder makes of it is kept for other texts of it.
struct SpeechWindow {
  uint64_t id = 0;
  std::vector<float> frames;
};

// Rows of a sequence: one for each of the tokens that are given, then one for each that is chosen.
struct TaskRows {
  std::vector<uint32_t> tokens;
  // The first of these tokens whose row has an output; those behind it have one too. 0: all;
  // tokens.size() - 1: the last one alone; tokens.size(): none.
  uint32_t first_output = 0;
  // Tokens to choose, at most, each from the logits of the row before it: the output goes to
  // take_tokens. 0: it is the rows' logits, and goes to logits_of.
  uint32_t max_chosen = 0;
  // Logprobs are wanted of the tokens given, and of those chosen.
  bool scores_given = false;
  bool scores_chosen = false;
  // The arrival of a task with the same tokens, whose pages this one shares. 0: none.
  uint64_t shares_with = 0;
  // Of a speech model: the window of audio that its text is of.
  std::shared_ptr<const SpeechWindow> window = {};
  // In the order of their positions, whose tokens are the images' own.
  std::vector<PlacedImage> images = {};
  // Its outputs are weights of cross-attention: of the alignment heads, over the window's positions.
  bool aligns = false;
  // What is added to the model's weights, as PrefixKey has it.
  std::vector<TextAdapter> adapters = {};
  // Rows per step; empty: as the composer likes. Otherwise exactly these, whatever is in the cache.
  std::vector<uint32_t> chunks;
  bool generated = false;  // with chunks: they run the kernels of rows that generate
  // Nothing comes out, and somebody waits all the same: see saved_text.h.
  bool saves = false;
  // Where it fills the context, its positions are kept for a text that goes on:
  // moved_text.h.
  bool keeps_positions = false;
  // How many tokens are drafted, as the text went on before; see speculation.h.
  uint32_t speculation = 0;
  // Its outputs are the logits of a prediction head, whose last row is in front of this token. kNone: they are not.
  uint32_t behind = kNone;
  // Of an encoder's text: all of its rows run in one step.
  bool whole = false;
  uint32_t pool = kPoolOwn;         // what the outputs are; see Row
  uint32_t second_segment = kNone;  // where tokens of type 1 begin

  // Nobody waits for a task without output: see Reading.
  bool has_output() const {
    return max_chosen > 0 || first_output < tokens.size() || saves || scores_given;
  }
  // Of the tokens, those that are read as a prompt.
  uint32_t n_prompt() const { return generated ? 0 : static_cast<uint32_t>(tokens.size()); }
};

// How its tokens are chosen, as the device wants it.
struct Choosing {
  SequenceRecord record;
  std::vector<uint32_t> options;  // the words that the record's lists lie in
  uint32_t adapters = kNone;      // the first word of the list of adapters; see Row::adapter
};

// Words of the options that a list of so many adapters takes.
constexpr size_t adapter_words(size_t n) {
  return n == 0 ? 0 : 1 + n * sizeof(AdapterShare) / sizeof(uint32_t);
}

class Task {
 public:
  // `priority`: of what waits, or wants more rows than a step has, the higher goes first.
  Task(TaskRows rows, Choosing choosing, int32_t priority);
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // The callers' side; any thread.

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Has `callback` called whenever something new can be had without waiting, or the task is over;
  // at once if that is so already. It is called by whoever brings the news, mostly the scheduler's
  // thread: it must not block, throw, or ask anything of the task. An empty one takes it back; the
  // old one is not called any more once this returns.
  void on_change(std::function<void()> callback);

  const TaskRows& rows() const { return rows_; }
  int32_t priority() const { return priority_; }
  uint32_t n_given() const { return static_cast<uint32_t>(rows_.tokens.size()); }
  // Tokens that were drafted because the text went on like that before, and of them those that were
  // chosen.
  uint32_t n_drafted() const { return drafted_.load(std::memory_order_relaxed); }
  uint32_t n_held() const { return held_.load(std::memory_order_relaxed); }
  // Of the tokens given, those whose positions are in the cache so far, and how many of them were
  // there before the task began.
  uint32_t n_given_done() const { return given_done_.load(std::memory_order_relaxed); }
  uint32_t n_cached() const { return cached_.load(std::memory_order_relaxed); }
  // Why they were no more; untold until the task began.
  PrefixEnd prefix_end() const { return prefix_end_.load(std::memory_order_relaxed); }

  // The scheduler's side.

  uint64_t arrival = 0;  // counts tasks; set before the scheduler's thread sees this one

  // Ends the task; the first call counts.
  void fail(std::exception_ptr error);
  void finish(FinishReason reason);
  bool is_over() const;

  const Choosing& choosing() const { return choosing_; }
  // What rules the tokens that it chooses; none where all may come.
  virtual TextMasks* masks() const { return nullptr; }
  bool is_constrained() const { return masks() != nullptr && masks()->rules(); }
  void set_cached(uint32_t n) { cached_.store(n, std::memory_order_relaxed); }
  void set_prefix_end(PrefixEnd end) { prefix_end_.store(end, std::memory_order_relaxed); }
  void count_drafted(uint32_t n, uint32_t n_held) {
    drafted_.fetch_add(n, std::memory_order_relaxed);
    held_.fetch_add(n_held, std::memory_order_relaxed);
  }
  void set_given_done(uint32_t n);  // never less than before, nor more than there are

  // The sink. None of these may block, throw or allocate.

  // Every token chosen so far: only take_tokens changes them.
  virtual const std::vector<uint32_t>& chosen() const = 0;
  virtual void take_tokens(std::span<const uint32_t> tokens) = 0;
  // Of tokens chosen, before these themselves; and of the tokens behind some rows of those given.
  virtual void take_logprobs(std::span<const TokenLogprobs>) {}
  virtual void take_given_logprobs(uint32_t, std::span<const TokenLogprobs>) {}
  // Of the tokens given, how many rows from the first on have handed in theirs.
  virtual uint32_t n_scored() const { return 0; }
  // Where the logits of some rows belong, float32 [n_rows, vocab_size].
  virtual std::span<float> logits_of(uint32_t first_row, uint32_t n_rows) = 0;
  // All rows have run that it has; what is in the cache can be read.
  virtual void take_positions(const PositionCopies&, uint32_t) {}
  // What the cache is to be given instead of any row; null of all other tasks.
  virtual const SavedPositions* restores() const { return nullptr; }
  // What it begins with, in place of what is in the cache; null of most tasks,
  // and once it is over.
  virtual const MovedPositions* moved() const { return nullptr; }

 protected:
  // False when the time is up. Throws the error that ended the task.
  bool wait_for_end(std::chrono::milliseconds timeout);
  // With `lock` held: waits until `holds` or the task is over. False when the time is up.
  template <class Holds>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout,
                  const Holds& holds) {
    const auto is_over = [&] { return holds() || reason_ != FinishReason::none; };
    if (timeout != kWithoutLimit) return changed_.wait_for(lock, timeout, is_over);
    changed_.wait(lock, is_over);
    return true;
  }
  void tell_change();                 // with mutex_ held
  void rethrow_error() const;         // likewise
  virtual void let_go() {}            // likewise, when it is over: of what only its rows needed
  virtual bool has_news() const = 0;  // likewise: something that nobody took yet

  mutable std::mutex mutex_;
  FinishReason reason_ = FinishReason::none;

 private:
  const TaskRows rows_;
  const Choosing choosing_;
  const int32_t priority_;
  std::condition_variable changed_;
  std::function<void()> on_change_;
  std::exception_ptr error_;
  std::atomic<bool> cancelled_{false};
  std::atomic<uint32_t> given_done_{0};
  std::atomic<uint32_t> cached_{0};
  std::atomic<PrefixEnd> prefix_end_{};  // untold
  std::atomic<uint32_t> drafted_{0};
  std::atomic<uint32_t> held_{0};
};

// The order in which tasks get what there is too little of.
inline bool goes_before(const Task& a, const Task& b) {
  return a.priority() != b.priority() ? a.priority() > b.priority() : a.arrival < b.arrival;
}

}  // namespace akunu
