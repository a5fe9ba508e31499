// The C API's sessions: a text that is read and goes on in turns. Its tokens are kept here; keys and values
// are in the model's cache, where a prompt finds what it has in common with an earlier text.
#include <mutex>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/running.h"
#include "capi/session_object.h"

namespace akunu::capi {

UsedSession use(akunu_session handle) {
  std::shared_ptr<SessionObject> session = object_of<SessionObject>(handle);
  std::unique_lock lock(session->mutex, std::try_to_lock);
  if (!lock.owns_lock())
    throw BusyError("the session is in use by another call; wait until that has returned");
  return {std::move(session), std::move(lock)};
}

namespace {

void check_tokens(const Model& model, std::span<const uint32_t> tokens, size_t n_before) {
  const uint32_t vocab_size = model.context.weights->config.vocab_size;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] >= vocab_size)
      throw ArgumentError("tokens[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                          ": this vocabulary has ids 0 to " + std::to_string(vocab_size - 1));
  if (n_before + tokens.size() > model.context.n_positions())
    throw ContextOverflowError("the session has " + std::to_string(n_before) + " tokens, and " +
                               std::to_string(tokens.size()) + " more do not fit into " +
                               std::to_string(model.context.n_positions()) + " positions");
}

}  // namespace
}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_open_session(akunu_model model, akunu_session* session) {
  return guarded([&] {
    need(session, "session");
    *session = nullptr;
    const auto object = std::make_shared<SessionObject>();
    object->model = object_of<ModelObject>(model);
    *session = new_handle<akunu_session>(object);
    return AKUNU_OK;
  });
}

akunu_status akunu_close_session(akunu_session session) {
  return guarded([&] {
    take_object<SessionObject>(session);
    return AKUNU_OK;
  });
}

akunu_status akunu_append(akunu_session session, const uint32_t* tokens, size_t n_tokens) {
  return guarded([&] {
    const UsedSession used = use(session);
    if (n_tokens == 0) return AKUNU_OK;
    need(tokens, "tokens");
    const std::span<const uint32_t> added(tokens, n_tokens);
    check_tokens(*used->model->engine->model, added, used->tokens.size());
    used->tokens.insert(used->tokens.end(), added.begin(), added.end());
    return AKUNU_OK;
  });
}

akunu_status akunu_continue(akunu_session session, const akunu_generate_options* options,
                            akunu_token_callback callback, void* user_data,
                            akunu_generation_stats* stats) {
  return guarded([&] {
    const UsedSession used = use(session);
    if (used->tokens.empty()) throw ArgumentError("the session has no tokens: append one at least");
    std::vector<uint32_t> chosen;
    const akunu_status status =
        run(*used->model, used->tokens, options, callback, user_data, stats, &chosen);
    used->tokens.insert(used->tokens.end(), chosen.begin(), chosen.end());
    return status;
  });
}

akunu_status akunu_fork_session(akunu_session session, akunu_session* fork) {
  return guarded([&] {
    need(fork, "fork");
    *fork = nullptr;
    const UsedSession used = use(session);
    const auto object = std::make_shared<SessionObject>();
    object->model = used->model;
    object->tokens = used->tokens;
    *fork = new_handle<akunu_session>(object);
    return AKUNU_OK;
  });
}

akunu_status akunu_rewind(akunu_session session, size_t n_tokens) {
  return guarded([&] {
    const UsedSession used = use(session);
    if (n_tokens > used->tokens.size())
      throw ArgumentError("n_tokens is " + std::to_string(n_tokens) + ", the session has " +
                          std::to_string(used->tokens.size()));
    used->tokens.resize(n_tokens);
    return AKUNU_OK;
  });
}

akunu_status akunu_get_session_tokens(akunu_session session, uint32_t* tokens, size_t capacity,
                                      size_t* length) {
  return guarded([&] {
    const UsedSession used = use(session);
    return give(std::span<const uint32_t>(used->tokens), tokens, capacity, length);
  });
}
