// The programs that turn keys in the cache to other positions, when a text is shifted.
#pragma once

#include <vector>

#include "core/device.h"
#include "inference/context.h"

namespace akunu {

class KeyRotations {
 public:
  // Compiles none where what positions do to keys is no rotation.
  explicit KeyRotations(const Context& context);

  bool can_turn() const { return !programs_.empty(); }
  // One for the rows of each cache group, which turns by as much as `write_turns` said last. A group whose keys have no
  // positions has an empty one. None where keys cannot turn.
  const std::vector<OwnedProgram>& programs() const { return programs_; }
  // By so many positions; with no submission in flight.
  void write_turns(double positions);

 private:
  const Context& context_;
  std::vector<OwnedBuffer> turns_;  // float32 [2 * pairs] for each buffer of frequencies
  std::vector<OwnedProgram> programs_;
};

}  // namespace akunu
