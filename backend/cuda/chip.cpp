#include "cuda/chip.h"

#include <algorithm>

namespace akunu::cuda {
namespace {

constexpr double kChunkSeconds = 0.05;  // the longest that a chain of steps should last

// Rows of a prompt for each multiprocessor: a matmul of 1,024 columns then has two tiles of 128 x 64 for each of
// them, which hide one another's waits. More would only cost scratch, which is some 0.2 MB a row for an 8B model.
constexpr uint32_t kRowsPerMultiprocessor = 16, kFewestRows = 512, kMostRows = 2048;
constexpr uint32_t kTileRows = 128;
// Likewise of those beside rows that generate, which wait for them: a 8B model's 512 take 40 ms on an H200.
constexpr uint32_t kMixedRowsPerMultiprocessor = 4, kFewestMixedRows = 64;

// A text under way has a row of logits and page tables, some megabytes, and needs its part of the cache, some hundred.
constexpr uint64_t kMemoryOfText = 256 << 20;
constexpr uint32_t kFewestTexts = 64, kMostTexts = 512;

}  // namespace

double memory_bandwidth(const GpuFacts& facts) {
  // Two transfers a clock. The guess is that of an A100 or an RTX 4090: 8 to 20 GB/s for each multiprocessor.
  const double told = 2e3 * facts.memory_clock_kilohertz * facts.memory_bus_bits / 8;
  return told > 0 ? told : 10e9 * facts.multiprocessors;
}

ChipConfig describe_chip(const GpuFacts& facts) {
  ChipConfig chip;
  chip.name = facts.name;
  chip.workers = facts.multiprocessors;
  chip.memory_bytes = facts.memory_bytes;
  chip.max_prompt_rows =
      std::clamp(kRowsPerMultiprocessor * facts.multiprocessors / kTileRows * kTileRows,
                 kFewestRows, kMostRows);
  chip.max_mixed_rows =
      std::clamp(kMixedRowsPerMultiprocessor * facts.multiprocessors / kTileRows * kTileRows,
                 kFewestMixedRows, chip.max_prompt_rows);
  chip.max_crowded_rows = chip.max_prompt_rows;
  chip.max_texts = static_cast<uint32_t>(
      std::clamp<uint64_t>(facts.memory_bytes / kMemoryOfText, kFewestTexts, kMostTexts));
  // All of them: a kernel that takes fewer rows is launched for some after the others.
  chip.generated_rows_per_pass = kMostTexts;
  chip.max_head_rows = 32;
  // A step of a small model is a fraction of a millisecond, and a submission costs some twenty
  // microseconds of the host, so chains may be long; longer ones would only delay who waits to come in.
  chip.chain_steps = 32;
  chip.chain_bytes = static_cast<uint64_t>(kChunkSeconds * memory_bandwidth(facts));
  chip.submissions_ahead = 1;
  return chip;
}

}  // namespace akunu::cuda
