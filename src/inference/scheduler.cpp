#include "inference/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

constexpr auto kForever = std::chrono::hours(24);

std::string describe(const Outcome& outcome) {
  std::string what;
  switch (outcome.status.code) {
    case kStatusNotANumber:
      what = "the logits are not numbers (NaN): the weights are damaged";
      break;
    case kStatusBadToken:
      what = "token " + std::to_string(outcome.status.detail) + " is outside the vocabulary";
      break;
    case kStatusNoCandidate:
      what = "every logit is -inf: there is no token to choose";
      break;
    default:
      what = "status " + std::to_string(outcome.status.code);
  }
  return std::string(outcome.label) + ", row " + std::to_string(outcome.status.row) + ": " + what;
}

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

Scheduler::Scheduler(Model& model)
    : model_(model), process_(getpid()), step_(model), logits_step_(model) {
  active_.reserve(kMaxSequences);
  thread_ = std::thread([this] { run(); });
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

std::shared_ptr<LogitsTask> Scheduler::logits(std::vector<uint32_t> tokens,
                                              std::vector<uint32_t> chunks, bool generated) {
  check(tokens);
  const uint32_t most =
      generated ? kMaxFewRows
                : std::min(model_.max_head_rows(), model_.device().chip().max_prompt_rows);
  if (chunks.empty())
    for (size_t done = 0; done < tokens.size(); done += chunks.back())
      chunks.push_back(static_cast<uint32_t>(std::min<size_t>(most, tokens.size() - done)));
  size_t sum = 0;
  for (const uint32_t chunk : chunks) {
    if (chunk == 0 || chunk > most)
      throw ArgumentError("a chunk of " + std::to_string(chunk) + " rows; possible are 1 to " +
                          std::to_string(most));
    sum += chunk;
  }
  if (sum != tokens.size())
    throw ArgumentError("the chunks sum to " + std::to_string(sum) + ", there are " +
                        std::to_string(tokens.size()) + " tokens");
  auto task = std::make_shared<LogitsTask>(std::move(tokens), std::move(chunks), generated,
                                           model_.arch().vocab_size);
  enqueue(logits_queue_, task);
  return task;
}

void Scheduler::run() {
  while (wait_for_work()) {
    try {
      drop_cancelled();
      admit();
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
    return stopping_ || !queue_.empty() || !logits_queue_.empty() || !active_.empty() ||
           active_logits_;
  });
  return !stopping_;
}

void Scheduler::fail_everything(std::exception_ptr error) {
  for (Active& active : active_) {
    active.generation->fail(error);
    release(active.sequence);
  }
  active_.clear();
  if (active_logits_) {
    active_logits_->task->fail(error);
    release(active_logits_->sequence);
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

void Scheduler::release(uint32_t sequence) {
  model_.sequences().release(model_.cache().groups(), sequence);
}

void Scheduler::drop_cancelled() {
  const auto gone = std::remove_if(active_.begin(), active_.end(), [&](Active& active) {
    if (!active.generation->is_cancelled()) return false;
    active.generation->finish(FinishReason::cancelled);
    release(active.sequence);
    return true;
  });
  if (gone != active_.end()) {
    active_.erase(gone, active_.end());
    recompose_ = true;
  }
  if (active_logits_ && active_logits_->task->is_cancelled()) {
    active_logits_->task->finish(FinishReason::cancelled);
    release(active_logits_->sequence);
    active_logits_.reset();
  }
}

// Takes from the queues, in order, what there are sequences and pages for.
void Scheduler::admit() {
  const std::lock_guard lock(mutex_);
  const auto drop_if_cancelled = [](const auto& task) {
    if (!task->is_cancelled()) return false;
    task->finish(FinishReason::cancelled);
    return true;
  };
  std::erase_if(queue_, drop_if_cancelled);
  std::erase_if(logits_queue_, drop_if_cancelled);
  while (!queue_.empty() && admit(queue_.front())) queue_.pop_front();
  if (!active_logits_ && !logits_queue_.empty() && admit(logits_queue_.front()))
    logits_queue_.pop_front();
  someone_waits_ = active_logits_ || !queue_.empty() || !logits_queue_.empty();
}

bool Scheduler::admit(const std::shared_ptr<Generation>& generation) {
  const GenerateRequest& request = generation->request();
  const auto positions = static_cast<uint32_t>(request.prompt.size()) + request.max_tokens - 1;
  const std::optional<uint32_t> sequence =
      model_.sequences().take(model_.cache().groups(), positions);
  if (!sequence) return false;
  active_.push_back(
      {.generation = generation, .sequence = *sequence, .record = make_record(request)});
  recompose_ = true;
  return true;
}

bool Scheduler::admit(const std::shared_ptr<LogitsTask>& task) {
  const std::optional<uint32_t> sequence = model_.sequences().take(
      model_.cache().groups(), static_cast<uint32_t>(task->tokens().size()));
  if (!sequence) return false;
  active_logits_ = std::make_unique<ActiveLogits>(
      ActiveLogits{.task = task, .sequence = *sequence, .record = make_record({})});
  return true;
}

// What the device must know of a sequence before its first row.
void Scheduler::send_sequence(Step& step, uint32_t sequence, const SequenceRecord& record,
                              std::span<const uint32_t> tokens) {
  const SequenceStore& store = model_.sequences();
  step.update(store.record(sequence), std::as_bytes(std::span(&record, 1)));
  step.update(store.log(sequence, 0), std::as_bytes(tokens));
  for (uint32_t group = 0; group < model_.cache().groups().size(); ++group)
    step.update(store.page_table(group, sequence),
                std::as_bytes(store.page_numbers(group, sequence)));
}

Row Scheduler::row_of(const Active& active, uint32_t position) {
  const Generation& generation = *active.generation;
  Row row{};
  row.sequence = active.sequence;
  row.position = position;
  row.kv_length = position + 1;
  row.draw = active.n_generated;
  row.adapter = kNone;
  row.last_position = generation.prompt_tokens() + generation.request().max_tokens - 2;
  return row;
}

void Scheduler::compose() {
  step_.clear();
  for (Active& active : active_) {
    if (!is_generating(active)) continue;
    Row row = row_of(active, active.generation->prompt_tokens() + active.n_generated - 1);
    row.flags = kRowActive | kRowChained;
    active.row = step_.add_generated(row);
  }
  uint32_t budget = step_.empty() ? model_.device().chip().max_prompt_rows
                                  : model_.device().chip().max_mixed_rows;
  for (Active& active : active_) {
    if (is_generating(active) || budget == 0) continue;
    const Generation& generation = *active.generation;
    if (active.n_prompt_done == 0)
      send_sequence(step_, active.sequence, active.record, generation.request().prompt);
    const uint32_t n_rows = std::min(budget, generation.prompt_tokens() - active.n_prompt_done);
    const bool last = active.n_prompt_done + n_rows == generation.prompt_tokens();
    const uint32_t first = step_.add_prompt(row_of(active, active.n_prompt_done), n_rows,
                                            last ? Step::Logits::last : Step::Logits::none, last);
    active.row = last ? first + n_rows - 1 : kNone;
    active.n_prompt_done += n_rows;
    budget -= n_rows;
    if (active.n_prompt_done == n_rows) break;  // one new sequence per step: the updates' size
  }
}

void Scheduler::await(Ticket ticket) {
  const Outcome outcome = model_.device().wait(ticket, kForever);
  if (!outcome.finished) throw DeviceError("the device did not finish a step within a day");
  if (outcome.status.code != kStatusOk) throw DeviceError(describe(outcome));
}

void Scheduler::generate_step() {
  if (recompose_) compose();
  // Prompt rows move on by more than one position, and whoever waits to come in waits for this.
  const bool pure = step_.n_generated() > 0 && step_.n_generated() == step_.n_head_rows();
  const uint32_t steps = pure && !someone_waits_ ? model_.device().chip().chain_steps : 1;
  await(step_.submit(model_.device(), steps, true, !recompose_));
  for (Active& active : active_) active.generation->set_prompt_tokens_done(active.n_prompt_done);
  // The same rows go on unless a prompt was among them or somebody came or left.
  recompose_ = !pure;
  std::erase_if(active_, [&](Active& active) {
    if (active.row == kNone) return false;
    for (uint32_t step = 0; step < steps; ++step) {
      if (take_token(active)) continue;
      release(active.sequence);
      recompose_ = true;
      return true;
    }
    return false;
  });
}

bool Scheduler::take_token(Active& active) {
  Generation& generation = *active.generation;
  uint32_t token = kNone;
  const uint32_t position = generation.prompt_tokens() + active.n_generated;
  model_.device().read(model_.sequences().log(active.sequence, position),
                       std::as_writable_bytes(std::span(&token, 1)));
  if (is_stop(generation.request(), token)) {
    generation.finish(FinishReason::stop);
    return false;
  }
  generation.publish(token);
  if (++active.n_generated < generation.request().max_tokens) return true;
  generation.finish(FinishReason::length);
  return false;
}

void Scheduler::logits_step() {
  ActiveLogits& active = *active_logits_;
  LogitsTask& task = *active.task;
  const uint32_t n_rows = task.chunks()[active.chunk];
  logits_step_.clear();
  if (active.n_done == 0)
    send_sequence(logits_step_, active.sequence, active.record, task.tokens());
  Row row{};
  row.sequence = active.sequence;
  row.position = active.n_done;
  row.adapter = kNone;
  row.last_position = kNone;
  if (task.generated()) {
    for (uint32_t i = 0; i < n_rows; ++i, ++row.position) {
      row.kv_length = row.position + 1;
      row.flags = kRowActive;
      logits_step_.add_generated(row);
    }
  } else {
    logits_step_.add_prompt(row, n_rows, Step::Logits::all, false);
  }
  await(logits_step_.submit(model_.device(), 1, false, false));
  recompose_ = true;  // the device's rows are this step's now
  model_.device().read(model_.logits(), std::as_writable_bytes(task.logits(active.n_done, n_rows)));
  active.n_done += n_rows;
  if (++active.chunk < task.chunks().size()) return;
  task.finish(FinishReason::length);
  release(active.sequence);
  active_logits_.reset();
}

}  // namespace akunu
