// Where the time of a step goes: its commands one after the other, each timed alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inference/model.h"

namespace akunu {

struct ProfileRequest {
  uint32_t n_prompt = 0;  // rows of a prompt in one step; 0: one row that generates
  uint32_t depth = 0;     // positions before them
  uint32_t repetitions = 5;
  std::function<void()> check;  // called between steps; what it throws ends the profile
};

struct ProfiledCommand {
  std::string label;   // "layer 3 attention"
  double seconds = 0;  // the median of the repetitions
};

// The commands of a step, in order; what is before it is computed first. The model must have no scheduler, and
// nothing else may use it. Throws ArgumentError where the step does not fit into the context.
std::vector<ProfiledCommand> profile(Model& model, const ProfileRequest& request);

}  // namespace akunu
