// The C API's text: tokens of a text, and the text of tokens.
#include <filesystem>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "files/model_source.h"
#include "text/directory_vocabulary.h"
#include "text/gguf_vocabulary.h"

namespace akunu::capi {

std::shared_ptr<const Tokenizer> read_tokenizer(const std::string& path) {
  return std::make_shared<const Tokenizer>(is_hf_model(path) || std::filesystem::is_directory(path)
                                               ? read_directory_vocabulary(path)
                                               : read_vocabulary(GgufFile::open(path)));
}

std::shared_ptr<const Tokenizer> ModelObject::tokenizer() {
  const std::lock_guard lock(mutex_);
  if (!tokenizer_) tokenizer_ = read_tokenizer(path);
  return tokenizer_;
}

namespace {

std::shared_ptr<const Tokenizer> tokenizer_of(akunu_tokenizer handle) {
  return object_of<TokenizerObject>(handle)->tokenizer;
}

akunu_tokenizer handle_of(std::shared_ptr<const Tokenizer> tokenizer) {
  return new_handle<akunu_tokenizer>(
      std::make_shared<TokenizerObject>(TokenizerObject{std::move(tokenizer)}));
}

}  // namespace
}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_open_tokenizer(const char* path, akunu_tokenizer* tokenizer) {
  return guarded([&] {
    need(path, "path");
    need(tokenizer, "tokenizer");
    *tokenizer = nullptr;
    *tokenizer = handle_of(read_tokenizer(path));
    return AKUNU_OK;
  });
}

akunu_status akunu_get_tokenizer(akunu_model model, akunu_tokenizer* tokenizer) {
  return guarded([&] {
    need(tokenizer, "tokenizer");
    *tokenizer = nullptr;
    *tokenizer = handle_of(object_of<ModelObject>(model)->tokenizer());
    return AKUNU_OK;
  });
}

akunu_status akunu_close_tokenizer(akunu_tokenizer tokenizer) {
  return guarded([&] {
    take_object<TokenizerObject>(tokenizer);
    return AKUNU_OK;
  });
}

akunu_status akunu_get_vocab_size(akunu_tokenizer tokenizer, uint32_t* vocab_size) {
  return guarded([&] {
    need(vocab_size, "vocab_size");
    *vocab_size = tokenizer_of(tokenizer)->size();
    return AKUNU_OK;
  });
}

akunu_status akunu_encode(akunu_tokenizer tokenizer, const char* text, size_t text_length,
                          bool add_special, bool parse_special, uint32_t* tokens, size_t capacity,
                          size_t* length) {
  return guarded([&] {
    if (text_length > 0) need(text, "text");
    const std::string_view view(text_length > 0 ? text : "", text_length);
    const std::vector<uint32_t> ids =
        tokenizer_of(tokenizer)->encode(view, add_special, parse_special);
    return give(std::span<const uint32_t>(ids), tokens, capacity, length);
  });
}

akunu_status akunu_decode(akunu_tokenizer tokenizer, const uint32_t* tokens, size_t n_tokens,
                          bool skip_special, char* buffer, size_t capacity, size_t* length) {
  return guarded([&] {
    if (n_tokens > 0) need(tokens, "tokens");
    const std::shared_ptr<const Tokenizer> known = tokenizer_of(tokenizer);
    TextStream stream(*known, skip_special);
    std::string text;
    for (size_t i = 0; i < n_tokens; ++i) text += stream.push(tokens[i]);
    text += stream.finish();
    return give_text(text, buffer, capacity, length);
  });
}

akunu_status akunu_token_bytes(akunu_tokenizer tokenizer, uint32_t token, char* buffer,
                               size_t capacity, size_t* length) {
  return guarded([&] {
    return give_text(tokenizer_of(tokenizer)->token_bytes(token), buffer, capacity, length);
  });
}

akunu_status akunu_get_stop_ids(akunu_tokenizer tokenizer, uint32_t* tokens, size_t capacity,
                                size_t* length) {
  return guarded([&] {
    const std::shared_ptr<const Tokenizer> known = tokenizer_of(tokenizer);
    return give(std::span<const uint32_t>(known->vocabulary().stops), tokens, capacity, length);
  });
}

akunu_status akunu_get_chat_template(akunu_tokenizer tokenizer, char* buffer, size_t capacity,
                                     size_t* length) {
  return guarded([&] {
    return give_text(tokenizer_of(tokenizer)->vocabulary().chat_template, buffer, capacity, length);
  });
}
