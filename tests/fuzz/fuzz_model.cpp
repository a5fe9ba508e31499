// Any bytes either are a model that can be loaded and run, or are refused with one of our errors.
// Where "GGUF" appears again in the bytes, a second file begins: files together are the parts of a
// split model.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "files/gguf/model.h"
#include "files/gguf/source.h"
#include "inference/scheduler.h"
#include "models/common/describe.h"
#include "registry.h"

namespace akunu {
namespace {

constexpr std::chrono::milliseconds kWait{60'000};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a model was accepted although this does not hold: %s\n", what);
  std::abort();
}

// What `run` throws is one of ours, in one line, and of a size that one can read.
template <class Run>
void refused_or(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 4096, "a message is short");
    for (const char letter : message)
      require(static_cast<unsigned char>(letter) >= 0x20, "a message is one printable line");
  }
}

// The bytes as a file that can be opened by a path.
class MemoryFile {
 public:
  std::string write(std::span<const std::byte> bytes) const {
    if (ftruncate(descriptor_, 0) != 0 ||
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  const int descriptor_ = memfd_create("fuzz", 0);
};

// What a text of a speech model is of; null of other models.
std::shared_ptr<const SpeechWindow> some_window(const Model& model) {
  if (!model.context.arch().audio) return nullptr;
  const AudioEncoder& audio = *model.context.arch().audio;
  const auto window = std::make_shared<SpeechWindow>();
  window->id = 1;
  window->frames.assign(uint64_t{audio.n_frames()} * audio.n_mels, 0.5f);
  return window;
}

void load_and_run(const std::string& path, bool choose_context) {
  LoadOptions options;
  if (choose_context)
    options.context = 16;
  else
    options.kv_memory = 1 << 20;
  const auto model = Model::load(path, create_device("cpu", {.threads = 1}), options);
  require(model->context.n_positions() > 0 && model->context.weights->config.vocab_size > 0,
          "there is something to run");
  Scheduler scheduler(*model);
  const uint32_t last = model->context.weights->config.vocab_size - 1;
  const std::shared_ptr<const SpeechWindow> window = some_window(*model);
  refused_or([&] {
    const auto task = scheduler.logits({.tokens = {last, 0}, .chunks = {}, .window = window});
    require(task->wait(kWait), "logits arrive");
  });
  refused_or([&] {
    const auto generation = scheduler.generate(
        {.prompt = {0, last}, .max_tokens = 3, .stop_ids = {}, .sampling = {}, .window = window});
    std::array<uint32_t, 4> tokens{};
    while (const size_t n = generation->next(tokens, kWait).value_or(0))
      for (size_t i = 0; i < n; ++i) require(tokens[i] <= last, "tokens are of the vocabulary");
    require(generation->reason() != FinishReason::none, "a text ends");
  });
}

std::vector<std::span<const std::byte>> split_at_magic(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::span<const std::byte>> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("GGUF", begin + 1), text.size());
    parts.push_back(bytes.subspan(begin, end - begin));
    begin = end;
  }
  return parts;
}

// The tensor's bytes are those of its rows, and lie in `bytes`.
void check_part(const SourceTensor& tensor, std::span<const std::byte> bytes) {
  const std::span<const std::byte> part = tensor.parts[0].bytes;
  require(part.size() == tensor.rows() * row_bytes(tensor.format, tensor.k()),
          "a weight has the bytes of its rows");
  require(part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size(),
          "they are those of the file");
}

void join_and_check(std::span<const std::byte> bytes) {
  std::vector<GgufFile> parts;
  for (const std::span<const std::byte> part : split_at_magic(bytes))
    parts.push_back(GgufFile::parse(part, "fuzz-" + std::to_string(parts.size())));
  size_t n_tensors = 0;
  for (const GgufFile& part : parts) n_tensors += part.tensors().size();
  const GgufFile file = GgufFile::join(std::move(parts));
  require(file.tensors().size() == n_tensors, "all tensors are there");
  for (const GgufTensor& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor, "a tensor is found under its name");
    const std::span<const std::byte> data = file.tensor_bytes(tensor);
    require(data.data() >= bytes.data() && data.data() + data.size() <= bytes.data() + bytes.size(),
            "its data is in one of the parts");
    refused_or([&] { check_part(gguf_tensor(file, tensor), data); });
  }
  describe(read_config(file));
  for (const SourceTensor& tensor : gguf_source(file).tensors) check_part(tensor, bytes);
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const akunu::MemoryFile file;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  akunu::refused_or([&] { akunu::join_and_check(bytes); });
  const std::string path = file.write(bytes);
  akunu::refused_or([&] { akunu::load_and_run(path, size % 2 == 0); });
  return 0;
}
