// The C API's models: loading, what they are, logits and embeddings.
#include <algorithm>
#include <cmath>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "files/printable.h"
#include "registry.h"

namespace akunu::capi {
namespace {

std::string lines(const auto& parts) {
  std::string text;
  for (const auto& part : parts) {
    if (!text.empty()) text += '\n';
    text += part;
  }
  return text;
}

// In order of their names, as the engine wants them.
std::vector<AdapterPath> adapters_of(const akunu_load_options& given) {
  if (given.n_adapters > 0) need(given.adapters, "options.adapters");
  std::vector<AdapterPath> adapters;
  for (size_t i = 0; i < given.n_adapters; ++i) {
    const std::string where = "options.adapters[" + std::to_string(i) + "]";
    need(given.adapters[i].name, (where + ".name").c_str());
    need(given.adapters[i].path, (where + ".path").c_str());
    if (*given.adapters[i].name == 0) throw ArgumentError(where + ".name is empty");
    adapters.push_back({given.adapters[i].name, given.adapters[i].path});
  }
  std::ranges::sort(adapters, {}, &AdapterPath::name);
  const auto twice = std::ranges::adjacent_find(adapters, {}, &AdapterPath::name);
  if (twice != adapters.end())
    throw ArgumentError("options.adapters has the name " + printable(twice->name) + " twice");
  return adapters;
}

#include "capi/load_options.inc"

LoadOptions load_options(const akunu_load_options& given) {
  LoadOptions options;
  take_numbers(given, options);
  if (given.kv_type != nullptr) options.kv_format = kv_format(given.kv_type);
  options.adapters = adapters_of(given);
  if (given.prediction_head && given.draft != nullptr)
    throw ArgumentError(
        "options.draft and options.prediction_head both draft tokens: set one of them");
  if (given.prediction_head && given.gpus > 1)
    throw ArgumentError("options.gpus is " + std::to_string(given.gpus) +
                        "; it must be 1 with options.prediction_head");
  return options;
}

// As many devices as compute the model; more than one are GPUs.
DeviceOptions device_options(const akunu_load_options& given, const std::string& device) {
  if (given.gpus > 1 && device != "auto" && device != "cuda")
    throw ArgumentError("options.gpus is " + std::to_string(given.gpus) + ", but device is '" +
                        printable(device) + "'; only cuda runs a model on several GPUs");
  return {.threads = given.threads, .gpus = std::max(given.gpus, 1u)};
}

// What every token of a vocabulary is, without the unused ones that fill its end up.
std::span<const std::string> spelled(const Vocabulary& vocabulary) {
  size_t n = vocabulary.tokens.size();
  while (n > 0 && vocabulary.types[n - 1] == TokenType::unused) --n;
  return std::span(vocabulary.tokens).first(n);
}

// A draft model's tokens must be the target's, id by id: only ids are handed over. What merges text, and
// how it is split, may differ.
void check_draft_vocabulary(ModelObject& target, const std::string& draft_path) {
  const std::shared_ptr<const Tokenizer> draft = read_tokenizer(draft_path);
  const std::span<const std::string> theirs = spelled(draft->vocabulary());
  const std::shared_ptr<const Tokenizer> tokenizer = target.tokenizer();
  const std::span<const std::string> ours = spelled(tokenizer->vocabulary());
  const size_t n_same =
      static_cast<size_t>(std::ranges::mismatch(theirs, ours).in1 - theirs.begin());
  if (n_same == theirs.size() && n_same == ours.size()) return;
  const auto shown = [n_same](std::span<const std::string> tokens) {
    return n_same < tokens.size() ? "'" + printable(tokens[n_same]) + "'" : std::string("nothing");
  };
  throw UnsupportedModelError(
      printable(draft_path, kPathLimit) + " cannot draft for " +
      printable(target.path, kPathLimit) + ": token " + std::to_string(n_same) + " is " +
      shown(theirs) + " there and " + shown(ours) +
      " here; a draft model has the vocabulary of the model that it drafts for");
}

akunu_model_info describe(const Model& model) {
  akunu_model_info info{};
  const ModelConfig& config = model.context.weights->config;
  config.architecture.copy(info.architecture, sizeof info.architecture - 1);
  info.n_layers = n_own_layers(config);
  info.dim = config.dim;
  for (const LayerConfig& layer : config.layers) {  // where layers differ, the most of any
    info.n_heads = std::max(info.n_heads, layer.n_heads);
    info.n_kv_heads = std::max(info.n_kv_heads, layer.n_kv_heads);
    info.head_dim = std::max(info.head_dim, layer.head_dim);
    info.ffn_dim = std::max(info.ffn_dim, layer.ffn_dim);
  }
  info.vocab_size = config.vocab_size;
  info.trained_context = config.context_length;
  info.context = model.context.n_positions();
  info.embedding_dim = model.context.arch().embeds ? model.context.weights->output_width() : 0;
  config.name.copy(info.name, sizeof info.name - 1);
  info.rope_dim = config.rope.dim;
  info.rope_theta = config.rope.theta;
  info.rope_theta_windowed = config.rope_theta_windowed;
  info.norm_epsilon = config.norm_epsilon;
  info.window = config.window;
  info.latent_rank = config.latent.rank;
  info.n_experts = config.experts.n;
  info.n_experts_chosen = config.experts.n_chosen;
  info.expert_dim = config.experts.dim;
  info.n_mels = model.context.arch().audio ? model.context.arch().audio->n_mels : 0;
  for (const MemoryUse& use : model.context.device->memory_use())
    (use.mapped ? info.mapped_bytes : info.memory_bytes) += use.bytes;
  return info;
}

// Rows of one task, as soon as it is over.
std::unique_ptr<float[]> result_of(LogitsTask& task) {
  task.wait(kWithoutLimit);
  return task.take();
}

void scale_to_length_1(std::span<float> vector) {
  double sum = 0;
  for (const float number : vector) sum += double{number} * number;
  if (sum == 0) return;
  const double factor = 1 / std::sqrt(sum);
  for (float& number : vector) number = static_cast<float>(number * factor);
}

// Numbers of a vector. Throws ArgumentError for a model that has none.
size_t embedding_width(const Model& model) {
  if (!model.context.arch().embeds)
    throw ArgumentError("the model generates text: it has no embeddings");
  return model.context.weights->output_width();
}

std::shared_ptr<LogitsTask> start_embedding(Engine& engine, std::vector<uint32_t> tokens) {
  return engine.scheduler->encode(
      {.tokens = std::move(tokens),
       .pooling = engine.model->context.weights->config.pooling.value_or(Pooling::mean)});
}

}  // namespace
}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_load_model(const char* path, const akunu_load_options* options,
                              akunu_model* model) {
  return guarded([&] {
    need(path, "path");
    need(model, "model");
    *model = nullptr;
    const akunu_load_options given = taken(options, "options");
    const char* device = given.device == nullptr ? "auto" : given.device;
    const auto object = std::make_shared<ModelObject>();
    object->path = path;
    object->files = seen_files(object->path);
    const LoadOptions options_here = load_options(given);
    const std::shared_ptr<Device> share = share_device(device, device_options(given, device));
    if (given.draft != nullptr) check_draft_vocabulary(*object, given.draft);
    object->engine = Engine::load(object->path, given.draft == nullptr ? "" : given.draft, share,
                                  options_here, {.prefix_cache = !given.no_prefix_cache});
    *model = new_handle<akunu_model>(object);
    return AKUNU_OK;
  });
}

akunu_status akunu_close_model(akunu_model model) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = take_object<ModelObject>(model);
    if (!object->engine->home.is_another()) object->engine->scheduler->stop();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_model_info(akunu_model model, akunu_model_info* info) {
  return guarded([&] {
    fill(info, describe(*object_of<ModelObject>(model)->engine->model), "info");
    return AKUNU_OK;
  });
}

akunu_status akunu_get_notes(akunu_model model, char* buffer, size_t capacity, size_t* length) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    return give_text(lines(object->engine->model->notes()), buffer, capacity, length);
  });
}

akunu_status akunu_get_devices(char* buffer, size_t capacity, size_t* length) {
  return guarded([&] { return give_text(lines(backend_names()), buffer, capacity, length); });
}

akunu_status akunu_logits(akunu_model model, const uint32_t* tokens, size_t n_tokens, float* logits,
                          size_t capacity, size_t* length) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    const uint32_t width = object->engine->model->context.weights->output_width();
    // Before the work, not after it.
    if (const auto answer = answered_by_length(width, logits, capacity, length)) return *answer;
    if (n_tokens == 0) throw ArgumentError("there are no tokens: logits follow one at least");
    need(tokens, "tokens");
    LogitsRequest request;
    request.tokens.assign(tokens, tokens + n_tokens);
    request.first = static_cast<uint32_t>(n_tokens - 1);
    const std::shared_ptr<LogitsTask> task = object->engine->scheduler->logits(std::move(request));
    const std::unique_ptr<float[]> row = result_of(*task);
    return give(std::span<const float>(row.get(), width), logits, capacity, length);
  });
}

akunu_status akunu_embed(akunu_model model, const char* const* texts, size_t n_texts,
                         float* vectors, size_t capacity, size_t* length) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    Engine& engine = *object->engine;
    const size_t width = embedding_width(*engine.model);
    if (n_texts > 0) need(texts, "texts");
    if (const auto answer = answered_by_length(n_texts * width, vectors, capacity, length))
      return *answer;
    const std::shared_ptr<const Tokenizer> tokenizer = object->tokenizer();
    std::vector<std::shared_ptr<LogitsTask>> tasks;
    for (size_t i = 0; i < n_texts; ++i) {
      need(texts[i], ("texts[" + std::to_string(i) + "]").c_str());
      tasks.push_back(start_embedding(engine, tokenizer->encode(texts[i])));
    }
    std::vector<float> all;
    for (const std::shared_ptr<LogitsTask>& task : tasks) {
      const std::unique_ptr<float[]> row = result_of(*task);
      const std::span<float> vector(row.get(), width);
      scale_to_length_1(vector);
      all.insert(all.end(), vector.begin(), vector.end());
    }
    return give(std::span<const float>(all), vectors, capacity, length);
  });
}

akunu_status akunu_embed_tokens(akunu_model model, const uint32_t* tokens, size_t n_tokens,
                                float* vector, size_t capacity, size_t* length) {
  return guarded([&] {
    const std::shared_ptr<ModelObject> object = object_of<ModelObject>(model);
    const size_t width = embedding_width(*object->engine->model);
    if (const auto answer = answered_by_length(width, vector, capacity, length)) return *answer;
    if (n_tokens == 0) throw ArgumentError("there are no tokens to embed");
    need(tokens, "tokens");
    const std::unique_ptr<float[]> row =
        result_of(*start_embedding(*object->engine, {tokens, tokens + n_tokens}));
    const std::span<float> found(row.get(), width);
    scale_to_length_1(found);
    return give(std::span<const float>(found), vector, capacity, length);
  });
}
