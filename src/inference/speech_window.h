// Windows of speech: they are checked when a text of one is asked for, and encoded when the first
// text of one is admitted.
#pragma once

#include <cstdint>

#include "cache/sequence_cache.h"
#include "inference/model.h"
#include "inference/task.h"

namespace akunu {

// Throws where the model has an encoder of audio and there is no window for it, or the other way round.
void check_window(const Model& model, const SpeechWindow* window);

// Fills the pages of a window that the sequence has: two submissions, one over frames and one over
// positions. Nothing else may be in flight. Throws DeviceError.
void encode_window(Model& model, SequenceCache& cache, const SpeechWindow& window,
                   uint32_t sequence);

}  // namespace akunu
