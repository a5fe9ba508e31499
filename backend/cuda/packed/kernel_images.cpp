// The kernels of a program that has none inside: those of a file.
#include <cstdlib>
#include <mutex>

#include "cuda/packed/kernel_file.h"

namespace akunu::cuda {
namespace {

struct Chosen {
  std::mutex mutex;
  std::string path;
};
Chosen& chosen() {
  static Chosen* const it = new Chosen;
  return *it;
}

// Read when first asked for, and kept: the driver may read an image at any time.
const KernelFile* kernel_file() {
  static const KernelFile* const it = []() -> const KernelFile* {
    const char* const set = std::getenv("AKUNU_CUDA_KERNELS");
    const std::lock_guard lock(chosen().mutex);
    const std::string path = set != nullptr ? set : chosen().path;
    return path.empty() ? nullptr : new KernelFile(path, AKUNU_CUDA_KERNEL_ID);
  }();
  return it;
}

}  // namespace

void use_kernel_file(std::string path) {
  const std::lock_guard lock(chosen().mutex);
  chosen().path = std::move(path);
}

std::span<const KernelImage> kernel_images() {
  const KernelFile* const file = kernel_file();
  return file == nullptr ? std::span<const KernelImage>() : file->images();
}
std::string_view kernel_architectures() {
  const KernelFile* const file = kernel_file();
  return file == nullptr ? std::string_view() : file->architectures();
}

}  // namespace akunu::cuda
