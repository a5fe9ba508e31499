#include "cuda/chip.h"

namespace akunu::cuda {
namespace {

constexpr double kChunkSeconds = 0.05;  // the longest that a chain of steps should last

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
  // As many rows as keep every multiprocessor busy with tiles of 64 x 64; more would only cost scratch.
  chip.max_prompt_rows = 512;
  // Rows that generate wait for the prompt rows beside them.
  chip.max_mixed_rows = 64;
  chip.max_head_rows = 32;
  // A step of a small model is a fraction of a millisecond, and a submission costs some twenty
  // microseconds of the host, so chains may be long; longer ones would only delay who waits to come in.
  chip.chain_steps = 32;
  chip.chain_bytes = static_cast<uint64_t>(kChunkSeconds * memory_bandwidth(facts));
  chip.submissions_ahead = 1;
  return chip;
}

}  // namespace akunu::cuda
