// What the handles of the C API stand for.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capi/model_identity.h"
#include "files/gguf/gguf.h"
#include "inference/engine.h"
#include "text/tokenizer.h"
#include "transcription/speech_model.h"

namespace akunu::capi {

struct TokenizerObject {
  std::shared_ptr<const Tokenizer> tokenizer;
};

struct GgufObject {
  GgufFile file;
  std::mutex mutex = {};
  std::set<std::string> names =
      {};  // of tensors and types that callers were given, with a zero at the end
};

struct ModelObject {
  std::shared_ptr<Engine> engine;
  std::string path;
  std::vector<SeenFile> files = {};  // as they were before they were loaded

  // Read when it is first needed: who passes tokens does without. Throws what reading it throws.
  std::shared_ptr<const Tokenizer> tokenizer();
  // Of its files; made once, it reads all of them. Throws what `digest_of` throws.
  const std::string& digest();
  // Likewise what transcribing needs. Throws what `read_speech_model` throws.
  std::shared_ptr<const SpeechModel> speech();

 private:
  std::mutex mutex_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string digest_;
  std::shared_ptr<const SpeechModel> speech_;
};

// Of a GGUF file or a directory. Throws what reading it throws.
std::shared_ptr<const Tokenizer> read_tokenizer(const std::string& path);

}  // namespace akunu::capi
