#include "inference/request_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/memory_left.h"
#include "inference/moved_text.h"
#include "inference/speculation.h"
#include "inference/speech_window.h"

namespace akunu {
namespace {

// Logits are the host's memory.
void refuse_unless_fits(const Model& model, size_t n_rows, uint32_t width) {
  const uint64_t bytes = n_rows * sizeof(float) * uint64_t{width};
  if (bytes < kAskSystemFrom) return;
  if (const MemoryLeft left = model.context.device->memory_left(); !left.fits(bytes))
    throw OutOfMemoryError("the logits of " + std::to_string(n_rows) + " tokens need " +
                           mebibytes(bytes) + "; " + describe_refusal(bytes, left) +
                           "; ask for those of fewer tokens");
}

}  // namespace

uint32_t most_tokens(const Model& model, size_t prompt_tokens) {
  return static_cast<uint32_t>(model.context.n_positions() + 1 - prompt_tokens);
}

uint32_t logits_width(const Model& model, const LogitsRequest& request) {
  return request.aligns ? model.context.sizes.alignment_width : model.context.arch().vocab_size;
}

void check_tokens(const Model& model, const std::vector<uint32_t>& tokens, bool encodes) {
  model.context.weights->check_files();
  if (encodes != model.context.arch().embeds)
    throw UnsupportedModelError(encodes ? model.context.weights->config.architecture +
                                              " was not loaded as an encoder: it generates text"
                                        : model.context.weights->config.architecture +
                                              " is an encoder: it embeds text (`akunu embed`, "
                                              "Model.embed), and has neither logits "
                                              "nor tokens to choose");
  if (tokens.empty()) throw ArgumentError("the prompt has no tokens");
  const uint32_t vocab_size = model.context.arch().vocab_size;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] >= vocab_size)
      throw ArgumentError("token " + std::to_string(tokens[i]) + " at index " + std::to_string(i) +
                          " is outside the vocabulary of " + std::to_string(vocab_size));
  if (tokens.size() > model.context.n_positions())
    throw ContextOverflowError("the prompt has " + std::to_string(tokens.size()) +
                               " tokens, the context holds " +
                               std::to_string(model.context.n_positions()) +
                               "; make it shorter, or load the model with a longer context");
}

void check_request(const Model& model, GenerateRequest& request) {
  check_tokens(model, request.prompt);
  check_window(model, request.window.get());
  for (const std::vector<uint32_t>* banned : {&request.banned, &request.banned_first})
    for (const uint32_t token : *banned)
      if (token >= model.context.arch().vocab_size)
        throw ArgumentError("token " + std::to_string(token) +
                            " shall not be chosen, and is outside the vocabulary of " +
                            std::to_string(model.context.arch().vocab_size));
  if (request.rules.n_before > request.prompt.size())
    throw ArgumentError("a text begins behind its prompt's end");
  if (!request.images.empty()) {
    place_images(model.context.arch(), request.images, request.prompt);
    if (request.prompt_logprobs != kNone)
      throw ArgumentError("logprobs of the tokens of a prompt with images are not possible");
    if (request.keeps_positions || request.goes_on_from)
      throw ArgumentError("a text with images ends where the context is full");
  }
  request.adapters = model.context.adapters.get()->in_order(std::move(request.adapters));
  constexpr size_t kWordsPerBias = sizeof(TokenBias) / sizeof(uint32_t);
  if (!count_breakers(request.dry_breakers)) throw ArgumentError("dry_breakers is no such list");
  const size_t n_banned = request.banned.size() + request.banned_first.size();
  if (n_banned > kMaxOptionWords - adapter_words(request.adapters.size()))
    throw ArgumentError(std::to_string(n_banned) + " tokens shall not be chosen; at most " +
                        std::to_string(kMaxOptionWords) + " are possible");
  const size_t n_words = kMaxOptionWords - adapter_words(request.adapters.size()) - n_banned;
  const size_t most_biases =
      (n_words - std::min<size_t>(n_words, request.dry_breakers.size())) / kWordsPerBias;
  if (request.dry_breakers.size() > n_words)
    throw ArgumentError(
        "dry_sequence_breakers are part of so many tokens that a table of them has " +
        std::to_string(request.dry_breakers.size()) + " numbers; at most " +
        std::to_string(n_words) + " are possible: name fewer of them");
  if (request.logit_bias.size() > most_biases)
    throw ArgumentError("logit_bias has " + std::to_string(request.logit_bias.size()) +
                        " tokens; at most " + std::to_string(most_biases) + " are possible");
  for (const TokenBias& each : request.logit_bias)
    if (each.token >= model.context.arch().vocab_size)
      throw ArgumentError("logit_bias has token " + std::to_string(each.token) +
                          ", which is outside the vocabulary of " +
                          std::to_string(model.context.arch().vocab_size));
  for (const uint32_t n : {request.logprobs, request.prompt_logprobs})
    if (n != kNone && n > kMaxLogprobs)
      throw ArgumentError(std::to_string(n) + " most likely tokens; at most " +
                          std::to_string(kMaxLogprobs) + " are possible");
  if (request.stop_ids.size() > kMaxStopIds)
    throw ArgumentError(std::to_string(request.stop_ids.size()) + " stop ids; at most " +
                        std::to_string(kMaxStopIds) + " are possible");
  if (request.speculation > kMostDrafted && request.speculation != kSpeculationAuto)
    throw ArgumentError("speculation is " + std::to_string(request.speculation) + "; at most " +
                        std::to_string(kMostDrafted) + " tokens can be drafted");
  // What a draft costs a GPU, which is submitted to ahead of its results, nobody has measured yet.
  if (request.speculation == kSpeculationAuto && model.context.device->chip().submissions_ahead > 0)
    request.speculation = kSpeculationOff;
  request.max_tokens = std::min(request.max_tokens, most_tokens(model, request.prompt.size()));
  request.keeps_positions = request.keeps_positions && model.programs.rotations.can_turn();
  if (request.keeps_positions) refuse_unless_kept_fits(model.context);
}

void check_request(const Model& model, LogitsRequest& request) {
  check_tokens(model, request.tokens);
  check_window(model, request.window.get());
  request.adapters = model.context.adapters.get()->in_order(std::move(request.adapters));
  if (request.first >= request.tokens.size())
    throw ArgumentError("logits from token " + std::to_string(request.first) + " on of " +
                        std::to_string(request.tokens.size()));
  if (request.behind != kNone && !model.context.weights->has_prediction_head())
    throw UnsupportedModelError("the model was loaded without a prediction head");
  if (request.behind != kNone && request.behind >= model.context.arch().vocab_size)
    throw ArgumentError("token " + std::to_string(request.behind) + " is outside the vocabulary");
  const ChipConfig& chip = model.context.device->chip();
  if (!request.images.empty()) {
    place_images(model.context.arch(), request.images, request.tokens);
    if (!request.chunks.empty()) throw ArgumentError("a text with images takes no chunks");
    for (const PlacedImage& each : request.images)
      if (request.first > each.first && request.first < each.end())
        throw ArgumentError("logits from token " + std::to_string(request.first) +
                            " on, which is within an image");
    const auto is_too_large = [&](const PlacedImage& each) {
      return each.image->n_tokens > chip.max_head_rows && request.first < each.end();
    };
    if (std::ranges::any_of(request.images, is_too_large))
      throw ArgumentError(
          "logits of an image's own tokens are too many at once; ask for those "
          "behind the last image");
  }
  const uint32_t most =
      request.generated ? kMaxFewRows : std::min(chip.max_head_rows, chip.max_prompt_rows);
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
  if (request.aligns && model.context.sizes.alignment_width == 0)
    throw UnsupportedModelError("nobody knows which heads of this model say when a word is said");
  refuse_unless_fits(model, request.tokens.size() - request.first, logits_width(model, request));
}

std::vector<GroupShape> saved_groups(const Model& model) {
  if (const uint32_t n_ranks = model.context.device->n_ranks(); n_ranks > 1)
    throw UnsupportedModelError("texts of a model that is computed by " + std::to_string(n_ranks) +
                                " GPUs cannot be saved: each has the keys and values of its heads");
  std::vector<GroupShape> groups;
  for (const CacheGroup& group : model.context.cache.groups()) {
    if (group.shape.is_cross())
      throw UnsupportedModelError("texts of this model cannot be saved: a part of its cache is '" +
                                  name_of(group.shape.kind) + "', and belongs to one text alone");
    groups.push_back(group.shape);
  }
  return groups;
}

SavedPositions room_to_save(const Model& model, uint32_t n) {
  const std::vector<GroupShape> groups = saved_groups(model);
  SavedPositions room{first_entries_to_save(groups, n), {}};
  const uint64_t bytes = saved_bytes(groups, room.first_entries, n);
  if (const MemoryLeft left = model.context.device->memory_left();
      bytes >= kAskSystemFrom && !left.fits(bytes))
    throw OutOfMemoryError("keys and values of " + std::to_string(n) + " tokens need " +
                           mebibytes(bytes) + " beside the cache; " +
                           describe_refusal(bytes, left));
  room.bytes.resize(bytes);
  return room;
}

void check_saved(const Model& model, uint32_t n, const SavedPositions& saved) {
  const std::vector<GroupShape> groups = saved_groups(model);
  if (saved.first_entries.size() != groups.size())
    throw ArgumentError("positions of " + std::to_string(saved.first_entries.size()) +
                        " cache groups; this model has " + std::to_string(groups.size()));
  const std::vector<uint32_t> least = first_entries_to_save(groups, n);
  for (size_t group = 0; group < groups.size(); ++group)
    if (const uint32_t most = saved_entries(groups[group], n);
        saved.first_entries[group] < least[group] || saved.first_entries[group] > most)
      throw ArgumentError("saved pages of group " + std::to_string(group) + " begin at entry " +
                          std::to_string(saved.first_entries[group]) + "; possible are " +
                          std::to_string(least[group]) + " to " + std::to_string(most));
  if (const uint64_t bytes = saved_bytes(groups, saved.first_entries, n);
      saved.bytes.size() != bytes)
    throw ArgumentError("saved positions have " + std::to_string(saved.bytes.size()) +
                        " bytes; those of " + std::to_string(n) + " tokens have " +
                        std::to_string(bytes));
}

}  // namespace akunu
