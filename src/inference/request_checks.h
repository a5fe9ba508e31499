// Whether a model can do what a request asks for: checked by the caller's thread, before any work. All functions
// throw ArgumentError, ContextOverflowError, UnsupportedModelError or OutOfMemoryError where it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/saved_positions.h"
#include "inference/generation.h"
#include "inference/logits_task.h"
#include "inference/model.h"

namespace akunu {

// `encodes`: they are a text for an encoder.
void check_tokens(const Model& model, const std::vector<uint32_t>& tokens, bool encodes = false);

// These also change the request to what is computed: positions of images get the images' tokens, adapters are put in
// order, and options that this model or device cannot use are turned off.
void check_request(const Model& model, GenerateRequest& request);
void check_request(const Model& model, LogitsRequest& request);

// Tokens that can follow a prompt of this length: one more than there are positions left, since
// the last one is chosen but never read.
uint32_t most_tokens(const Model& model, size_t prompt_tokens);

// Numbers of each row that comes out of a request.
uint32_t logits_width(const Model& model, const LogitsRequest& request);

// The cache groups of a model whose texts can be saved.
std::vector<GroupShape> saved_groups(const Model& model);

// Memory for the positions of a text of n tokens that is to be saved.
SavedPositions room_to_save(const Model& model, uint32_t n);

// Whether these are positions of a text of n tokens.
void check_saved(const Model& model, uint32_t n, const SavedPositions& saved);

}  // namespace akunu
