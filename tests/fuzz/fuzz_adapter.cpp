// Any bytes either are an adapter that a model loads and runs with, or are refused with one of our
// errors. Bytes that begin with "GGUF" are a file of llama.cpp's kind; others are the directory of
// peft: adapter_config.json up to the first zero byte, adapter_model.safetensors behind it.
#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "files/adapters/source.h"
#include "inference/scheduler.h"
#include "registry.h"

namespace akunu {
namespace {

constexpr std::chrono::milliseconds kWait{60'000};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "an adapter was accepted although this does not hold: %s\n", what);
  std::abort();
}

// What `run` throws is one of ours, in one line, and of a size that one can read.
template <class Run>
bool runs(Run&& run) {
  try {
    run();
    return true;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 4096, "a message is short");
    for (const char letter : message)
      require(static_cast<unsigned char>(letter) >= 0x20, "a message is one printable line");
    return false;
  }
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code error;
  std::filesystem::remove(path, error);  // some file systems write out a file that is replaced
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The bytes as the files that an adapter is read from.
class AdapterFiles {
 public:
  AdapterFiles() {
    std::string folder = std::filesystem::temp_directory_path() / "fuzz_adapter_XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
  }
  ~AdapterFiles() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  AdapterFiles(const AdapterFiles&) = delete;
  AdapterFiles& operator=(const AdapterFiles&) = delete;

  std::string put(std::string_view bytes) const {
    if (bytes.starts_with("GGUF")) {
      write(folder_ / "adapter.gguf", bytes);
      return folder_ / "adapter.gguf";
    }
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    write(folder_ / "adapter_config.json", bytes.substr(0, end));
    write(folder_ / "adapter_model.safetensors", bytes.substr(std::min(end + 1, bytes.size())));
    return folder_;
  }

 private:
  std::filesystem::path folder_;
};

std::shared_ptr<Model> load(const std::string& adapter) {
  LoadOptions options;
  options.context = 16;
  if (!adapter.empty()) options.adapters.push_back({"fuzzed", adapter});
  return Model::load(AKUNU_FUZZ_BASE, create_device("cpu", {.threads = 1}), options);
}

void check(const AdapterSource& source) {
  require(!source.matrices.empty(), "it has matrices");
  for (const AdapterMatrices& each : source.matrices) {
    require(each.rank() == each.up.k(), "both halves have one rank");
    for (const SourceTensor* half : {&each.down, &each.up})
      require(half->parts[0].bytes.size() == half->rows() * row_bytes(half->format, half->k()),
              "a matrix has the bytes of its rows");
  }
}

void run(Model& model) {
  Scheduler scheduler(model);
  runs([&] {
    const auto task = scheduler.logits(
        {.tokens = {1, 2, 3}, .chunks = {}, .adapters = {{.adapter = 0, .weight = 1.0f}}});
    require(task->wait(kWait), "logits arrive");
  });
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const akunu::AdapterFiles files;
  static const auto base = akunu::load("");
  const std::string path = files.put({reinterpret_cast<const char*>(data), size});
  const bool is_read = akunu::runs([&] {
    akunu::check(
        akunu::open_adapter({"fuzzed", path}, base->context.weights->config, base->context.arch()));
  });
  if (is_read) akunu::runs([&] { akunu::run(*akunu::load(path)); });
  return 0;
}
