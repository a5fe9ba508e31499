// The file of compiled kernels that the package akunu-cuda brings; backend/cuda/pack.py writes it.
//
// All numbers are little-endian. A head, n_images rows, then the images, each at a multiple of 64 bytes:
//   head: char magic[8] "akunuGPU", u32 version, u32 n_images, char id[64], char architectures[64]
//   row:  char name[48], u64 offset, u64 n_bytes
// Names are padded with zeros. `id` is a hash of the kernels' sources and of the kernel table. An engine built
// from other sources must not launch these kernels, because their parameters may differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda/modules.h"

namespace akunu::cuda {

class KernelFile {
 public:
  // Reads the file. Throws ModelFormatError, with the path and what to do, where it cannot be read, is
  // damaged, or has another id.
  KernelFile(const std::string& path, std::string_view id);
  KernelFile(const KernelFile&) = delete;
  KernelFile& operator=(const KernelFile&) = delete;

  std::span<const KernelImage> images() const { return images_; }
  std::string_view architectures() const { return architectures_; }

 private:
  std::string bytes_;  // of all of it; the images are views
  std::vector<KernelImage> images_;
  std::string_view architectures_;
};

// The file that this process takes its kernels from; set before the first device is asked for. Where
// AKUNU_CUDA_KERNELS is set, it names another.
void use_kernel_file(std::string path);

}  // namespace akunu::cuda
