#pragma once

#include <cstdint>

namespace akunu {

// Alternating updates (AltUp, Baykal et al., 2023): the residual is several rows side by side. Before a
// layer all of them are predicted, from each other; the layer computes one; what it changed corrects all.
// How much, a router says, of the row at hand.
struct ResidualStreams {
  uint32_t n = 0;
  uint32_t active = 0;  // the one that layers compute
  bool is_scaled =
      true;  // what a layer's own embedding is multiplied with, by numbers of the layer
};

}  // namespace akunu
