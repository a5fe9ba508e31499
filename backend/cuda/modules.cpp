#include "cuda/modules.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "core/home_process.h"

namespace akunu::cuda {
namespace {

// What stays open. Never destroyed: at the end of a process the driver may be gone before it.
struct Kept {
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<Opened>> opened;  // by ordinal
  HomeProcess home;                                    // of `opened`: a forked child has none of it
};
Kept& kept() {
  static Kept* const it = new Kept;
  return *it;
}

}  // namespace

Modules::Modules(const Gpu& gpu) : gpu_(gpu) {
  const Current current(gpu);
  if (!kernel_images().empty()) load(kernel_images().front());
}

Modules::~Modules() {
  if (gpu_.driver().context_push(gpu_.context()) != kSuccess) return;
  for (Module module : modules_) static_cast<void>(gpu_.driver().module_unload(module));
  Context before = nullptr;
  static_cast<void>(gpu_.driver().context_pop(&before));
}

void Modules::load(const KernelImage& image) {
  Module module = nullptr;
  const Result result = gpu_.driver().module_load(&module, image.bytes);
  if (result != kSuccess)
    throw DeviceError(gpu_.driver().describe(
        result, "loading the kernels " + std::string(image.name) + " (made for " +
                    std::string(kernel_architectures()) + ") for " + gpu_.name()));
  modules_.push_back(module);
}

Function Modules::get(const std::string& name) {
  Function& known = functions_[name];
  if (known != nullptr) return known;
  while (modules_.size() < kernel_images().size()) load(kernel_images()[modules_.size()]);
  const std::string symbol = "akunu_" + name;
  for (Module module : modules_)
    if (gpu_.driver().module_function(&known, module, symbol.c_str()) == kSuccess) {
      allow_shared_memory(known);
      return known;
    }
  functions_.erase(name);
  throw UnsupportedModelError("the kernel " + name + " is not in this build (" +
                              std::to_string(modules_.size()) + " files of kernels for " +
                              std::string(kernel_architectures()) + "); install akunu again");
}

// Tiles of matmuls take more than the 48 KB that a function has without being asked.
void Modules::allow_shared_memory(Function function) {
  const Driver& driver = gpu_.driver();
  int32_t own = 0;
  driver.check(driver.function_attribute(&own, FunctionAttribute::static_shared_bytes, function),
               "asking for a kernel's shared memory");
  const int32_t most = gpu_.attribute(Attribute::shared_bytes_of_block);
  driver.check(
      driver.set_function_attribute(function, FunctionAttribute::dynamic_shared_bytes, most - own),
      "allowing a kernel the GPU's shared memory");
}

std::shared_ptr<Opened> open_gpu(uint32_t ordinal) {
  const std::lock_guard lock(kept().mutex);
  if (kept().home.is_another()) {
    static_cast<void>(new auto(std::move(kept().opened)));  // the parent's
    kept().opened.clear();
    kept().home = HomeProcess();
  }
  std::shared_ptr<Opened>& opened = kept().opened[ordinal];
  if (opened == nullptr) opened = std::make_shared<Opened>(ordinal);
  return opened;
}

void forget_gpu(uint32_t ordinal) {
  const std::lock_guard lock(kept().mutex);
  kept().opened.erase(ordinal);
}

}  // namespace akunu::cuda
