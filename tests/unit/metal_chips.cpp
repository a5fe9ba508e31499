// What is derived from what a GPU reports: over the chips there are, and some there are not yet.
#include <algorithm>
#include <array>

#include "metal/chip.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using metal::describe_chip;

constexpr uint64_t kGigabyte = uint64_t{1} << 30;

// As the system names them. The memory is the smallest that is sold with the chip; a GPU may use two
// thirds of up to 36 GB and three quarters of more.
struct Chip {
  const char* name;
  uint32_t cores;
  uint64_t memory_gigabytes;
  double bandwidth;  // GB/s, as Apple states it
};

constexpr std::array kChips{
    Chip{"Apple M1", 7, 8, 68},          Chip{"Apple M1", 8, 8, 68},
    Chip{"Apple M1 Pro", 14, 16, 200},   Chip{"Apple M1 Pro", 16, 16, 200},
    Chip{"Apple M1 Max", 24, 32, 400},   Chip{"Apple M1 Max", 32, 32, 400},
    Chip{"Apple M1 Ultra", 48, 64, 800}, Chip{"Apple M1 Ultra", 64, 64, 800},
    Chip{"Apple M2", 8, 8, 100},         Chip{"Apple M2", 10, 8, 100},
    Chip{"Apple M2 Pro", 16, 16, 200},   Chip{"Apple M2 Pro", 19, 16, 200},
    Chip{"Apple M2 Max", 30, 32, 400},   Chip{"Apple M2 Max", 38, 32, 400},
    Chip{"Apple M2 Ultra", 60, 64, 800}, Chip{"Apple M2 Ultra", 76, 64, 800},
    Chip{"Apple M3", 8, 8, 102},         Chip{"Apple M3", 10, 8, 102},
    Chip{"Apple M3 Pro", 14, 18, 154},   Chip{"Apple M3 Pro", 18, 18, 154},
    Chip{"Apple M3 Max", 30, 36, 307},   Chip{"Apple M3 Max", 40, 48, 410},
    Chip{"Apple M3 Ultra", 60, 96, 819}, Chip{"Apple M3 Ultra", 80, 96, 819},
    Chip{"Apple M4", 8, 16, 120},        Chip{"Apple M4", 10, 16, 120},
    Chip{"Apple M4 Pro", 16, 24, 273},   Chip{"Apple M4 Pro", 20, 24, 273},
    Chip{"Apple M4 Max", 32, 36, 410},   Chip{"Apple M4 Max", 40, 48, 546},
    Chip{"Apple M5", 8, 16, 153},        Chip{"Apple M5", 10, 16, 153},
};

uint64_t working_set_of(const Chip& chip) {
  const uint64_t bytes = chip.memory_gigabytes * kGigabyte;
  return chip.memory_gigabytes <= 36 ? bytes / 3 * 2 : bytes / 4 * 3;
}

void test_known_chips() {
  for (const Chip& chip : kChips) {
    const std::string who =
        std::string(chip.name) + " with " + std::to_string(chip.cores) + " cores";
    const ChipConfig config = describe_chip({chip.name, chip.cores, working_set_of(chip)});
    check(config.name == chip.name && config.workers == chip.cores, who + " is itself");
    check(config.memory_bytes == working_set_of(chip), who + " has its memory");
    // Two operations per weight and row, at two thirds of the 325 GFLOP/s of a core.
    const double step = 2 * 8e9 * config.max_prompt_rows / (chip.cores * 217e9);
    check(config.max_prompt_rows % 32 == 0 && step < 1.3 &&
              (step > 0.9 || config.max_prompt_rows == 512),
          who + ": a prompt step lasts " + std::to_string(step) + " s");
    check(
        config.max_mixed_rows == 32 && config.max_head_rows == 32 && config.submissions_ahead == 1,
        who + " has the rows of all");
    // What a chain may read lasts 50 ms, as near as the rule knows the bandwidth.
    const double seconds = static_cast<double>(config.chain_bytes) / (chip.bandwidth * 1e9);
    check(config.chain_steps == 16 && seconds > 0.03 && seconds < 0.075,
          who + ": a chain lasts " + std::to_string(seconds) + " s");
    const double guessed = metal::memory_bandwidth(chip.cores) / (chip.bandwidth * 1e9);
    check(guessed > 0.6 && guessed < 1.5,
          who + ": bandwidth is guessed as " + std::to_string(guessed) + " times what it is");
    check(metal::least_cores(chip.name) <= chip.cores, who + ": no fewer cores were ever sold");
  }
}

void test_unknown_chips() {
  const ChipConfig future = describe_chip({"Apple M9 Max", 64, 192 * kGigabyte}),
                   small = describe_chip({"Apple M9", 10, 16 * kGigabyte});
  check(future.workers == 64 && future.chain_bytes > 6 * small.chain_bytes,
        "a chip to come goes by its cores");
  const ChipConfig quiet = describe_chip({"Apple M4 Pro", 0, 16 * kGigabyte});
  check(quiet.workers == 14, "where the system tells no cores, the fewest of that name");
  check(describe_chip({"Apple Paravirtual device", 0, 0}).workers == 7,
        "the GPU of a virtual machine is taken for the smallest");
  check(describe_chip({"", 0, 0}).chain_bytes > 0, "nothing at all is a chip too");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_known_chips();
  test_unknown_chips();
  return summary();
}
