#include "cpu/roofline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "core/error.h"
#include "cpu/chip.h"
#include "cpu/cpu_device.h"
#include "cpu/isa_level.h"
#include "cpu/memory.h"
#include "cpu/thread_pool.h"

namespace akunu::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kLeastBuffer = 64 * kMiB, kUsualBuffer = 256 * kMiB,
                   kLargestBuffer = 1024 * kMiB;
constexpr double kSecondsPerLimit = 0.5;
constexpr uint32_t kLeastRuns = 5;

// A measurement is cut into this many pieces per worker, taken as workers get done: as commands are.
constexpr uint32_t kPiecesPerWorker = 16;

struct alignas(64) PieceResult {
  float value = 0;
  uint64_t operations = 0;
};

// Runs `job(piece)` for every piece; returns the seconds until all were done.
template <class Job>
double timed(ThreadPool& pool, uint32_t n_pieces, Job& job) {
  struct Work {
    Job& job;
    const uint32_t n_pieces;
    std::atomic<uint32_t> next{0};
  } work{job, n_pieces};
  const uint64_t n_slices = n_pieces;
  const auto start = Clock::now();
  pool.run(
      [](void* context, uint32_t, uint32_t) {
        auto& shared = *static_cast<Work*>(context);
        uint64_t n_done = 0;
        for (uint32_t piece; (piece = shared.next.fetch_add(1)) < shared.n_pieces; ++n_done)
          shared.job(piece);
        return n_done;
      },
      &work, std::span(&n_slices, 1));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The shortest of several runs: the others were disturbed.
template <class Job>
double shortest(ThreadPool& pool, uint32_t n_pieces, Job& job) {
  double best = timed(pool, n_pieces, job), total = best;
  for (uint32_t runs = 1; runs < kLeastRuns || total < kSecondsPerLimit; ++runs) {
    const double seconds = timed(pool, n_pieces, job);
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

uint64_t buffer_size() {
  // Twice the last cache: what the first half leaves there does not help the next pass.
  const uint64_t wanted = std::clamp(2 * last_cache_bytes(), kUsualBuffer, kLargestBuffer);
  const uint64_t allowed = available_memory().value_or(4 * wanted) / 4;
  if (allowed < kLeastBuffer)
    throw OutOfMemoryError("measuring the bandwidth needs " +
                           std::to_string(4 * kLeastBuffer / kMiB) + " MiB of memory, " +
                           std::to_string(4 * allowed / kMiB) + " MiB are available");
  return std::min(wanted, allowed);
}

double measure_read(ThreadPool& pool, const Probes& probes, uint64_t bytes) {
  const MemoryBlock block(bytes);
  if (block.data() == nullptr)
    throw OutOfMemoryError("the system refuses a buffer of " + std::to_string(bytes / kMiB) +
                           " MiB");
  auto* const values = reinterpret_cast<float*>(block.data());
  const uint32_t n_pieces = pool.n_workers() * kPiecesPerWorker;
  const uint64_t share = bytes / sizeof(float) / n_pieces / kProbeStep * kProbeStep;
  std::vector<PieceResult> results(n_pieces);
  // Memory that nobody has written is one page of zeros.
  auto fill = [&](uint32_t piece) { std::fill_n(values + share * piece, share, 1.0f); };
  timed(pool, n_pieces, fill);
  auto read = [&](uint32_t piece) {
    results[piece].value = probes.read(values + share * piece, share);
  };
  const double seconds = shortest(pool, n_pieces, read);
  return static_cast<double>(share * sizeof(float) * n_pieces) / seconds;
}

double measure_multiply(ThreadPool& pool, uint64_t (*multiply)(uint64_t, float*)) {
  const uint32_t n_pieces = pool.n_workers() * kPiecesPerWorker;
  std::vector<PieceResult> results(n_pieces);
  uint64_t repeats = 4;
  auto job = [&](uint32_t piece) {
    results[piece].operations = multiply(repeats, &results[piece].value);
  };
  // Long enough that starting the workers does not count.
  while (timed(pool, n_pieces, job) < 0.02) repeats *= 2;
  const double seconds = shortest(pool, n_pieces, job);
  uint64_t operations = 0;
  for (const PieceResult& result : results) operations += result.operations;
  return static_cast<double>(operations) / seconds;
}

}  // namespace

Roofline measure_roofline(const DeviceOptions& options) {
  const uint32_t workers = create_cpu_device(options)->chip().workers;  // checks the options
  const IsaChoice choice = choose_isa_level(options.isa);
  const Probes probes = choice.level->probes();
  ThreadPool pool(workers);
  Roofline roofline;
  roofline.level = choice.level->name;
  roofline.workers = workers;
  roofline.buffer_bytes = buffer_size();
  roofline.read_bytes_per_second = measure_read(pool, probes, roofline.buffer_bytes);
  roofline.float_operations_per_second = measure_multiply(pool, probes.multiply_floats);
  roofline.byte_operations_per_second = measure_multiply(pool, probes.multiply_bytes);
  if (choice.level->prompts_with_halves == ActivationKind::q16_32)
    roofline.pair_operations_per_second = measure_multiply(pool, probes.multiply_pairs);
  if (probes.multiply_bfloats != nullptr)
    roofline.bfloat_operations_per_second = measure_multiply(pool, probes.multiply_bfloats);
  return roofline;
}

std::vector<Level> levels() {
  std::vector<Level> levels;
  for (const IsaLevel& level : isa_levels())
    if (level.is_built() || !level.is_emulated)
      levels.push_back({level.name, level.needs, level.is_available(), level.is_built()});
  return levels;
}

}  // namespace akunu::cpu
