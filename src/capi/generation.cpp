// The C API's texts under way.
#include "inference/generation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/running.h"
#include "capi/signal.h"
#include "files/printable.h"
#include "inference/speculation.h"
#include "text/dry_breakers.h"

namespace akunu::capi {
struct GenerationObject {
  std::shared_ptr<Engine> engine;  // before the generation: it outlives it
  std::shared_ptr<Generation> generation;
  Signal signal = {};

  ~GenerationObject() {
    if (engine->home.is_another()) return;
    generation->on_change({});
    generation->cancel();
  }
};

namespace {

// A number, or what zero stands for. Throws ArgumentError for what is outside.
template <class Number>
Number number_of(Number given, Number least, Number most, Number usual, const char* name) {
  if (given == 0) return usual;
  if (given >= least && given <= most) return given;  // this way round, NaN is refused too
  throw ArgumentError("sampling." + std::string(name) + " is " + std::to_string(given) +
                      ", expected " + std::to_string(least) + " to " + std::to_string(most));
}

void take_samplers(const char* given, Sampling& sampling);

void need_sampler(const Sampling& sampling, uint32_t sampler, bool is_given, const char* name) {
  for (uint32_t i = 0; is_given && i < kSamplerCount; ++i)
    if (sampler_at(sampling.samplers_low, sampling.samplers_high, i) == sampler) return;
  if (is_given)
    throw ArgumentError("sampling." + std::string(name) +
                        " is set, and sampling.samplers leaves out what does it");
}

#include "capi/sampling_options.inc"

void take_samplers(const char* given, Sampling& sampling) {
  if (given == nullptr) return;
  uint64_t numbers = 0;
  uint32_t n = 0, seen = 0;
  for (const auto part : std::views::split(std::string_view(given), ',')) {
    const auto found = std::ranges::find(kSamplers, std::string_view(part.begin(), part.end()));
    const auto number = static_cast<uint32_t>(found - std::begin(kSamplers)) + 1;
    if (found == std::end(kSamplers) || (seen >> number & 1) != 0) {
      seen = 0;
      break;
    }
    seen |= 1u << number;
    numbers |= uint64_t{number} << 4 * n++;
  }
  if ((seen >> kSamplerTemperature & 1) == 0) {
    std::string names;
    for (const std::string_view name : kSamplers)
      names += (names.empty() ? "" : ",") + std::string(name);
    throw ArgumentError(
        "sampling.samplers is '" + printable(given) +
        "', expected names between commas, each once and temperature among them: " + names);
  }
  sampling.samplers_low = static_cast<uint32_t>(numbers);
  sampling.samplers_high = static_cast<uint32_t>(numbers >> 32);
}

Sampling sampling_of(const akunu_sampling* options) {
  Sampling sampling;
  take_numbers(taken(options, "sampling"), sampling);
  return sampling;
}

// What is added to logits, each token once.
std::vector<TokenBias> biases_of(const akunu_generate_options& options,
                                 std::span<const uint32_t> banned) {
  if (options.n_logit_bias > 0) need(options.logit_bias, "options.logit_bias");
  std::map<uint32_t, float> biases;
  for (size_t i = 0; i < options.n_logit_bias; ++i) {
    const auto& [token, bias] = options.logit_bias[i];
    const std::string where = "options.logit_bias[" + std::to_string(i) + "]";
    if (!(bias <= 1e4f))  // NaN is refused too
      throw ArgumentError(where + ".bias is " + std::to_string(bias) + ", expected -inf to 10000");
    if (!biases.emplace(token, bias).second)
      throw ArgumentError(where + ".token is " + std::to_string(token) + ", which is there before");
  }
  for (const uint32_t token : banned) biases[token] = -std::numeric_limits<float>::infinity();
  std::vector<TokenBias> list;
  for (const auto& [token, bias] : biases) list.push_back({token, bias});
  return list;
}

std::vector<uint32_t> breakers_of(const Tokenizer& tokenizer,
                                  const akunu_generate_options& options) {
  std::vector<std::string> breakers = {"\n", ":", "\"", "*"};
  if (options.n_dry_sequence_breakers > 0)
    need(options.dry_sequence_breakers, "options.dry_sequence_breakers");
  if (options.n_dry_sequence_breakers > 100)
    throw ArgumentError("options.n_dry_sequence_breakers is " +
                        std::to_string(options.n_dry_sequence_breakers) +
                        ", expected 100 or fewer");
  if (options.dry_sequence_breakers != nullptr) breakers.clear();
  for (size_t i = 0; i < options.n_dry_sequence_breakers; ++i) {
    const std::string where = "options.dry_sequence_breakers[" + std::to_string(i) + "]";
    need(options.dry_sequence_breakers[i], where.c_str());
    breakers.emplace_back(options.dry_sequence_breakers[i]);
    if (breakers.back().empty() || breakers.back().size() > 1024)
      throw ArgumentError(where + " has " + std::to_string(breakers.back().size()) +
                          " bytes, expected 1 to 1024");
  }
  return breaker_words(tokenizer, breakers);
}

void refuse_grammars(const akunu_generate_options& given) {
  for (const auto& [text, name] :
       {std::pair{given.grammar, "grammar"}, std::pair{given.json_schema, "json_schema"},
        std::pair{given.regex, "regex"}})
    if (text != nullptr)
      throw UnsupportedModelError(
          "options." + std::string(name) +
          " is set, and grammars are not in the C library: generate without, "
          "or with the Python package");
}

std::vector<TextAdapter> shares_of(const Model& model, const akunu_generate_options& options) {
  if (options.n_adapters > 0) need(options.adapters, "options.adapters");
  const std::shared_ptr<const Adapters> loaded = model.context.adapters.get();
  std::vector<TextAdapter> shares;
  for (size_t i = 0; i < options.n_adapters; ++i) {
    const std::string where = "options.adapters[" + std::to_string(i) + "]";
    const auto& [name, weight] = options.adapters[i];
    need(name, (where + ".name").c_str());
    const std::optional<uint32_t> number = loaded->number_of(name);
    if (!number)
      throw ArgumentError(where + ".name is none of the adapters that the model was loaded with");
    if (!(weight >= -1e4f && weight <= 1e4f))  // NaN is refused too
      throw ArgumentError(where + ".weight is " + std::to_string(weight) +
                          ", expected -10000 to 10000");
    shares.push_back({*number, weight});
  }
  return shares;
}

}  // namespace

std::shared_ptr<Generation> start(ModelObject& model, std::vector<uint32_t> prompt,
                                  const akunu_generate_options* options) {
  const akunu_generate_options given = taken(options, "options");
  GenerateRequest request;
  refuse_grammars(given);
  request.sampling = sampling_of(given.sampling);
  request.adapters = shares_of(*model.engine->model, given);
  request.speculation = given.speculate ? kSpeculationAuto : kSpeculationOff;
  if (given.n_stop_ids > 0) need(given.stop_ids, "options.stop_ids");
  request.stop_ids.assign(given.stop_ids, given.stop_ids + given.n_stop_ids);
  const std::vector<uint32_t>& own = model.tokenizer()->vocabulary().stops;
  if (!given.ignore_stops && !given.ignore_eos)
    request.stop_ids.insert(request.stop_ids.end(), own.begin(), own.end());
  request.logit_bias =
      biases_of(given, given.ignore_eos ? std::span(own) : std::span<const uint32_t>());
  if (request.sampling.dry_multiplier > 0)
    request.dry_breakers = breakers_of(*model.tokenizer(), given);
  std::ranges::sort(request.stop_ids);
  const auto repeated = std::ranges::unique(request.stop_ids);
  request.stop_ids.erase(repeated.begin(), repeated.end());
  Scheduler& scheduler = *model.engine->scheduler;
  const uint32_t most = scheduler.most_tokens(prompt.size());
  request.max_tokens = given.max_tokens == 0 ? most : given.max_tokens;
  if (request.sampling.min_tokens > request.max_tokens)
    throw ArgumentError("sampling.min_tokens is " + std::to_string(request.sampling.min_tokens) +
                        ", and no more than " + std::to_string(request.max_tokens) +
                        " tokens can be generated");
  request.prompt = std::move(prompt);
  return scheduler.generate(std::move(request));
}

namespace {

akunu_finish finish_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return AKUNU_FINISH_NONE;
    case FinishReason::stop:
      return AKUNU_FINISH_STOP;
    case FinishReason::length:
      return AKUNU_FINISH_LENGTH;
    case FinishReason::cancelled:
      return AKUNU_FINISH_CANCELLED;
  }
  return AKUNU_FINISH_NONE;
}

// Of a generation that is over, and whose tokens were all taken.
bool ended_by_error(Generation& generation) {
  uint32_t none;
  try {
    generation.next({&none, 1}, std::chrono::milliseconds(0));
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void fill_stats(akunu_generation_stats* stats, const Generation& generation,
                bool is_ended = false) {
  akunu_generation_stats known{};
  known.finish = is_ended ? AKUNU_FINISH_CANCELLED : finish_of(generation.reason());
  known.prompt_tokens = generation.n_given();
  known.cached_tokens = generation.n_cached();
  known.completion_tokens = generation.completion_tokens();
  known.drafted_tokens = generation.n_drafted();
  known.prompt_seconds = generation.prompt_seconds();
  known.completion_seconds = generation.completion_seconds(known.completion_tokens);
  fill(stats, known, "stats");
}

std::vector<uint32_t> prompt_of(const uint32_t* tokens, size_t n_tokens) {
  if (n_tokens == 0) throw ArgumentError("the prompt has no tokens: one is needed to go on from");
  need(tokens, "prompt");
  return {tokens, tokens + n_tokens};
}

}  // namespace

akunu_status run(ModelObject& model, std::vector<uint32_t> prompt,
                 const akunu_generate_options* options, akunu_token_callback callback,
                 void* user_data, akunu_generation_stats* stats, std::vector<uint32_t>* chosen) {
  if (stats != nullptr) fill(stats, akunu_generation_stats{}, "stats");
  const uint32_t last = prompt.back();
  const std::shared_ptr<Generation> generation = start(model, std::move(prompt), options);
  std::optional<TextStream> stream;
  std::shared_ptr<const Tokenizer> tokenizer;
  if (callback != nullptr) {
    tokenizer = model.tokenizer();
    stream.emplace(*tokenizer, true);
    // A space that the first token begins with belongs to a text that goes on.
    if (last < tokenizer->size()) stream->follow(last);
  }
  bool is_ended = false;  // by the callback
  uint32_t tokens[64];
  while (const std::optional<size_t> n = generation->next(tokens, kWithoutLimit)) {
    if (chosen != nullptr && callback == nullptr && !is_ended)
      chosen->insert(chosen->end(), tokens, tokens + *n);
    for (size_t i = 0; i < *n && callback != nullptr; ++i) {
      if (chosen != nullptr) chosen->push_back(tokens[i]);
      const std::string text = stream->push(tokens[i]);
      if (callback(tokens[i], text.c_str(), text.size(), user_data)) continue;
      generation->cancel();
      callback = nullptr;
      is_ended = true;
    }
  }
  if (stats != nullptr) fill_stats(stats, *generation, is_ended);
  return AKUNU_OK;
}

}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_generate(akunu_model model, const uint32_t* prompt, size_t n_prompt,
                            const akunu_generate_options* options, akunu_token_callback callback,
                            void* user_data, akunu_generation_stats* stats) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    return run(*object, prompt_of(prompt, n_prompt), options, callback, user_data, stats);
  });
}

akunu_status akunu_generate_text(akunu_model model, const char* prompt,
                                 const akunu_generate_options* options,
                                 akunu_token_callback callback, void* user_data,
                                 akunu_generation_stats* stats) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    need(prompt, "prompt");
    const std::vector<uint32_t> tokens = object->tokenizer()->encode(prompt);
    return run(*object, prompt_of(tokens.data(), tokens.size()), options, callback, user_data,
               stats);
  });
}

akunu_status akunu_start(akunu_model model, const uint32_t* prompt, size_t n_prompt,
                         const akunu_generate_options* options, akunu_generation* generation) {
  return guarded([&] {
    need(generation, "generation");
    *generation = nullptr;
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    const std::shared_ptr<Generation> started =
        start(*object, prompt_of(prompt, n_prompt), options);
    const std::shared_ptr<GenerationObject> made(new GenerationObject{object->engine, started});
    started->on_change([signal = &made->signal] { signal->tell(); });
    *generation = new_handle<akunu_generation>(made);
    return AKUNU_OK;
  });
}

akunu_status akunu_take(akunu_generation generation, int32_t timeout_ms, uint32_t* tokens,
                        size_t capacity, size_t* n_tokens, akunu_finish* finish) {
  return guarded([&] {
    need(tokens, "tokens");
    need(n_tokens, "n_tokens");
    need(finish, "finish");
    *n_tokens = 0;
    *finish = AKUNU_FINISH_NONE;
    if (capacity == 0) throw ArgumentError("the buffer has no room for a token");
    if (timeout_ms < -1)
      throw ArgumentError("timeout_ms is " + std::to_string(timeout_ms) + ", expected -1 or more");
    const std::shared_ptr<GenerationObject> object = object_of<GenerationObject>(generation);
    object->engine->scheduler->check_process();
    object->signal.forget();
    const auto timeout = timeout_ms == -1 ? kWithoutLimit : std::chrono::milliseconds(timeout_ms);
    const std::optional<size_t> n = object->generation->next({tokens, capacity}, timeout);
    *n_tokens = n.value_or(0);
    *finish = finish_of(object->generation->reason());
    // Where an error ended it, these are the last tokens, and the next call says what it was.
    if (n && *finish != AKUNU_FINISH_NONE && ended_by_error(*object->generation)) {
      *finish = AKUNU_FINISH_NONE;
      object->signal.tell();
    }
    // More may be left, and the end stays to be seen.
    if (*n_tokens == capacity || !n || *finish != AKUNU_FINISH_NONE) object->signal.tell();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_descriptor(akunu_generation generation, int* descriptor) {
  return guarded([&] {
    need(descriptor, "descriptor");
    *descriptor = object_of<GenerationObject>(generation)->signal.descriptor();
    return AKUNU_OK;
  });
}

akunu_status akunu_cancel(akunu_generation generation) {
  return guarded([&] {
    object_of<GenerationObject>(generation)->generation->cancel();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_stats(akunu_generation generation, akunu_generation_stats* stats) {
  return guarded([&] {
    const std::shared_ptr<GenerationObject> object = object_of<GenerationObject>(generation);
    object->engine->scheduler->check_process();
    fill_stats(stats, *object->generation);
    return AKUNU_OK;
  });
}

akunu_status akunu_close_generation(akunu_generation generation) {
  return guarded([&] {
    take_object<GenerationObject>(generation);
    return AKUNU_OK;
  });
}
