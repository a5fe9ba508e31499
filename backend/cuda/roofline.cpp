// Measures what the GPU can do at most, with the loops of kernels/roofline.cu: the shortest of several
// runs, each long enough that its launch does not count.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/modules.h"
#include "cuda/stopwatch.h"

namespace akunu::cuda {
namespace {

// kernels/roofline.cu
constexpr uint32_t kBlockThreads = 256, kBlocksPerMultiprocessor = 8;
constexpr uint32_t kReadsTogether = 8, kOneRead = 16, kProducts = 8;
constexpr double kFloatOperations = 2 * kProducts;                      // of a thread, once
constexpr double kTileOperations = 2.0 * 16 * 8 * 16 * kProducts / 32;  // likewise

constexpr uint64_t kReadBytes = uint64_t{1} << 30;  // beyond every cache: the largest has 126 MB
constexpr uint32_t kRuns = 8;
constexpr double kLeastSeconds = 0.005;
constexpr std::chrono::seconds kLongestRead(60);

class Probes {
 public:
  explicit Probes(Opened& opened)
      : gpu_(opened.gpu),
        modules_(opened.modules),
        current_(opened.gpu),
        memory_(opened.gpu),
        watch_(opened.gpu, kLongestRead),
        block_(memory_, kReadBytes, "a measurement"),
        n_blocks_(kBlocksPerMultiprocessor *
                  static_cast<uint32_t>(gpu_.attribute(Attribute::multiprocessors))) {}

  double read_bytes_per_second() {
    const uint64_t together = uint64_t{n_threads()} * kReadsTogether * kOneRead;
    const uint64_t bytes = kReadBytes / together * together;
    return static_cast<double>(bytes) /
           shortest("probe_read", static_cast<uint32_t>(bytes / kOneRead));
  }

  double operations_per_second(const std::string& probe, double operations_of_thread) {
    uint32_t repeats = 1024;
    while (repeats < (1u << 24) && time(probe, repeats) < kLeastSeconds) repeats *= 2;
    return operations_of_thread * repeats * n_threads() / shortest(probe, repeats);
  }

 private:
  uint32_t n_threads() const { return n_blocks_ * kBlockThreads; }

  double time(const std::string& probe, uint32_t number) {
    Arguments arguments;
    struct {
      uint32_t number, padding[3];
    } const params{number, {}};
    arguments.params.set(params);
    arguments.slots[0] = arguments.slots[1] = block_.at();
    void* parameters[] = {&arguments};
    const LaunchConfig config{
        .grid = {n_blocks_, 1, 1}, .block = {kBlockThreads, 1, 1}, .stream = gpu_.steps()};
    const Function function = modules_.get(probe);
    return watch_.time([&] {
      gpu_.driver().check(gpu_.driver().launch(&config, function, parameters, nullptr),
                          "the launch of a measurement");
    });
  }

  double shortest(const std::string& probe, uint32_t number) {
    double best = std::numeric_limits<double>::infinity();
    for (uint32_t run = 0; run < kRuns; ++run) best = std::min(best, time(probe, number));
    return best;
  }

  const Gpu& gpu_;
  Modules& modules_;
  const Current current_;  // while the others live
  Memory memory_;
  Stopwatch watch_;
  OwnedBlock block_;
  uint32_t n_blocks_;
};

}  // namespace

Roofline measure_roofline(const DeviceOptions& options) {
  const ChipConfig chip = create_cuda_device(options)->chip();  // checks the options
  const std::shared_ptr<Opened> opened = open_gpu();
  Probes probes(*opened);
  Roofline roofline;
  roofline.level = chip.level;
  roofline.workers = chip.workers;
  roofline.buffer_bytes = kReadBytes;
  roofline.read_bytes_per_second = probes.read_bytes_per_second();
  roofline.float_operations_per_second =
      probes.operations_per_second("probe_floats", kFloatOperations);
  // Codes of quantised weights become floats.
  roofline.byte_operations_per_second = roofline.float_operations_per_second;
  roofline.bfloat_operations_per_second =
      probes.operations_per_second("probe_tiles", kTileOperations);
  return roofline;
}

}  // namespace akunu::cuda
