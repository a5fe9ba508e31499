#include "inference/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace akunu {
namespace {

SequenceRecord make_record(const GenerateRequest& request) {
  const SamplingSettings& sampling = request.sampling;
  SequenceRecord record{};
  record.version = kSequenceRecordVersion;
  record.seed_low = static_cast<uint32_t>(sampling.seed);
  record.seed_high = static_cast<uint32_t>(sampling.seed >> 32);
  record.choice = sampling.choice;
  record.temperature = sampling.temperature;
  record.top_k = sampling.top_k;
  record.top_p = sampling.top_p;
  record.min_p = sampling.min_p;
  record.repetition_penalty = sampling.repetition_penalty;
  record.frequency_penalty = sampling.frequency_penalty;
  record.presence_penalty = sampling.presence_penalty;
  record.penalty_window = sampling.penalty_window;
  record.n_stop_ids = static_cast<uint32_t>(request.stop_ids.size());
  record.mask = kNone;
  std::copy(request.stop_ids.begin(), request.stop_ids.end(), record.stop_ids);
  return record;
}

bool is_stop(const GenerateRequest& request, uint32_t token) {
  return std::find(request.stop_ids.begin(), request.stop_ids.end(), token) !=
         request.stop_ids.end();
}

}  // namespace

Scheduler::Scheduler(Model& model, bool prefix_cache)
    : model_(model),
      process_(getpid()),
      chain_steps_(model.chain_steps()),
      cache_(model.cache(), model.sequences(), prefix_cache),
      step_(model),
      logits_step_(model) {
  active_.reserve(kMaxSequences);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw DeviceError(std::string("the system refused a thread to generate text in: ") +
                      error.what());
  }
}

void Scheduler::stop() {
  std::call_once(stopped_, [&] {
    if (getpid() !=
        process_) {  // after a fork there is no such thread here, and mutex_ may be locked
      thread_.detach();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  });
}

void Scheduler::check_process() const {
  if (getpid() != process_)
    throw DeviceError(
        "the process was forked after the model was loaded; load the model in the child");
}

void Scheduler::check(const std::vector<uint32_t>& tokens) const {
  check_process();
  model_.check_files();
  if (tokens.empty()) throw ArgumentError("the prompt has no tokens");
  const uint32_t vocab_size = model_.arch().vocab_size;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] >= vocab_size)
      throw ArgumentError("token " + std::to_string(tokens[i]) + " at index " + std::to_string(i) +
                          " is outside the vocabulary of " + std::to_string(vocab_size));
  if (tokens.size() > model_.context())
    throw ContextOverflowError("the prompt has " + std::to_string(tokens.size()) +
                               " tokens, the context holds " + std::to_string(model_.context()));
}

uint32_t Scheduler::most_tokens(size_t prompt_tokens) const {
  return static_cast<uint32_t>(model_.context() + 1 - prompt_tokens);
}

template <class Kind>
void Scheduler::enqueue(std::deque<std::shared_ptr<Kind>>& queue,
                        const std::shared_ptr<Kind>& task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Error("the model is closed");
    task->id = ++n_tasks_;
    queue.push_back(task);
  }
  wake_.notify_one();
}

std::shared_ptr<Generation> Scheduler::generate(GenerateRequest request) {
  check(request.prompt);
  if (request.stop_ids.size() > kMaxStopIds)
    throw ArgumentError(std::to_string(request.stop_ids.size()) + " stop ids; at most " +
                        std::to_string(kMaxStopIds) + " are possible");
  request.max_tokens = std::min(request.max_tokens, most_tokens(request.prompt.size()));
  auto generation = std::make_shared<Generation>(std::move(request));
  if (generation->request().max_tokens == 0)
    generation->finish(FinishReason::length);
  else
    enqueue(queue_, generation);
  return generation;
}

std::shared_ptr<LogitsTask> Scheduler::logits(LogitsRequest request) {
  check(request.tokens);
  if (request.first >= request.tokens.size())
    throw ArgumentError("logits from token " + std::to_string(request.first) + " on of " +
                        std::to_string(request.tokens.size()));
  const uint32_t most =
      request.generated ? kMaxFewRows
                        : std::min(model_.max_head_rows(), model_.device().chip().max_prompt_rows);
  size_t sum = 0;
  bool begins_chunk = request.chunks.empty();
  for (const uint32_t chunk : request.chunks) {
    begins_chunk |= sum == request.first;
    if (chunk == 0 || chunk > most)
      throw ArgumentError("a chunk of " + std::to_string(chunk) + " rows; possible are 1 to " +
                          std::to_string(most));
    sum += chunk;
  }
  if (!request.chunks.empty() && sum != request.tokens.size())
    throw ArgumentError("the chunks sum to " + std::to_string(sum) + ", there are " +
                        std::to_string(request.tokens.size()) + " tokens");
  if (!begins_chunk)
    throw ArgumentError("logits from token " + std::to_string(request.first) +
                        " on, with which no chunk begins");
  refuse_unless_fits(request.tokens.size() - request.first);
  auto task = std::make_shared<LogitsTask>(std::move(request), model_.arch().vocab_size);
  enqueue(logits_queue_, task);
  return task;
}

void Scheduler::refuse_unless_fits(size_t n_rows) const {
  const uint64_t bytes = n_rows * sizeof(float) * uint64_t{model_.arch().vocab_size};
  if (bytes < kAskSystemFrom) return;
  if (const MemoryLeft left = model_.device().memory_left(); !left.fits(bytes))
    throw OutOfMemoryError("the logits of " + std::to_string(n_rows) + " tokens need " +
                           mebibytes(bytes) + "; " + describe_refusal(bytes, left) +
                           "; ask for those of fewer tokens");
}

void Scheduler::cut(const std::shared_ptr<Generation>& generation, uint32_t n_tokens) {
  if (getpid() != process_) return;  // mutex_ may be locked for ever
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    cuts_.push_back({generation, n_tokens});
  }
  wake_.notify_one();
}

void Scheduler::run() {
  while (wait_for_work()) {
    try {
      if (!ahead_ || is_disturbed()) {
        // Who comes, leaves or is cut changes what a submission in flight still works on.
        if (ahead_) finish(*std::exchange(ahead_, std::nullopt));
        apply_cuts();
        drop_cancelled();
        admit();
      }
      if (!active_.empty()) generate_step();
      if (active_logits_) logits_step();
    } catch (...) {
      fail_everything(std::current_exception());
    }
  }
  fail_everything(std::make_exception_ptr(Error("the model was closed")));
}

bool Scheduler::wait_for_work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] {
    return stopping_ || !queue_.empty() || !logits_queue_.empty() || !cuts_.empty() ||
           !active_.empty() || active_logits_;
  });
  return !stopping_;
}

bool Scheduler::is_disturbed() {
  const std::lock_guard lock(mutex_);
  return !queue_.empty() || !logits_queue_.empty() || !cuts_.empty() || active_logits_ ||
         std::ranges::any_of(
             active_, [](const Active& active) { return active.generation->is_cancelled(); });
}

void Scheduler::fail_everything(std::exception_ptr error) {
  if (ahead_) {
    try {
      await(model_, std::exchange(ahead_, std::nullopt)->ticket);
    } catch (...) {  // of what is lost anyway
    }
  }
  for (Active& active : active_) {
    active.generation->fail(error);
    cache_.discard(active.sequence);  // what a failed step left in it, nobody knows
  }
  active_.clear();
  if (active_logits_) {
    active_logits_->task->fail(error);
    cache_.discard(active_logits_->sequence);
    active_logits_.reset();
  }
  recompose_ = true;
  const std::lock_guard lock(mutex_);
  if (!stopping_) return;  // those that wait have done nothing wrong
  for (const auto& generation : queue_) generation->fail(error);
  for (const auto& task : logits_queue_) task->fail(error);
  queue_.clear();
  logits_queue_.clear();
}

void Scheduler::apply_cuts() {
  std::vector<Cut> cuts;
  {
    const std::lock_guard lock(mutex_);
    cuts.swap(cuts_);
    for (const Cut& cut : cuts)  // of those that stepped back
      std::erase(queue_, cut.generation);
  }
  for (const Cut& cut : cuts) {
    const uint32_t n_kept = cut.generation->prompt_tokens() + cut.n_tokens;
    const auto active = std::ranges::find(active_, cut.generation, &Active::generation);
    if (active != active_.end()) {
      cache_.end(active->sequence, n_kept);
      active_.erase(active);
      recompose_ = true;
    } else {
      cache_.shorten(cut.generation->id, n_kept);
    }
    cut.generation->finish(FinishReason::stop);
  }
}

void Scheduler::drop_cancelled() {
  const size_t gone = std::erase_if(active_, [&](Active& active) {
    if (!active.generation->is_cancelled()) return false;
    active.generation->finish(FinishReason::cancelled);
    cache_.end(active.sequence, kNone);
    return true;
  });
  if (gone > 0) recompose_ = true;
  if (active_logits_ && active_logits_->task->is_cancelled()) {
    active_logits_->task->finish(FinishReason::cancelled);
    cache_.end(active_logits_->sequence, kNone);
    active_logits_.reset();
  }
}

// Takes from the queues, in the order of arrival, what there are sequences and pages for. Prompts
// run one after the other: the second may begin like the first, which is in the cache then.
void Scheduler::admit() {
  const std::lock_guard lock(mutex_);
  const auto drop_if_cancelled = [](const auto& task) {
    if (!task->is_cancelled()) return false;
    task->finish(FinishReason::cancelled);
    return true;
  };
  std::erase_if(queue_, drop_if_cancelled);
  std::erase_if(logits_queue_, drop_if_cancelled);
  bool room = true;
  const auto admit_from = [&](auto& queue, bool possible) {
    if (!room || queue.empty() || !possible) return;
    room = admit(queue.front());
    if (room) queue.pop_front();
  };
  const bool logits_first =
      !queue_.empty() && !logits_queue_.empty() && logits_queue_.front()->id < queue_.front()->id;
  if (logits_first) admit_from(logits_queue_, !active_logits_);
  admit_from(queue_, std::ranges::none_of(
                         active_, [&](const Active& active) { return has_prompt_left(active); }));
  admit_from(logits_queue_, !active_logits_);
  someone_waits_ = active_logits_ || !queue_.empty() || !logits_queue_.empty();
}

bool Scheduler::admit(const std::shared_ptr<Generation>& generation) {
  std::vector<uint32_t> tokens =
      generation->request().prompt;  // and what it had before it stepped back
  tokens.insert(tokens.end(), generation->tokens().begin(), generation->tokens().end());
  const auto n_tokens = static_cast<uint32_t>(tokens.size());
  // With the page that the next token may need, or it would step back at once.
  const uint32_t n_positions = std::min(n_tokens + 1, most_positions(*generation));
  const std::optional<uint32_t> sequence =
      cache_.begin(generation->id, tokens, n_positions, n_tokens);
  if (!sequence) return false;
  const uint32_t n_cached = model_.sequences()[*sequence].n_done;
  if (generation->tokens().empty()) generation->set_cached_tokens(n_cached);
  generation->set_prompt_tokens_done(n_cached);
  const auto older = [&](const Active& other) { return other.generation->id < generation->id; };
  active_.insert(std::ranges::find_if_not(active_, older),
                 {.generation = generation,
                  .sequence = *sequence,
                  .record = make_record(generation->request())});
  recompose_ = true;
  return true;
}

bool Scheduler::admit(const std::shared_ptr<LogitsTask>& task) {
  const LogitsRequest& request = task->request();
  const uint32_t most_cached = request.chunks.empty() ? request.first : 0;
  const std::optional<uint32_t> sequence = cache_.begin(
      task->id, request.tokens, static_cast<uint32_t>(request.tokens.size()), most_cached);
  if (!sequence) return false;
  active_logits_ = std::make_unique<ActiveLogits>(
      ActiveLogits{.task = task, .sequence = *sequence, .record = make_record({})});
  return true;
}

bool Scheduler::has_prompt_left(const Active& active) const {
  const Sequence& sequence = model_.sequences()[active.sequence];
  return !active.is_known || sequence.n_done < active.generation->prompt_tokens() ||
         sequence.n_done + 1 < sequence.tokens.size();
}

// Takes the pages that the next submission needs. Older generations come first: for them, younger
// ones step back. The oldest never does, unless it is for logits, which end by themselves.
void Scheduler::grow() {
  const ChipConfig& chip = model_.device().chip();
  const uint32_t most_steps = chain_steps_ * (1 + chip.submissions_ahead);
  for (size_t i = 0; i < active_.size(); ++i) {
    const Sequence& sequence = model_.sequences()[active_[i].sequence];
    const uint32_t n_positions =
        has_prompt_left(active_[i])
            ? std::min(sequence.n_done + chip.max_prompt_rows,
                       static_cast<uint32_t>(sequence.tokens.size()))
            : std::min(sequence.n_done + most_steps, most_positions(*active_[i].generation));
    if (make_room(active_[i].sequence, n_positions) && cache_.has_unsent(active_[i].sequence))
      recompose_ = true;
  }
}

// Gives a sequence pages, for which generations step back, the youngest first. False where the last
// of them was the sequence's own.
bool Scheduler::make_room(uint32_t sequence, uint32_t n_positions) {
  while (!cache_.extend(sequence, n_positions)) {
    if (active_.empty()) throw Error("the cache has no room for one text alone");
    const bool is_own = active_.back().sequence == sequence;
    step_back(active_.end() - 1);
    if (is_own) return false;
  }
  return true;
}

void Scheduler::step_back(std::vector<Active>::iterator active) {
  cache_.end(active->sequence, kNone);
  const std::shared_ptr<Generation> generation = std::move(active->generation);
  active_.erase(active);
  recompose_ = true;
  const std::lock_guard lock(mutex_);
  const auto older = [&](const auto& other) { return other->id < generation->id; };
  queue_.insert(std::ranges::find_if_not(queue_, older), generation);
}

Row Scheduler::row_of(const Active& active, uint32_t position) const {
  const Generation& generation = *active.generation;
  Row row{};
  row.sequence = active.sequence;
  row.position = position;
  row.kv_length = position + 1;
  row.draw = static_cast<uint32_t>(generation.tokens().size());
  row.adapter = kNone;
  row.last_position = most_positions(generation) - 1;
  return row;
}

void Scheduler::compose() {
  step_.clear();
  for (Active& active : active_) {
    active.is_generating = !has_prompt_left(active);
    active.row = kNone;
    if (!active.is_generating) continue;
    Row row = row_of(active, model_.sequences()[active.sequence].n_done);
    row.flags = kRowActive | kRowChained;
    active.row = step_.add_generated(row);
    step_.update(cache_.take_unsent(active.sequence));
  }
  const uint32_t budget = step_.empty() ? model_.device().chip().max_prompt_rows
                                        : model_.device().chip().max_mixed_rows;
  for (Active& active : active_) {
    if (active.is_generating) continue;
    const Sequence& sequence = model_.sequences()[active.sequence];
    if (!std::exchange(active.is_known, true))
      step_.update_sequence(active.sequence, active.record);
    step_.update(cache_.take_unsent(active.sequence));
    const auto n_left = static_cast<uint32_t>(sequence.tokens.size()) - sequence.n_done;
    const uint32_t n_prompt = active.generation->prompt_tokens();
    if (sequence.n_done < n_prompt) {
      const uint32_t n_rows = std::min(budget, n_prompt - sequence.n_done);
      const bool last = n_rows == n_left;
      const uint32_t first = step_.add_prompt(row_of(active, sequence.n_done), n_rows,
                                              last ? Step::Logits::last : Step::Logits::none, last);
      if (last) active.row = first + n_rows - 1;
      cache_.done(active.sequence, sequence.n_done + n_rows);
    } else {
      // Generated before it stepped back: a row has the bits that it had only in the same class.
      const uint32_t n_rows = std::min(kMaxFewRows - step_.n_generated(), n_left);
      for (uint32_t i = 0; i < n_rows; ++i) {
        const bool last = i + 1 == n_left;
        Row row = row_of(active, sequence.n_done + i);
        row.flags = kRowActive | (last ? kRowChained : 0);
        const uint32_t index = step_.add_generated(row);
        if (last) active.row = index;
      }
      cache_.done(active.sequence, sequence.n_done + n_rows);
    }
    break;  // there is only one: see admit()
  }
}

void Scheduler::generate_step() {
  if (!ahead_) {
    grow();
    if (active_.empty()) return;
    if (recompose_) compose();
  }
  const Chunk chunk = ahead_ ? *std::exchange(ahead_, std::nullopt) : submit();
  if (can_go_ahead(chunk)) ahead_ = submit();
  finish(chunk);
  if (active_.empty() && ahead_) finish(*std::exchange(ahead_, std::nullopt));
}

Scheduler::Chunk Scheduler::submit() {
  // Rows of a prompt, or of what is computed again, go on elsewhere than they are; and whoever waits to
  // come in waits for this.
  Chunk chunk;
  chunk.is_chain = std::ranges::all_of(active_, &Active::is_generating);
  chunk.steps = chunk.is_chain && !someone_waits_ ? chain_steps_ : 1;
  chunk.ticket = step_.submit(model_.device(), chunk.steps, true, !recompose_);
  // The same rows go on unless a prompt was among them or somebody comes or leaves.
  recompose_ = !chunk.is_chain;
  return chunk;
}

// Whether the rows of a chunk may go on before the host has seen what it chose: a row that ends in
// between switches itself off. The device must know every page that they can come to need.
bool Scheduler::can_go_ahead(const Chunk& chunk) const {
  const ChipConfig& chip = model_.device().chip();
  if (chip.submissions_ahead == 0 || !chunk.is_chain || someone_waits_ || recompose_) return false;
  bool someone_goes_on = false;
  for (const Active& active : active_) {
    const Sequence& sequence = model_.sequences()[active.sequence];
    const uint32_t most = most_positions(*active.generation);
    someone_goes_on |= sequence.n_done + chunk.steps < most;
    const uint32_t n_positions = std::min(sequence.n_done + chunk.steps + chain_steps_, most);
    if (cache_.has_unsent(active.sequence) || cache_.covered(active.sequence) < n_positions)
      return false;
  }
  return someone_goes_on;
}

void Scheduler::finish(const Chunk& chunk) {
  await(model_, chunk.ticket);
  std::erase_if(active_, [&](Active& active) {
    const Sequence& sequence = model_.sequences()[active.sequence];
    active.generation->set_prompt_tokens_done(sequence.n_done);
    if (active.row == kNone) return false;
    for (uint32_t step = 0; step < chunk.steps; ++step) {
      if (active.is_generating) cache_.done(active.sequence, sequence.n_done + 1);
      if (take_token(active)) continue;
      cache_.end(active.sequence, kNone);
      recompose_ = true;
      return true;
    }
    return false;
  });
}

bool Scheduler::take_token(Active& active) {
  Generation& generation = *active.generation;
  std::vector<uint32_t>& tokens = model_.sequences()[active.sequence].tokens;
  uint32_t token = kNone;
  model_.device().read(
      model_.sequences().log(active.sequence, static_cast<uint32_t>(tokens.size())),
      std::as_writable_bytes(std::span(&token, 1)));
  if (is_stop(generation.request(), token)) {
    generation.finish(FinishReason::stop);
    return false;
  }
  tokens.push_back(token);
  generation.publish(token);
  if (generation.tokens().size() < generation.request().max_tokens) return true;
  generation.finish(FinishReason::length);
  return false;
}

void Scheduler::logits_step() {
  ActiveLogits& active = *active_logits_;
  LogitsTask& task = *active.task;
  const LogitsRequest& request = task.request();
  const ChipConfig& chip = model_.device().chip();
  const uint32_t first = model_.sequences()[active.sequence].n_done;
  const auto n_left = static_cast<uint32_t>(request.tokens.size()) - first;
  const bool wanted = first >= request.first;
  uint32_t n_rows = 0;
  if (!request.chunks.empty())
    n_rows = request.chunks[active.chunk++];
  else if (wanted)
    n_rows = std::min({n_left, model_.max_head_rows(), chip.max_prompt_rows});
  else
    n_rows = std::min(request.first - first,
                      active_.empty() ? chip.max_prompt_rows : chip.max_mixed_rows);
  make_room(active.sequence, first + n_rows);
  logits_step_.clear();
  if (!std::exchange(active.is_known, true))
    logits_step_.update_sequence(active.sequence, active.record);
  logits_step_.update(cache_.take_unsent(active.sequence));
  Row row{};
  row.sequence = active.sequence;
  row.position = first;
  row.adapter = kNone;
  row.last_position = kNone;
  if (request.generated) {
    for (uint32_t i = 0; i < n_rows; ++i, ++row.position) {
      row.kv_length = row.position + 1;
      row.flags = kRowActive;
      logits_step_.add_generated(row);
    }
  } else {
    logits_step_.add_prompt(row, n_rows, wanted ? Step::Logits::all : Step::Logits::none, false);
  }
  await(model_, logits_step_.submit(model_.device(), 1, false, false));
  recompose_ = true;  // the device's rows are this step's now
  if (wanted)
    model_.device().read(model_.logits(), std::as_writable_bytes(task.logits(first, n_rows)));
  cache_.done(active.sequence, first + n_rows);
  if (n_rows < n_left) return;
  task.finish(FinishReason::length);
  cache_.end(active.sequence, kNone);
  active_logits_.reset();
}

}  // namespace akunu
