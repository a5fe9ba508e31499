// A mixture of experts: a feed-forward network that is many, of which a router chooses some for each row.
#pragma once

#include <cstdint>

namespace akunu {

// How a router's logits become weights of experts. chosen: softmax of the chosen ones' alone.
enum class Scoring : uint8_t { softmax, chosen, sigmoid };

struct Experts {
  uint32_t n = 0;
  uint32_t n_chosen = 0;
  uint32_t dim = 0;         // of each
  uint32_t shared_dim = 0;  // of one more, gated too, that all rows go through; 0: there is none
  Scoring scoring = Scoring::softmax;
  bool normalised = false;  // the weights of a row's experts are divided by their sum
  float scale = 1;          // of those weights
  // Groups of neighbouring experts; a row's experts are of its best groups.
  uint32_t n_groups = 1;
  uint32_t n_groups_chosen = 1;
  uint32_t group_best = 1;  // a group's score is the sum of this many of its best experts
  // The layer has a dense network, too. Each of the two has a norm before and after it; the router has its own norm,
  // and its logits are multiplied by a number.
  bool beside_dense = false;
  float router_scale = 1;
  // Where there is a limit, experts compute clamp(gate) * sigmoid(alpha * clamp(gate)) * (clamp(up) + 1).
  float limit = 0;
  float alpha = 0;
};

}  // namespace akunu
