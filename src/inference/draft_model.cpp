// What the draft model runs. draft_model.h says why.
//
// 1. What it does. `follow` brings a text up to what the target has chosen; `propose` runs the rows
//    that it has not read yet, of which the last one chooses, and then one row of each text for each
//    further token, as a chain (`advance` moves them on). `read` is for long stretches, as prompts are.
// 2. What bounds it. Reading its weights once for each token proposed.
// 3. What is done about it. Texts that draft at the same time share the steps.
#include "inference/draft_model.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/error.h"
#include "files/model_source.h"

namespace akunu {
namespace {

constexpr double kNewRead = 0.25;  // weight of a new measurement of reading
constexpr double kNewHeld = 0.02;  // weight of one more token that held, or did not
// Rows of a prompt share what it costs to read the weights; until it is measured, so many.
constexpr double kRowsAtOnce = 4;
// Of a text with so few unread tokens they run the kernels of rows that generate.
constexpr uint32_t kFewUnread = 2;

void refuse(const Model& model) {
  const std::string what =
      "the draft model is " + model.context.weights->config.architecture + ", ";
  if (model.context.arch().embeds)
    throw UnsupportedModelError(what + "an encoder, which chooses no tokens");
  if (model.context.arch().audio) throw UnsupportedModelError(what + "a model of speech");
  for (const CacheGroup& group : model.context.cache.groups())
    if (group.shape.has_states())
      throw UnsupportedModelError(what +
                                  "which keeps states: it cannot go back to where a draft failed");
}

}  // namespace

LoadOptions draft_options(const ModelConfig& config, const LoadOptions& of_target) {
  LoadOptions options;
  options.kv_format = of_target.kv_format;
  if (of_target.context) options.context = std::min(*of_target.context, config.context_length);
  return options;
}

std::unique_ptr<Model> load_draft_model(const std::string& path, std::shared_ptr<Device> device,
                                        const LoadOptions& of_target) {
  const ModelSource source = open_model(path);
  return Model::load(source, std::move(device), draft_options(source.config, of_target));
}

DraftText::~DraftText() { of_.end(*this); }

void DraftText::checked(uint32_t n_drafted, uint32_t n_held) const {
  of_.checked(n_drafted, n_held);
}

DraftModel::DraftModel(Model& model, const Weights& target, bool prefix_cache)
    : context_(model.context),
      target_vocab_size_(target.arch.vocab_size),
      size_ratio_(static_cast<double>(model.context.weights->tensors->bytes()) /
                  static_cast<double>(target.tensors->bytes())),
      cache_(model.context.cache, model.context.sequences, model.context.sizes.max_rows_in_flight,
             prefix_cache),
      step_(model.context, model.programs),
      held_(kHeldByModel) {
  refuse(model);
  planned_.reserve(model.context.sizes.max_texts);
}

std::unique_ptr<DraftText> DraftModel::begin(const Task& task, std::span<const uint32_t> tokens) {
  const auto n_tokens = static_cast<uint32_t>(tokens.size());
  const uint32_t vocab_size = context_.arch().vocab_size;
  if (n_tokens >= context_.n_positions() ||
      std::ranges::any_of(tokens, [&](uint32_t token) { return token >= vocab_size; }))
    return nullptr;
  const std::optional<uint32_t> slot =
      cache_.sequences.begin({.id = task.arrival,
                              .key = {.format = context_.cache.format(), .adapters = {}},
                              .tokens = tokens,
                              .n_prompt = n_tokens,
                              .n_positions = n_tokens + 1});
  if (!slot) return nullptr;
  Choosing choosing = task.choosing();
  if (vocab_size < target_vocab_size_)
    choosing.record.biases = {};  // some may be beyond its logits
  return std::make_unique<DraftText>(*this, *slot, std::move(choosing));
}

// What was read is read alike by all texts that begin so.
void DraftModel::end(const DraftText& text) {
  Sequence& sequence = sequence_of(text);
  sequence.tokens.resize(sequence.n_done);
  sequence.n_prompt = sequence.n_done;
  cache_.sequences.end(text.slot_, kNone);
}

void DraftModel::lose(DraftText& text) {
  text.is_lost_ = true;
  text.ran_.clear();
}

uint32_t DraftModel::n_unread(const DraftText& text, std::span<const uint32_t> tokens) const {
  if (text.is_lost_ || tokens.size() >= context_.n_positions()) return kNone;
  const Sequence& sequence = context_.sequences[text.slot_];
  uint32_t n_done = sequence.n_done;
  for (const uint32_t token : text.ran_) {
    if (n_done + 1 >= tokens.size() || tokens[n_done] != token) break;
    ++n_done;
  }
  return static_cast<uint32_t>(tokens.size()) - n_done;
}

// The text goes on as the target's did. False where the draft model cannot read it.
bool DraftModel::follow(DraftText& text, std::span<const uint32_t> tokens) {
  const uint32_t n = n_unread(text, tokens);
  if (n == kNone) return false;
  Sequence& sequence = sequence_of(text);
  for (size_t i = sequence.tokens.size(); i < tokens.size(); ++i) {
    if (tokens[i] >= context_.arch().vocab_size) {
      lose(text);
      return false;
    }
    sequence.tokens.push_back(tokens[i]);
  }
  cache_.sequences.done(text.slot_, static_cast<uint32_t>(tokens.size()) - n);
  text.ran_.clear();
  return true;
}

// Whether so many unread tokens can run in the next step, and more rows behind them later.
bool DraftModel::prepare(DraftText& text, uint32_t n_unread, uint32_t n_more) {
  const Sequence& sequence = sequence_of(text);
  const uint32_t n_positions = sequence.n_done + n_unread + n_more;
  if (n_positions > context_.n_positions() || !cache_.sequences.extend(text.slot_, n_positions))
    return false;
  if (text.is_known_) {
    step_.update(context_.sequences.log(text.slot_, sequence.n_done),
                 std::as_bytes(std::span(sequence.tokens).subspan(sequence.n_done, n_unread)));
  } else {
    if (!step_.update_sequence(text.slot_, text.choosing_)) return false;  // in the next step
    text.is_known_ = true;
  }
  step_.update(cache_.sequences.take_unsent(text.slot_));
  return true;
}

double DraftModel::run(uint32_t n_steps, int32_t priority) {
  const auto began = std::chrono::steady_clock::now();
  const Ticket ticket = step_.submit(*context_.device, n_steps, false, priority);
  const Outcome outcome = await(context_, ticket);
  statuses_.assign(outcome.statuses.begin(), outcome.statuses.end());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

bool DraftModel::is_bad(uint32_t first_row, uint32_t n_rows) const {
  if (statuses_.empty()) return false;
  return std::ranges::any_of(std::span(statuses_).subspan(first_row, n_rows),
                             [](const Status& status) { return status.code != kStatusOk; });
}

void DraftModel::read(std::span<const Wish> wishes, uint32_t most_rows, int32_t priority) {
  step_.clear();
  planned_.clear();
  uint32_t room = std::min(most_rows, context_.sizes.max_prompt_rows);
  const uint32_t n_all = room;
  for (const Wish& wish : wishes) {
    DraftText& text = *wish.text;
    if (room == 0 || !follow(text, wish.tokens)) continue;
    const uint32_t n_done = sequence_of(text).n_done;
    const uint32_t n = std::min(room, static_cast<uint32_t>(wish.tokens.size()) - 1 - n_done);
    if (n == 0 || !prepare(text, n, 0)) continue;
    Row row{};
    row.sequence = text.slot_;
    row.position = n_done;
    row.adapter = row.second_segment = row.last_position = kNone;
    planned_.push_back({&wish, n, step_.add_prompt(row, n, Step::Logits::none, false)});
    room -= n;
  }
  if (planned_.empty()) return;
  const double each = run(1, priority) / (n_all - room);
  seconds_per_token_read_ =
      seconds_per_token_read_ == 0
          ? each
          : seconds_per_token_read_ + kNewRead * (each - seconds_per_token_read_);
  for (const Planned& planned : planned_) {
    DraftText& text = *planned.wish->text;
    if (is_bad(planned.first_row, planned.n_unread))
      lose(text);
    else
      cache_.sequences.done(text.slot_, sequence_of(text).n_done + planned.n_unread);
  }
}

void DraftModel::propose(std::span<const Wish> wishes, int32_t priority) {
  step_.clear();
  planned_.clear();
  uint32_t room = context_.sizes.max_prompt_rows;
  for (const Wish& wish : wishes) {
    const auto n_tokens = static_cast<uint32_t>(wish.tokens.size());
    DraftText& text = *wish.text;
    const bool can_read = follow(text, wish.tokens);
    const uint32_t n_unread = can_read ? n_tokens - sequence_of(text).n_done : 0;
    if (!can_read || n_unread > room ||
        !prepare(text, n_unread, static_cast<uint32_t>(wish.into->size()) - 1)) {
      wish.into->clear();
      continue;
    }
    room -= n_unread;
    planned_.push_back({&wish, n_unread, 0});
  }
  if (planned_.empty()) return;

  const auto first_row_of = [&](const Planned& planned) {
    Row row{};
    row.sequence = planned.wish->text->slot_;
    row.draw = planned.wish->draw;
    row.adapter = row.second_segment = kNone;
    row.last_position =
        static_cast<uint32_t>(planned.wish->tokens.size() + planned.wish->into->size()) - 2;
    return row;
  };
  for (const bool few : {true, false})  // rows that generate come first
    for (Planned& planned : planned_) {
      if ((planned.n_unread <= kFewUnread) != few) continue;
      Row row = first_row_of(planned);
      row.position = sequence_of(*planned.wish->text).n_done;
      planned.first_row = few ? step_.add_generated(row, planned.n_unread, Step::Logits::last, true)
                              : step_.add_prompt(row, planned.n_unread, Step::Logits::last, true);
    }
  const uint32_t n_first = step_.n_generated() == step_.n_rows() ? step_.n_rows() : 0;
  costs_.took(n_first, run(1, priority));
  std::erase_if(planned_, [&](const Planned& planned) {
    DraftText& text = *planned.wish->text;
    if (is_bad(planned.first_row, planned.n_unread)) {
      lose(text);
      planned.wish->into->clear();
      return true;
    }
    cache_.sequences.done(text.slot_, static_cast<uint32_t>(planned.wish->tokens.size()));
    return false;
  });

  step_.clear();
  uint32_t n_steps = 0;
  for (Planned& planned : planned_) {
    const auto n_more = static_cast<uint32_t>(planned.wish->into->size()) - 1;
    if (n_more == 0) continue;
    Row row = first_row_of(planned);
    row.position = static_cast<uint32_t>(planned.wish->tokens.size());
    ++row.draw;
    planned.first_row = step_.add_generated(row, 1, Step::Logits::last, true);
    n_steps = std::max(n_steps, n_more);
  }
  statuses_.clear();
  if (n_steps > 0) costs_.took(step_.n_rows(), run(n_steps, priority) / n_steps);

  for (const Planned& planned : planned_) {
    DraftText& text = *planned.wish->text;
    std::vector<uint32_t>& into = *planned.wish->into;
    if (into.size() > 1 && is_bad(planned.first_row, 1)) {
      lose(text);
      into.clear();
      continue;
    }
    context_.device->read(
        context_.sequences.log(text.slot_, static_cast<uint32_t>(planned.wish->tokens.size())),
        std::as_writable_bytes(std::span(into)));
    // Behind a stop token its row was off; and the target may have fewer tokens.
    const SequenceRecord& record = text.choosing_.record;
    const std::span stops(record.stop_ids, record.n_stop_ids);
    if (const auto stop = std::ranges::find_first_of(into, stops); stop != into.end())
      into.erase(stop + 1, into.end());
    into.erase(std::ranges::find_if(into, [&](uint32_t t) { return t >= target_vocab_size_; }),
               into.end());
    if (!into.empty()) text.ran_.assign(into.begin(), into.end() - 1);
  }
}

double DraftModel::seconds(uint32_t n_rows, double of_target) const {
  const double known = costs_.of(n_rows);
  return known > 0 ? known : size_ratio_ * of_target;
}

double DraftModel::seconds_to_read(uint32_t n_tokens, double of_target) const {
  return n_tokens * (seconds_per_token_read_ > 0 ? seconds_per_token_read_
                                                 : size_ratio_ * of_target / kRowsAtOnce);
}

void DraftModel::checked(uint32_t n_drafted, uint32_t n_held) {
  for (uint32_t i = 0; i < n_held; ++i) held_ += kNewHeld * (1 - held_);
  if (n_held < n_drafted) held_ -= kNewHeld * held_;
}

}  // namespace akunu
