// How the C API runs texts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "akunu/akunu.h"
#include "capi/objects.h"

namespace akunu::capi {

// Throws what the arguments deserve, and what the scheduler throws.
std::shared_ptr<Generation> start(ModelObject& model, std::vector<uint32_t> prompt,
                                  const akunu_generate_options* options);

// Hands on tokens until the text is over, or the caller has enough. `chosen`, where it is not null,
// receives those that were handed on.
akunu_status run(ModelObject& model, std::vector<uint32_t> prompt,
                 const akunu_generate_options* options, akunu_token_callback callback,
                 void* user_data, akunu_generation_stats* stats,
                 std::vector<uint32_t>* chosen = nullptr);

}  // namespace akunu::capi
