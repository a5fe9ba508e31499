// The C API's saved sessions: from a session to its file and back, with everything that must hold for it to
// go on (akunu/storage/session_state.py says why). The files are those of the Python package.
#include <algorithm>
#include <filesystem>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/session_file.h"
#include "capi/session_object.h"
#include "files/printable.h"
#include "text/blake2b.h"

namespace akunu::capi {
namespace {

std::string kv_type_of(const Model& model) {
  return std::string(format_info(model.context.cache.format()).name);
}

std::string layout_of(const Model& model) {
  std::string groups;
  for (const CacheGroup& group : model.context.cache.groups()) {
    std::string layers;
    for (const LayerShape& layer : group.shape.layers)
      layers += (layers.empty() ? "[" : ",[") + std::to_string(layer.layer) + "," +
                std::to_string(layer.n_heads) + "," + std::to_string(layer.key_bytes) +
                (layer.has_values() ? ",2]" : ",1]");
    groups += (groups.empty() ? "{\"kind\":" : ",{\"kind\":") +
              json_string(akunu::name_of(group.shape.kind)) +
              ",\"format\":" + json_string(format_info(group.shape.format).name) + ",\"layers\":[" +
              layers + "]}";
  }
  return "[" + groups + "]";
}

// What the bits of keys and values depend on beside model and format.
std::string computed_by(const Model& model) {
  const Device& device = *model.context.device;
  Blake2b rotation(16);
  rotation.update(model.context.frequencies.bytes());
  // Of a GPU its name, too: what it adds up in which order is its own.
  const auto& level = device.chip().level;
  return "{\"akunu\":" + json_string(akunu_version()) +
         ",\"device\":" + json_string(device.backend()) +
         ",\"level\":" + json_string(level.empty() ? device.chip().name : level) +
         ",\"rotation\":\"" + hex(rotation.digest()) + "\"}";
}

std::string model_of(ModelObject& object) {
  const ModelConfig& config = object.engine->model->context.weights->config;
  const std::string file = std::filesystem::path(object.path).filename().string();
  return "{\"name\":" + json_string(config.name.empty() ? file : config.name) +
         ",\"architecture\":" + json_string(config.architecture) +
         ",\"digest\":" + json_string(object.digest()) + "}";
}

bool is_same(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text ||
      a.items.size() != b.items.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    const JsonValue* other = a.kind == JsonValue::Kind::object ? b.find(a.keys[i]) : &b.items[i];
    if (other == nullptr || !is_same(a.items[i], *other)) return false;
  }
  return true;
}

std::string text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* found = object.find(key);
  return found == nullptr ? "nothing" : printable(found->text);
}

void check_model(const std::string& path, const JsonValue& header, ModelObject& object) {
  const Model& model = *object.engine->model;
  const JsonValue& theirs = *header.find("model");
  if (text_of(theirs, "digest") != object.digest())
    throw ModelFormatError(path + " is of another model: '" + text_of(theirs, "name") + "' (" +
                           text_of(theirs, "architecture") + ", " +
                           text_of(theirs, "digest").substr(0, 12) + "), this one is " +
                           object.digest().substr(0, 12));
  const std::string kv_type = text_of(header, "kv_type");
  if (kv_type != kv_type_of(model))
    throw ModelFormatError(path + " has keys and values in " + kv_type +
                           ", the cache of this model has " + kv_type_of(model) +
                           ": load it with kv_type \"" + kv_type + "\"");
  if (!is_same(*header.find("layout"), parse_json(layout_of(model), "the cache's layout")))
    throw ModelFormatError(path +
                           " has keys and values in another layout than the cache of this "
                           "model, as an older akunu may have had it; begin the session again");
}

// How many of its tokens need not be read again.
size_t restore(const std::string& path, const Engine& engine, const SessionFile& file) {
  const std::string ours = computed_by(*engine.model);
  if (!is_same(*file.header.find("computed_by"), parse_json(ours, "computed_by"))) return 0;
  if (file.n_positions == 0) return 0;
  try {
    const std::shared_ptr<RestoringTask> task =
        engine.scheduler->restore({file.tokens.begin(), file.tokens.begin() + file.n_positions},
                                  SavedPositions{file.first_entries, file.positions});
    task->wait(kWithoutLimit);
    return task->n_cached();
  } catch (const ArgumentError& error) {
    throw ModelFormatError(path + " contradicts itself: " + error.what());
  }
}

}  // namespace

const std::string& ModelObject::digest() {
  const std::lock_guard lock(mutex_);
  if (digest_.empty()) digest_ = digest_of(files);
  return digest_;
}

}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_save_session(akunu_session session, const char* path) {
  return guarded([&] {
    const UsedSession used = use(session);
    need(path, "path");
    const Engine& engine = *used->model->engine;
    // Of a context that is full the last token was chosen, and never read.
    const size_t n_positions =
        std::min<size_t>(used->tokens.size(), engine.model->context.n_positions());
    SavedPositions saved;
    if (n_positions > 0) {
      const auto first = used->tokens.begin();
      const std::shared_ptr<SavingTask> task =
          engine.scheduler->save({first, first + static_cast<ptrdiff_t>(n_positions)});
      task->wait(kWithoutLimit);
      saved = task->take();
    }
    std::string entries;
    for (const uint32_t entry : saved.first_entries)
      entries += (entries.empty() ? "" : ",") + std::to_string(entry);
    const std::string header = "\"akunu\":" + json_string(akunu_version()) +
                               ",\"model\":" + model_of(*used->model) +
                               ",\"kv_type\":" + json_string(kv_type_of(*engine.model)) +
                               ",\"layout\":" + layout_of(*engine.model) +
                               ",\"computed_by\":" + computed_by(*engine.model) +
                               ",\"n_positions\":" + std::to_string(n_positions) +
                               ",\"first_entries\":[" + entries + "],\"conversation\":null";
    write_session_file(path, header, used->tokens, saved.bytes);
    return AKUNU_OK;
  });
}

akunu_status akunu_load_session(akunu_model model, const char* path, akunu_session* session,
                                size_t* n_restored) {
  return guarded([&] {
    need(session, "session");
    *session = nullptr;
    if (n_restored != nullptr) *n_restored = 0;
    const auto object = std::make_shared<SessionObject>();
    object->model = object_of<ModelObject>(model);
    need(path, "path");
    const Engine& engine = *object->model->engine;
    const std::string name = printable(path, kPathLimit);
    SessionFile file = read_session_file(path);
    check_model(name, file.header, *object->model);
    const size_t context = engine.model->context.n_positions();
    if (file.tokens.size() > context + 1 || file.n_positions > context)
      throw ContextOverflowError(name + " has " + std::to_string(file.tokens.size()) +
                                 " tokens, the context holds " + std::to_string(context));
    const uint32_t vocab_size = engine.model->context.weights->config.vocab_size;
    if (std::ranges::any_of(file.tokens, [&](uint32_t token) { return token >= vocab_size; }))
      throw ModelFormatError(name + " has a token outside the vocabulary of " +
                             std::to_string(vocab_size));
    const size_t restored = restore(name, engine, file);
    object->tokens = std::move(file.tokens);
    *session = new_handle<akunu_session>(object);
    if (n_restored != nullptr) *n_restored = restored;
    return AKUNU_OK;
  });
}
