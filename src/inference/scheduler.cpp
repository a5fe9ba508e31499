// The scheduler's loop. scheduler.h says what it promises.
//
// 1. What it does. `run`: tasks that came are admitted as sequences and pages allow (`admit`), then
//    `run_step` takes pages (`grow`), composes a step, submits it and hands on what came out
//    (`finish`). When there is nothing else to do, texts that ended are read once more as prompts
//    (`begin_reading`, reading.h), so that later requests can take them over from the cache. Between
//    two steps, a piece runs of the pass over an image or a window of speech (`run_piece`).
// 2. What bounds it. The time between two submissions, in which a GPU is idle.
// 3. What is done about it. While the same rows go on, nothing is composed or sent; a submission
//    runs several steps (chain_steps_, pace_); on devices that allow it the next one is submitted before
//    the results of this one are read (`can_go_ahead`). Token masks are computed beside the logits
//    (`submit_beside_masks`).
// 4. Where to change it. Which rows run: composer.cpp. Who waits: queue.cpp. Who gets a place, and who
//    steps back: scheduler_admission.cpp. What comes out: results.cpp. Who keeps which pages:
//    cache/pages.cpp.
#include "inference/scheduler.h"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "inference/image_pass.h"
#include "inference/image_rows_pass.h"
#include "inference/moved_text.h"
#include "inference/reading.h"
#include "inference/request_checks.h"
#include "inference/speech_window.h"

namespace akunu {
namespace {

// Reading texts that ended begins after this pause: long enough for a program that sends its next
// request at once, shorter than a person reads a reply.
constexpr std::chrono::milliseconds kPause{50};

// The longest that a chain of steps lasts, once a step has been measured: tokens come to a reader in such portions.
constexpr double kChainSeconds{0.02};

// While nobody wants anything and the disk is behind.
constexpr std::chrono::milliseconds kBetweenLooksAtDisk{5};

// Merges the statuses of two submissions of one step into `first`; the earlier error of a row stays.
std::span<const Status> join(std::vector<Status>& first, std::span<const Status> second) {
  if (second.size() > first.size()) first.resize(second.size());
  for (size_t i = 0; i < second.size(); ++i)
    if (first[i].code == kStatusOk) first[i] = second[i];
  return first;
}

}  // namespace

Scheduler::Scheduler(Model& model, const SchedulerOptions& options, Model* draft_model)
    : model_(model),
      prefix_cache_(options.prefix_cache && !model.context.arch().embeds),
      chain_steps_(model.context.sizes.chain_steps),
      queue_(options.most_waiting),
      masks_(model.context.sizes.mask_bytes / sizeof(uint32_t), options.mask_time,
             [this] { queue_.wake(); }),
      occupancy_(model.context.cache.groups().size()),
      cache_(model.context.cache, model.context.sequences, model.context.sizes.max_rows_in_flight,
             prefix_cache_, model.context.weights->has_prediction_head()),
      draft_model_(draft_model != nullptr ? std::make_unique<DraftModel>(
                                                *draft_model, *model.context.weights, prefix_cache_)
                                          : nullptr),
      head_(model.context.weights->has_prediction_head()
                ? std::make_unique<PredictionHead>(model.context, model.programs)
                : nullptr),
      encoder_pace_(model.programs.encoder.parts.size()),
      image_rows_pace_(model.programs.image_rows.size()),
      composer_(model.context, cache_, costs_, draft_model_.get(), head_.get()),
      results_(model.context, model.programs, cache_, chain_steps_, head_.get()),
      step_(model.context, model.programs) {
  statuses_.reserve(model.context.sizes.max_rows);
  active_.reserve(model.context.sizes.max_texts);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw DeviceError(std::string("the system refused a thread to generate text in: ") +
                      error.what());
  }
}

void Scheduler::stop() {
  std::call_once(stopped_, [&] {
    if (home_.is_another()) {  // there is no such thread here, and a lock may be held for ever
      thread_.detach();
    } else {
      queue_.close();
      thread_.join();
    }
    masks_.stop();
  });
}

void Scheduler::check_process() const {
  home_.refuse_elsewhere(
      "the process was forked after the model was loaded; load the model in the child");
}

uint32_t Scheduler::most_tokens(size_t prompt_tokens) const {
  return akunu::most_tokens(model_, prompt_tokens);
}

std::shared_ptr<Generation> Scheduler::generate(GenerateRequest request,
                                                std::unique_ptr<Constraint> constraint) {
  check_process();
  check_request(model_, request);
  std::shared_ptr<const MovedPositions> moved;
  if (const auto before = std::exchange(request.goes_on_from, nullptr))
    moved = positions_of_text_before(model_.context, *before, request);
  if (constraint) masks_.start();
  auto generation =
      std::make_shared<Generation>(std::move(request), std::move(constraint), std::move(moved));
  if (generation->rows().max_chosen == 0 && !generation->rows().scores_given)
    generation->finish(FinishReason::length);
  else
    queue_.add(generation);
  return generation;
}

std::shared_ptr<LogitsTask> Scheduler::logits(LogitsRequest request) {
  check_process();
  check_request(model_, request);
  const uint32_t width = logits_width(model_, request);
  auto task = std::make_shared<LogitsTask>(std::move(request), width);
  queue_.add(task);
  return task;
}

std::shared_ptr<LogitsTask> Scheduler::encode(EncodeRequest request) {
  check_process();
  check_tokens(model_, request.tokens, true);
  auto task =
      std::make_shared<LogitsTask>(std::move(request), model_.context.weights->output_width());
  queue_.add(task);
  return task;
}

void Scheduler::cut(const std::shared_ptr<Task>& task, uint32_t n_chosen) {
  if (!home_.is_another()) queue_.cut({task, n_chosen});  // else a lock may be held for ever
}

bool Scheduler::wait_until_idle(std::chrono::milliseconds timeout) {
  check_process();
  return queue_.wait_until_idle(timeout);
}

void Scheduler::run() {
  while (queue_.wait(patience())) {
    try {
      if (is_reading() && (queue_.has_news() || model_.context.device->is_used_by_others()))
        step_back(active_.begin());
      const bool is_quiet = active_.empty() && !queue_.has_news() && !has_states_to_store();
      if (!ahead_ || is_disturbed()) {
        // A text that joins, leaves or is cut changes rows and pages: the submission in flight must be
        // over before that.
        if (ahead_) finish(*std::exchange(ahead_, std::nullopt));
        look_at_disk();
        let_in();
        store_pages();
      }
      if (is_quiet) begin_reading();
      if (!active_.empty()) run_step();
      run_piece();
    } catch (...) {
      fail_everything(std::current_exception());
    }
    if (active_.empty()) publish();
  }
  try {
    store_rest();
  } catch (...) {
    fail_everything(std::current_exception());
  }
  const std::exception_ptr closed = std::make_exception_ptr(Error("the model was closed"));
  fail_everything(closed);
  queue_.fail(closed);
}

std::chrono::milliseconds Scheduler::patience() const {
  if (!active_.empty()) return std::chrono::milliseconds(0);
  const bool has_unread = cache_.prefixes.has_unread();
  if (has_unread && !has_states_to_store()) return kPause;
  if (disk() == nullptr) return kWithoutLimit;
  if (cache_.runs.next() != nullptr && disk()->takes_more()) return std::chrono::milliseconds(0);
  return has_unread || disk()->is_busy() ? kBetweenLooksAtDisk : kWithoutLimit;
}

bool Scheduler::is_reading() const {
  return !active_.empty() && !active_.front().task->rows().has_output();
}

void Scheduler::publish() {
  const auto n_reading = std::ranges::count_if(
      active_, [](const Active& active) { return !active.task->rows().has_output(); });
  occupancy_.set_drafted(results_.n_drafted(), results_.n_held());
  occupancy_.set_running(static_cast<uint32_t>(active_.size()) - static_cast<uint32_t>(n_reading));
  for (uint32_t group = 0; group < model_.context.cache.groups().size(); ++group)
    occupancy_.set_pages(group, cache_.pages.count(group));
}

void Scheduler::begin_reading() {
  if (!active_.empty() || !queue_.empty() || model_.context.device->is_used_by_others()) return;
  if (std::optional<Unread> unread = cache_.prefixes.take_unread())
    admit(std::make_shared<Reading>(std::move(*unread)));
}

bool Scheduler::is_disturbed() const {
  return queue_.has_news() || !queue_.empty() ||
         std::ranges::any_of(active_,
                             [](const Active& active) { return active.task->is_cancelled(); });
}

// The queue is gone through again only when somebody came or left: until then, those that found no
// room would find none.
void Scheduler::let_in() {
  if (queue_.has_news()) {
    apply(queue_.collect());
    for (const std::function<void()>& work : queue_.take_work()) work();
    room_changed_ = true;
  }
  drop_cancelled();
  if (std::exchange(room_changed_, false))
    queue_.offer([&](const std::shared_ptr<Task>& task) { return admit(task); });
}

// A piece of the pass that is under way, or the first one of another: of the most important text that lacks an input. If
// it fails, only this text ends, with its error.
void Scheduler::run_piece() {
  if (ahead_ || model_.programs.encoder.parts.empty()) return;
  auto active = std::ranges::find_if(active_, [](const Active& each) { return !!each.pass; });
  if (active == active_.end()) active = std::ranges::find_if(active_, &Active::lacks_input);
  if (active == active_.end()) return;
  recompose_ = true;  // the device has the pass's rows now
  try {
    if (!active->pass) active->pass = begin_pass(*active);
    active->pass->run_piece(composer_.piece_size(active_, step_), *active);
    if (!active->pass->is_done()) return;
    active->pass.reset();
    room_changed_ = true;  // a task may wait for this prefix
  } catch (...) {
    active->task->fail(std::current_exception());
    cache_.sequences.discard(active->sequence);
    active_.erase(active);
    room_changed_ = true;
  }
}

std::unique_ptr<CutPass> Scheduler::begin_pass(Active& active) {
  if (const PlacedImage* const placed = composer_.first_unread_image(active))
    return std::make_unique<ImagePass>(model_, encoder_pace_, placed->image);
  if (const PlacedImage* const placed = composer_.image_without_keys(active))
    return std::make_unique<ImageRowsPass>(model_, image_rows_pace_, cache_, active, *placed);
  return std::make_unique<WindowPass>(model_, encoder_pace_, cache_, active.task->rows().window,
                                      active.sequence);
}

void Scheduler::fail_everything(const std::exception_ptr& error) {
  if (ahead_) {
    try {
      await(model_.context, std::exchange(ahead_, std::nullopt)->ticket);
    } catch (...) {  // its texts fail below in any case
    }
  }
  for (Active& active : active_) {
    active.task->fail(error);
    cache_.sequences.discard(active.sequence);  // a failed step may have left anything in its pages
  }
  active_.clear();
  cache_.windows.forget();
  recompose_ = room_changed_ = true;
}

void Scheduler::apply(const std::vector<Cut>& cuts) {
  for (const Cut& cut : cuts) {
    const uint32_t n_kept = cut.task->n_given() + cut.n_chosen;
    const auto active = std::ranges::find(active_, cut.task, &Active::task);
    if (active != active_.end()) {
      end(*active, n_kept);
      active_.erase(active);
      recompose_ = true;
    } else {
      cache_.prefixes.shorten(cut.task->arrival, n_kept);
    }
    cut.task->finish(FinishReason::stop);
  }
}

void Scheduler::drop_cancelled() {
  queue_.drop_cancelled();
  const size_t gone = std::erase_if(active_, [&](Active& active) {
    if (!active.task->is_cancelled()) return false;
    active.task->finish(FinishReason::cancelled);
    end(active, kNone);
    return true;
  });
  if (gone > 0) recompose_ = room_changed_ = true;
}

// A prompt that was cancelled half-way keeps what was computed; its rest is not read later.
void Scheduler::end(const Active& active, uint32_t n_kept) {
  const Sequence& sequence = model_.context.sequences[active.sequence];
  cache_.sequences.end(active.sequence,
                       sequence.n_done < sequence.n_prompt ? sequence.n_done : n_kept);
}

void Scheduler::run_step() {
  if (!ahead_) {
    ask_for_masks();
    grow();
    if (active_.empty()) return;
    composer_.read_ahead(active_);
    if (recompose_ || may_draft()) {
      recompose_ = true;
      publish();  // who is under way, or what they have, has changed
      wait_before_step();
      composer_.compose(active_, step_);
    }
    if (step_.empty()) {
      if (std::ranges::none_of(active_, &Active::lacks_input)) wait_for_somebody();
      return;
    }
  }
  const bool is_alone = !ahead_;
  const auto began = std::chrono::steady_clock::now();
  const auto ended_before = ended_;
  const Submitted submitted = ahead_ ? *std::exchange(ahead_, std::nullopt) : submit();
  if (can_go_ahead(submitted)) ahead_ = submit(submitted.steps);
  const uint32_t n_generated = step_.n_generated() == step_.n_rows() ? step_.n_rows() : 0;
  finish(submitted);
  // One that was made ahead begins when the one before it ends.
  if (submitted.is_chain)
    pace_.took(n_generated,
               std::chrono::duration<double>(ended_ - (is_alone ? began : ended_before)).count() /
                   submitted.steps);
  if (is_alone && !ahead_ && !submitted.logits)
    costs_.took(n_generated,
                (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() -
                 head_seconds_) /
                    submitted.steps);
  if (active_.empty() && ahead_) finish(*std::exchange(ahead_, std::nullopt));
}

// Steps that some text has use for, at least one.
uint32_t Scheduler::steps_left(uint32_t under_way) const {
  uint32_t left = 1;
  for (const Active& active : active_) {
    const uint32_t done = model_.context.sequences[active.sequence].n_done + under_way;
    left = std::max(left, std::max(most_positions(*active.task), done) - done);
  }
  return left;
}

Scheduler::Submitted Scheduler::submit(uint32_t under_way) {
  const bool is_masked = std::ranges::any_of(active_, &Active::is_masked);
  if (is_masked) {
    ask_for_drafted();
    if (!has_masks()) return submit_beside_masks();
    send_masks();
  }
  // Only rows that generate can run several steps: those of a prompt are other rows in the next step.
  // And while a task waits in the queue, one step at a time, so that it is let in soon.
  Submitted submitted{.steps = 1};
  submitted.is_chain = !is_masked && std::ranges::all_of(active_, [](const Active& active) {
    return active.is_generating && !active.waits && active.drafted.empty();
  });
  // Behind each step the head runs over its rows.
  submitted.is_chain = submitted.is_chain && !uses_head();
  if (submitted.is_chain && queue_.empty())
    submitted.steps =
        std::min(pace_.steps(step_.n_rows(), kChainSeconds, chain_steps_), steps_left(under_way));
  // What was chosen where a constraint begins to rule is chosen again, by all rows but the first.
  if (has_constraint() && cache_.sequences.most_again() < submitted.steps)
    submitted.steps = cache_.sequences.most_again() + 1;
  // Active texts are in order of importance, so the first one has the highest priority.
  submitted.ticket = step_.submit(*model_.context.device, submitted.steps, !recompose_,
                                  active_.front().task->priority());
  // The same rows go on, unless a prompt was among them, a text begins or ends, or the free text of a
  // constraint may have ended.
  recompose_ = !submitted.is_chain || has_constraint();
  return submitted;
}

// One step in two submissions: the logits are computed while masks are, and only the choice waits.
Scheduler::Submitted Scheduler::submit_beside_masks() {
  const int32_t priority = active_.front().task->priority();
  Submitted submitted{.steps = 1};
  submitted.logits = step_.submit_logits(*model_.context.device, false, priority);
  const bool is_gpu = model_.context.device->chip().processors == 0;
  if (is_gpu) wait_before_choice();  // a CPU computes where it is waited for
  if (!has_masks()) {
    await(model_.context, *submitted.logits);
    wait_before_choice();
  }
  for (Active& active : active_)
    if (active.is_masked && !active.task->masks()->has_masks(active.drafted.size()))
      active.is_late = active.task->masks()->is_late = true;
  send_masks();
  submitted.ticket = step_.submit_choice(*model_.context.device, priority);
  recompose_ = true;
  return submitted;
}

// Whether a text that generates may be drafted: then the rows of the last step are not those of the
// next.
bool Scheduler::may_draft() const {
  return std::ranges::any_of(active_, [&](const Active& active) {
    return active.speculator != nullptr &&
           (active.draft != nullptr || active.uses_head || active.speculator->has_draft()) &&
           composer_.is_generating(active);
  });
}

bool Scheduler::uses_head() const { return std::ranges::any_of(active_, &Active::uses_head); }

bool Scheduler::has_constraint() const {
  return std::ranges::any_of(active_,
                             [](const Active& active) { return active.task->masks() != nullptr; });
}

// Whether the next submission may be sent before the host has seen what this one chose. A row whose
// text ends in between switches itself off. The device's page tables must cover both submissions.
bool Scheduler::can_go_ahead(const Submitted& submitted) const {
  const ChipConfig& chip = model_.context.device->chip();
  if (chip.submissions_ahead == 0 || !submitted.is_chain || !queue_.empty() || recompose_ ||
      model_.context.device->is_wanted() || may_draft())
    return false;
  bool someone_goes_on = false;
  for (const Active& active : active_) {
    const Sequence& sequence = model_.context.sequences[active.sequence];
    const uint32_t most = most_positions(*active.task);
    someone_goes_on |= sequence.n_done + submitted.steps < most;
    const uint32_t n_positions = std::min(sequence.n_done + submitted.steps + chain_steps_, most);
    if (cache_.sequences.has_unsent(active.sequence) ||
        cache_.sequences.covered(active.sequence) < n_positions)
      return false;
  }
  return someone_goes_on;
}

void Scheduler::finish(const Submitted& submitted) {
  if (submitted.logits) {
    const Outcome logits = await(model_.context, *submitted.logits);
    statuses_.assign(logits.statuses.begin(), logits.statuses.end());
  }
  Outcome outcome = await(model_.context, submitted.ticket);
  ended_ = std::chrono::steady_clock::now();
  if (submitted.logits && !statuses_.empty()) outcome.statuses = join(statuses_, outcome.statuses);
  room_changed_ |= !submitted.is_chain;  // a prompt went on: a task may wait for this prefix
  for (Active& active : active_) {
    const Results::State state = results_.take(active, step_, submitted.steps, outcome.statuses);
    active.is_over = state == Results::State::is_over;
    active.is_bad = state == Results::State::is_bad;
  }
  // Before sequences end, whose pages later texts may share.
  // A chain's rows go on as they lie on the device, and none of them wants the head.
  head_seconds_ = head_ != nullptr && !submitted.is_chain ? head_->run(active_, step_) : 0;
  std::erase_if(active_, [&](const Active& active) {
    if (active.is_over)
      cache_.sequences.end(active.sequence, kNone);
    else if (active.is_bad)  // its pages may hold anything, from an unknown position on
      cache_.sequences.discard(active.sequence);
    else
      return false;
    recompose_ = room_changed_ = true;
    return true;
  });
}

}  // namespace akunu
