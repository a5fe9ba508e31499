// The scheduler's thread is the only one that submits. It takes requests in the order in which they
// came, gives each a sequence with every page that it may come to need, and runs what is under way
// together: one row for each generation, beside them a piece of a prompt.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "inference/generation.h"
#include "inference/model.h"
#include "inference/step.h"

namespace akunu {

class Scheduler {
 public:
  // The model must outlive the scheduler.
  explicit Scheduler(Model& model);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Ends everything that is under way with an error, and the thread. May be called again.
  void stop();

  // Both throw ArgumentError, ContextOverflowError or DeviceError before any work. max_tokens is
  // cut at what the context holds: a caller who wants to know compares it with `most_tokens`.
  std::shared_ptr<Generation> generate(GenerateRequest request);
  // `chunks` empty: as large as the device likes. `generated`: the rows run the kernels of
  // generated tokens, at most kMaxFewRows of them in a chunk.
  std::shared_ptr<LogitsTask> logits(std::vector<uint32_t> tokens, std::vector<uint32_t> chunks,
                                     bool generated);

  // Tokens that can follow a prompt of this length: one more than there are positions left, since
  // the last one is chosen but never read.
  uint32_t most_tokens(size_t prompt_tokens) const;

  // Throws DeviceError in a process that was forked after the scheduler was made.
  void check_process() const;

 private:
  // A generation that has a sequence.
  struct Active {
    std::shared_ptr<Generation> generation;
    uint32_t sequence = 0;
    SequenceRecord record = {};
    uint32_t n_prompt_done = 0;  // positions of the prompt that are in the cache or in this step
    uint32_t n_generated = 0;    // tokens chosen so far
    uint32_t row = kNone;        // its row with logits in the step under way
  };
  // A logits task that has a sequence.
  struct ActiveLogits {
    std::shared_ptr<LogitsTask> task;
    uint32_t sequence = 0;
    SequenceRecord record = {};
    uint32_t n_done = 0;
    size_t chunk = 0;
  };

  void check(const std::vector<uint32_t>& tokens) const;

  template <class Kind>
  void enqueue(std::deque<std::shared_ptr<Kind>>& queue, const std::shared_ptr<Kind>& task);

  void run();
  bool wait_for_work();
  void drop_cancelled();
  void admit();
  bool admit(const std::shared_ptr<Generation>& generation);
  bool admit(const std::shared_ptr<LogitsTask>& task);
  void send_sequence(Step& step, uint32_t sequence, const SequenceRecord& record,
                     std::span<const uint32_t> tokens);
  void compose();
  void generate_step();
  void logits_step();
  static Row row_of(const Active& active, uint32_t position);
  bool take_token(Active& active);  // false: the generation is over
  void release(uint32_t sequence);
  void await(Ticket ticket);
  void fail_everything(std::exception_ptr error);
  bool is_generating(const Active& active) const {
    return active.n_prompt_done == active.generation->prompt_tokens() && active.n_generated > 0;
  }

  Model& model_;
  const pid_t process_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Generation>> queue_;
  std::deque<std::shared_ptr<LogitsTask>> logits_queue_;
  bool stopping_ = false;
  std::once_flag stopped_;

  // Everything below belongs to the scheduler's thread.
  std::vector<Active> active_;
  std::unique_ptr<ActiveLogits> active_logits_;
  Step step_;
  Step logits_step_;
  bool someone_waits_ = false;  // so a submission should be short
  bool recompose_ = true;       // the rows of the last step are not those of the next

  std::thread thread_;
};

}  // namespace akunu
