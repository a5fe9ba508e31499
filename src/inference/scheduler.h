// The scheduler's thread is the only one that submits. It takes requests in the order in which they
// came and runs what is under way together: one row for each generation, beside them a piece of a
// prompt. Pages are taken as texts grow. Where there are none left, the youngest generation steps
// back and goes on, from what is then still in the cache, when an older one has made room.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cache/sequence_cache.h"
#include "inference/generation.h"
#include "inference/model.h"
#include "inference/step.h"

namespace akunu {

class Scheduler {
 public:
  // The model must outlive the scheduler. `prefix_cache`: prompts that begin like an earlier text
  // use what is left of it in the cache.
  explicit Scheduler(Model& model, bool prefix_cache = true);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Ends everything that is under way with an error, and the thread. May be called again.
  void stop();

  // Both throw ArgumentError, ContextOverflowError or DeviceError before any work. max_tokens is
  // cut at what the context holds: a caller who wants to know compares it with `most_tokens`.
  std::shared_ptr<Generation> generate(GenerateRequest request);
  std::shared_ptr<LogitsTask> logits(LogitsRequest request);
  // The text of a generation ends after `n_tokens` of those it published: it is over, and nothing
  // that came later stays in the cache. May be called when it is over already.
  void cut(const std::shared_ptr<Generation>& generation, uint32_t n_tokens);

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
    bool is_known = false;       // to the device: record and log
    bool is_generating = false;  // its row in the step under way is not a prompt's
    uint32_t row = kNone;        // its row with logits in the step under way
  };
  // A logits task that has a sequence.
  struct ActiveLogits {
    std::shared_ptr<LogitsTask> task;
    uint32_t sequence = 0;
    SequenceRecord record = {};
    bool is_known = false;
    size_t chunk = 0;
  };
  // What one submission runs for those that generate.
  struct Chunk {
    Ticket ticket = 0;
    uint32_t steps = 0;
    bool is_chain = false;  // its rows move on by themselves, step after step
  };
  struct Cut {
    std::shared_ptr<Generation> generation;
    uint32_t n_tokens = 0;
  };

  void check(const std::vector<uint32_t>& tokens) const;
  void refuse_unless_fits(size_t n_rows) const;  // of logits, which are the host's memory

  template <class Kind>
  void enqueue(std::deque<std::shared_ptr<Kind>>& queue, const std::shared_ptr<Kind>& task);

  void run();
  bool wait_for_work();
  void apply_cuts();
  void drop_cancelled();
  void admit();
  bool admit(const std::shared_ptr<Generation>& generation);
  bool admit(const std::shared_ptr<LogitsTask>& task);
  void grow();
  bool make_room(uint32_t sequence, uint32_t n_positions);
  void step_back(std::vector<Active>::iterator active);
  void compose();
  bool is_disturbed();  // somebody comes, leaves or is cut
  void generate_step();
  Chunk submit();
  bool can_go_ahead(const Chunk& chunk) const;
  void finish(const Chunk& chunk);
  void logits_step();
  Row row_of(const Active& active, uint32_t position) const;
  bool take_token(Active& active);  // false: the generation is over
  void fail_everything(std::exception_ptr error);
  bool has_prompt_left(const Active& active) const;
  // Positions that a sequence comes to have at most: the last token is chosen but never run.
  static uint32_t most_positions(const Generation& generation) {
    return generation.prompt_tokens() + generation.request().max_tokens - 1;
  }

  Model& model_;
  const pid_t process_;
  const uint32_t chain_steps_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Generation>> queue_;
  std::deque<std::shared_ptr<LogitsTask>> logits_queue_;
  std::vector<Cut> cuts_;
  uint64_t n_tasks_ = 0;
  bool stopping_ = false;
  std::once_flag stopped_;

  // Everything below belongs to the scheduler's thread.
  SequenceCache cache_;
  std::vector<Active> active_;  // oldest first
  std::unique_ptr<ActiveLogits> active_logits_;
  std::optional<Chunk> ahead_;  // submitted before the one that is being waited for has ended
  Step step_;
  Step logits_step_;
  bool someone_waits_ = false;  // so a submission should be short
  bool recompose_ = true;       // the rows of the last step are not those of the next

  std::thread thread_;
};

}  // namespace akunu
