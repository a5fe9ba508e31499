// A residual of several streams (AltUp, Baykal et al., 2023): a row is as many rows side by side. Each layer
// computes one of them. Before it all are predicted, from each other, and behind it all are corrected.
#pragma once

#include <string>

#include "core/emitter.h"

namespace akunu {

// Where the streams lie: the first one, and the others one behind the other.
struct StreamValues {
  ValueId first = kNoValue;
  ValueId others = kNoValue;
};

// Emits the others, made of the first one, the embedding, and as large on average.
StreamValues emit_streams(Emitter& emitter, ValueId embedding);

// How the layer's tensors ("layers.3.streams.") and commands ("layer 3 ") begin.
struct StreamsOfLayer {
  std::string name, label;
};

// residual = the active stream, as it is predicted
void emit_prediction(Emitter& emitter, const StreamValues& streams, const StreamsOfLayer& layer,
                     ValueId residual);
// Of what the layer made of it. residual = the active stream then, scaled: what the layer's own embedding
// is multiplied with.
void emit_correction(Emitter& emitter, const StreamValues& streams, const StreamsOfLayer& layer,
                     ValueId residual);

// What the head reads of the rows that want logits: the mean of all streams, each through a matrix of its own
// and as large as the first.
ValueId emit_mean_of_streams(Emitter& emitter, const StreamValues& streams);

}  // namespace akunu
