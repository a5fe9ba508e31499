// Texts that go on where their context was full, without reading again what
// they keep.
//
// The text before keeps its positions as bytes when it ends
// (Generation::take_positions); the one that goes on gets those of the tokens
// that it has too, and turns their keys. It holds the bytes for as long as it
// is under way: where it steps back, it begins from them again, and has the
// same bits.
#pragma once

#include <cstdint>
#include <memory>

#include "cache/moved_positions.h"
#include "cache/sequences.h"
#include "inference/generation.h"
#include "inference/key_rotations.h"

namespace akunu {

// What a text of these tokens takes over of the one before it, which ended
// because its context was full; null where it has to read them. The text before
// keeps nothing any more.
std::shared_ptr<const MovedPositions> positions_of_text_before(const Context& context,
                                                               Generation& before,
                                                               const GenerateRequest& request);

// Throws OutOfMemoryError where there is no room beside the cache for the
// positions of a whole context.
void refuse_unless_kept_fits(const Context& context);

// Turns the keys of a text that begins so, all of whose pages are in place; no
// submission is in flight.
void turn_keys(Context& context, KeyRotations& rotations, Sequences& sequences,
               const MovedPositions& moved, uint32_t sequence);

}  // namespace akunu
