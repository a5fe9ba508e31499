// The C API's texts under way.
#include "inference/generation.h"

#include <algorithm>
#include <optional>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/running.h"
#include "capi/signal.h"
#include "inference/speculation.h"

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

void check_number(float number, float least, float most, const char* name) {
  if (!(number >= least && number <= most))  // this way round, NaN is refused too
    throw ArgumentError("sampling." + std::string(name) + " is " + std::to_string(number) +
                        ", expected " + std::to_string(least) + " to " + std::to_string(most));
}

Sampling sampling_of(const akunu_sampling* options) {
  const akunu_sampling given = taken(options, "sampling");
  check_number(given.temperature, 0, 100, "temperature");
  check_number(given.top_p, 0, 1, "top_p");
  check_number(given.min_p, 0, 1, "min_p");
  check_number(given.repetition_penalty, 0, 100, "repetition_penalty");
  check_number(given.frequency_penalty, -100, 100, "frequency_penalty");
  check_number(given.presence_penalty, -100, 100, "presence_penalty");
  Sampling sampling;
  sampling.temperature = given.temperature;
  sampling.top_k = given.top_k;
  sampling.top_p = given.top_p == 0 ? 1 : given.top_p;
  sampling.min_p = given.min_p;
  sampling.repetition_penalty = given.repetition_penalty == 0 ? 1 : given.repetition_penalty;
  sampling.frequency_penalty = given.frequency_penalty;
  sampling.presence_penalty = given.presence_penalty;
  sampling.seed_low = static_cast<uint32_t>(given.seed);
  sampling.seed_high = static_cast<uint32_t>(given.seed >> 32);
  return sampling;
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

std::vector<AdapterShare> shares_of(const Model& model, const akunu_generate_options& options) {
  if (options.n_adapters > 0) need(options.adapters, "options.adapters");
  const std::span<const std::string> names = model.adapters().names();
  std::vector<AdapterShare> shares;
  for (size_t i = 0; i < options.n_adapters; ++i) {
    const std::string where = "options.adapters[" + std::to_string(i) + "]";
    const auto& [name, weight] = options.adapters[i];
    need(name, (where + ".name").c_str());
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw ArgumentError(where + ".name is none of the adapters that the model was loaded with");
    if (!(weight >= -1e4f && weight <= 1e4f))  // NaN is refused too
      throw ArgumentError(where + ".weight is " + std::to_string(weight) +
                          ", expected -10000 to 10000");
    shares.push_back({static_cast<uint32_t>(found - names.begin()), weight});
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
  if (!given.ignore_stops) {
    const std::vector<uint32_t>& own = model.tokenizer()->vocabulary().stops;
    request.stop_ids.insert(request.stop_ids.end(), own.begin(), own.end());
  }
  std::ranges::sort(request.stop_ids);
  const auto repeated = std::ranges::unique(request.stop_ids);
  request.stop_ids.erase(repeated.begin(), repeated.end());
  Scheduler& scheduler = *model.engine->scheduler;
  const uint32_t most = scheduler.most_tokens(prompt.size());
  request.max_tokens = given.max_tokens == 0 ? most : given.max_tokens;
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
