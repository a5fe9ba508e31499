// The C API's profile of a step.
#include "inference/profile.h"

#include <algorithm>

#include "capi/border.h"
#include "registry.h"

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_profile(const char* path, const akunu_profile_options* options,
                           akunu_profile_callback callback, void* user_data) {
  return guarded([&] {
    need(path, "path");
    if (callback == nullptr) throw ArgumentError("callback is null");
    const akunu_profile_options given = taken(options, "options");
    const uint64_t positions = uint64_t{given.depth} + std::max(1u, given.n_prompt);
    if (positions > UINT32_MAX)
      throw ArgumentError("options.depth and options.n_prompt are " + std::to_string(positions) +
                          " positions together, which no model has");
    const std::unique_ptr<Model> model = Model::load(
        path,
        create_device(given.device == nullptr ? "auto" : given.device, {.threads = given.threads}),
        {.context = static_cast<uint32_t>(positions), .kv_memory = std::nullopt});
    const uint32_t repetitions = given.repetitions == 0 ? 5 : given.repetitions;
    for (const ProfiledCommand& command :
         profile(*model, {given.n_prompt, given.depth, repetitions, [] {}}))
      if (!callback(command.label.c_str(), command.seconds, user_data)) break;
    return AKUNU_OK;
  });
}
