// A layer that scans (Mamba-2): projections around a convolution along the text, the recurrence of a state,
// and a norm behind a gate.
#pragma once

#include <string>

#include "core/recurrent_layer.h"

namespace akunu {

struct ScanLayer {
  const Scan& is;
  std::string name, label;  // how tensors ("layers.3.scan.") and commands ("layer 3 ") begin
  ValueId projected;        // [projected_dim]: gate; x, B and C; steps of time
  float norm_epsilon;
  RecurrentCaches caches;
};

// Returns what the scan makes of a row, [inner_dim], in the kind that the projection of its output wants.
ValueId emit_scan(Emitter& emitter, const ScanLayer& layer);

}  // namespace akunu
