#include "metal/chip.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace akunu::metal {
namespace {

constexpr double kChunkSeconds = 0.05;  // the longest that a chain of steps should last

}  // namespace

uint32_t least_cores(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, uint32_t>, 3> kTiers{
      {{"Ultra", 48}, {"Max", 24}, {"Pro", 14}}};
  for (const auto& [tier, cores] : kTiers)
    if (name.find(tier) != std::string::npos) return cores;
  return 7;
}

// M1 to M5 have 8 to 19 GB/s per core, in every tier and binning (M1 and M3 Pro the least, M5 with
// 8 cores the most). Of chips to come no table would say more than the mean does.
double memory_bandwidth(uint32_t cores) { return 12e9 * cores; }

ChipConfig describe_chip(const GpuFacts& facts) {
  const uint32_t cores = facts.cores > 0 ? facts.cores : least_cores(facts.name);
  ChipConfig chip;
  chip.name = facts.name;
  chip.workers = cores;
  chip.memory_bytes = facts.working_set_bytes;
  // A core does some 325 GFLOP/s at best and two thirds of it in a matmul, and reads 12 GB/s. 16 rows
  // per core take a little more than a second with eight billion weights, whatever the chip: as long
  // as a step may keep everybody waiting. Reading those weights is a twentieth of it on the smallest
  // chip, so more rows would gain little; from 512 on they would only cost scratch.
  constexpr uint32_t kRowsPerCore = 16, kTile = 32, kLeast = 96, kMost = 512;
  chip.max_prompt_rows = std::clamp(kRowsPerCore * cores / kTile * kTile, kLeast, kMost);
  // Rows that generate wait for the prompt rows beside them. A core reads 12 GB/s and does some 325
  // GFLOP/s: with 4.5 bits and two operations per weight and row, arithmetic takes as long as
  // reading the weights near 8 rows, so 32 make such a step some four times as long as one without.
  chip.max_mixed_rows = 32;
  // Logits are large (150,000 floats per row) and mostly wanted for few rows.
  chip.max_head_rows = 32;
  // Longer chains would only delay what waits to come in, and stops: the next chunk is encoded while
  // this one runs, and a command buffer costs tenths of a millisecond.
  chip.chain_steps = 16;
  chip.chain_bytes = static_cast<uint64_t>(kChunkSeconds * memory_bandwidth(cores));
  chip.submissions_ahead = 1;
  return chip;
}

}  // namespace akunu::metal
