// Every tuning number of a device, derived from what it reports and never set by a user.
#pragma once

#include <cstdint>
#include <string>

#include "core/kinds.h"

namespace akunu {

struct ChipConfig {
  std::string name;   // "Intel(R) Xeon(R) Processor"
  std::string level;  // "avx2", "generic": which kernels run, and in `reason` why
  std::string reason;
  uint32_t workers = 1;       // threads, or cores of a GPU
  uint32_t processors = 0;    // that the threads may run on; 0 for a GPU
  uint64_t memory_bytes = 0;  // that the device can use in all; 0: the system does not tell
  uint32_t max_texts = 64;    // under way at a time
  // Rows that generate in one pass over the weights.
  uint32_t generated_rows_per_pass = kMaxFewRows;
  uint32_t max_prompt_rows = 512;  // prompt rows in one step; bounds the scratch memory
  uint32_t max_mixed_rows = 64;    // of them beside rows that are generating, which wait for them
  uint32_t max_crowded_rows = 0;   // the same where more texts wait to begin than generate
  uint32_t max_head_rows = 32;     // rows of a prompt with logits in one step
  uint32_t chain_steps = 1;        // steps per submission when nothing else waits, at most
  // Bytes of weights that the steps of one submission may read together: what bounds how long it
  // lasts, and so how long everybody else waits.
  uint64_t chain_bytes = UINT64_MAX;
  uint32_t submissions_ahead = 0;  // made while another is running, when nothing else waits
};

}  // namespace akunu
