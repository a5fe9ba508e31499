// The scheduler's thread is the only one that submits. It takes tasks in order, as there are
// sequences and pages for them (queue.h), has rows of all that are under way run together
// (composer.h) and hands on what comes out (results.h). Pages are taken as texts grow. Where there
// are none left, the last in order steps back and goes on, from what is then still in the cache,
// when another has made room.
//
// The token masks of texts with a grammar are computed by another thread (masks.h) while the device computes
// the step. If a mask is not ready when tokens are sampled, that row's result is discarded, and the text is
// left out of steps until its mask is there.
//
// When nobody has wanted anything for a moment, it reads what was generated (reading.h), a short step
// at a time. Whoever comes then waits for the step under way at most.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/sequence_cache.h"
#include "core/home_process.h"
#include "inference/active.h"
#include "inference/composer.h"
#include "inference/draft_model.h"
#include "inference/generation.h"
#include "inference/logits_task.h"
#include "inference/masks.h"
#include "inference/model.h"
#include "inference/occupancy.h"
#include "inference/prediction_head.h"
#include "inference/queue.h"
#include "inference/results.h"
#include "inference/saved_text.h"
#include "inference/step.h"
#include "inference/step_pace.h"

namespace akunu {

struct SchedulerOptions {
  // Prompts that begin like an earlier text use what is left of it in the cache.
  bool prefix_cache = true;
  // Tasks that may wait; more are refused.
  uint32_t most_waiting = 1024;
  // Processor time that the masks of one text may take; see Masks.
  std::chrono::nanoseconds mask_time = std::chrono::seconds(10);
};

class Scheduler {
 public:
  // The models must outlive the scheduler. `draft_model`: proposes tokens, where it is not null; it has
  // the same vocabulary and the same device. Throws UnsupportedModelError where it cannot.
  explicit Scheduler(Model& model, const SchedulerOptions& options = {},
                     Model* draft_model = nullptr);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Ends everything that is under way with an error, and the thread. May be called again.
  void stop();

  // Both throw ArgumentError, ContextOverflowError, QueueFullError or DeviceError before any work.
  // max_tokens is cut at what the context holds: a caller who wants to know compares it with
  // `most_tokens`.
  std::shared_ptr<Generation> generate(GenerateRequest request,
                                       std::unique_ptr<Constraint> constraint = nullptr);
  // An image for such requests; see Images::take.
  std::shared_ptr<Image> image(std::span<const float> patches, uint32_t width = 0) {
    return images_.take(model_.context.arch(), patches, width);
  }
  std::shared_ptr<LogitsTask> logits(LogitsRequest request);
  // Of an encoder; the others are not.
  std::shared_ptr<LogitsTask> encode(EncodeRequest request);
  // Keys and values of all of these tokens, which are read as a prompt where the cache lacks them; and
  // back, for later texts that begin with these tokens: `n_cached` of the task says for how many
  // positions there was room. Throws as `generate`, and UnsupportedModelError for a model with an
  // encoder.
  std::shared_ptr<SavingTask> save(std::vector<uint32_t> tokens);
  std::shared_ptr<RestoringTask> restore(std::vector<uint32_t> tokens, SavedPositions saved);
  // scheduler_disk.cpp
  // Has what is computed of prompts kept in a folder, up to so many bytes, for later processes too; once,
  // and before the first task. `adapters`: for each adapter of the model, in order, a digest of what it is.
  // The folder must be of this model alone, loaded like this. Throws ArgumentError, and
  // UnsupportedModelError for a model with states, an encoder, or one that keeps nothing.
  void keep_on_disk(std::filesystem::path folder, uint64_t most_bytes,
                    std::vector<std::vector<uint32_t>> adapters);
  std::optional<DiskCounts> disk_counts() const;
  // scheduler_adapters.cpp
  // Loads an adapter between two steps, and returns its number. Where a folder keeps prefixes,
  // `digest` tells it from others. Texts that are under way continue with the same bits. Throws ArgumentError for a name that another one has, and what
  // open_adapter and Adapters throw; then nothing has changed.
  uint32_t load_adapter(const AdapterPath& adapter, std::vector<uint32_t> digest);
  // Frees its memory, and what the cache has of its texts. Throws ArgumentError for an adapter that is not there, and
  // one that a text under way or in line has.
  void unload_adapter(uint32_t number);

  // The text of a task ends after `n_chosen` of the tokens that it chose: it is over, and nothing
  // that came later stays in the cache. May be called when it is over already.
  void cut(const std::shared_ptr<Task>& task, uint32_t n_chosen);

  // Tokens that can follow a prompt of this length: one more than there are positions left, since
  // the last one is chosen but never read.
  uint32_t most_tokens(size_t prompt_tokens) const;

  // Until nothing is under way, and everything that was generated is read; false when the time is up.
  bool wait_until_idle(std::chrono::milliseconds timeout);

  // What waits, and what is under way. Takes no lock; as of a moment ago.
  size_t n_waiting() const { return queue_.n_waiting(); }
  const Occupancy& occupancy() const { return occupancy_; }

  // Throws DeviceError in a process that was forked after the scheduler was made.
  void check_process() const;

 private:
  // What is read from the disk, and for whom.
  struct Fetch {
    std::weak_ptr<Task> task;
    std::optional<RunsOnDisk> runs;  // once it was read
  };
  // What was submitted together.
  struct Submitted {
    Ticket ticket = 0;
    uint32_t steps = 0;
    bool is_chain = false;  // all of its rows move on by themselves, step after step
    std::optional<Ticket> logits =
        {};  // what was submitted before `ticket`, where masks came between
  };

  void run();
  std::chrono::milliseconds patience() const;  // how long to wait for somebody
  bool is_reading() const;
  void begin_reading();
  void publish();    // what the engine is busy with
  void let_in();     // and out: who was cut or cancelled
  void run_piece();  // of the pass that a text waits for
  std::unique_ptr<CutPass> begin_pass(Active& active);
  void apply(const std::vector<Cut>& cuts);
  void drop_cancelled();
  void end(const Active& active, uint32_t n_kept);
  Queue::Answer admit(const std::shared_ptr<Task>& task);
  PrefixKey key_of(const Task& task) const;
  void between_steps(std::function<void()> work);
  void use_adapters(AdaptersOnDevice set);
  void refuse_in_use(uint64_t load, const std::string& name) const;
  bool waits_for_prefix(const Task& task) const;
  PrefixDisk* disk() const { return disk_in_use_.load(std::memory_order_acquire); }
  std::vector<uint32_t> words_of(const PrefixKey& key) const;
  bool waits_for_disk(const std::shared_ptr<Task>& task, const Beginning& beginning);
  const RunsOnDisk* fetched_for(const std::shared_ptr<Task>& task) const;
  void look_at_disk();
  bool has_states_to_store() const;
  void store_pages();
  void store_rest();
  bool is_disturbed() const;  // somebody comes, leaves or is cut
  void grow();
  bool grow(const Active& active);
  std::vector<Active>::iterator first_to_go();
  void step_back(std::vector<Active>::iterator active);
  void run_step();
  // `under_way`: steps of the submission before, whose results are not there yet.
  Submitted submit(uint32_t under_way = 0);
  uint32_t steps_left(uint32_t under_way) const;
  void ask_for_masks();
  void ask_for_drafted();
  void send_masks();
  bool has_masks() const;  // of all rows of the step
  void wait_before_step();
  void wait_before_choice();
  void wait_for_somebody();
  Submitted submit_beside_masks();
  bool has_constraint() const;
  bool may_draft() const;
  bool uses_head() const;
  bool can_go_ahead(const Submitted& submitted) const;
  void finish(const Submitted& submitted);
  void fail_everything(const std::exception_ptr& error);

  Model& model_;
  Images images_;
  const bool prefix_cache_;
  const HomeProcess home_;
  const uint32_t chain_steps_;
  Queue queue_;
  Masks masks_;
  Occupancy occupancy_;
  std::once_flag stopped_;
  std::mutex changing_adapters_;  // held from the layout of a set until it is swapped

  // Behind the queue, which it wakes, and before the thread, which uses it.
  std::unique_ptr<PrefixDisk> disk_;
  std::vector<std::vector<uint32_t>> adapter_digests_;
  std::atomic<PrefixDisk*> disk_in_use_{nullptr};

  // Everything below belongs to the scheduler's thread.
  SequenceCache cache_;
  std::unique_ptr<DraftModel> draft_model_;
  std::unique_ptr<PredictionHead> head_;  // of the model, where it has one
  std::vector<Active> active_;            // in order; see goes_before
  std::optional<Submitted> ahead_;  // submitted before the one that is being waited for has ended
  RowCosts costs_;
  StepPace pace_;
  CutPace encoder_pace_, image_rows_pace_;
  std::chrono::steady_clock::time_point ended_;  // the submission that was taken last
  double head_seconds_ = 0;  // of the prediction head, behind the step that was taken last
  const Composer composer_;
  Results results_;
  Step step_;
  std::optional<Fetch> fetch_;
  std::vector<Status> statuses_;  // of a step in two submissions
  bool room_changed_ = true;      // since those in line were last offered it
  bool recompose_ = true;         // the rows of the last step are not those of the next

  std::thread thread_;
};

}  // namespace akunu
