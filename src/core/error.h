// The errors of akunu. Who failed decides the channel: a file or an argument throws one of these
// while loading or at the border; the device records a Status during replay and `wait` reports it.
#pragma once

#include <stdexcept>
#include <string>

namespace akunu {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The file contradicts its own format: what, where in the file.
struct ModelFormatError : Error {
  using Error::Error;
};

// The file is sound, but asks for an architecture, format or kernel that akunu does not have.
struct UnsupportedModelError : Error {
  using Error::Error;
};

// The device refused, timed out or failed while running a command.
struct DeviceError : Error {
  using Error::Error;
};

// How much was needed, for what, how much there is; computed before allocating.
struct OutOfMemoryError : Error {
  using Error::Error;
};

// The prompt and what shall follow do not fit into the context.
struct ContextOverflowError : Error {
  using Error::Error;
};

// As many tasks wait as may; nothing is wrong with the one that was refused.
struct QueueFullError : Error {
  using Error::Error;
};

// No token is left that a text's grammar allows.
struct DeadEndError : Error {
  using Error::Error;
};

// Which token a text's grammar allows takes more work to find out than one text may have.
struct GrammarLimitError : DeadEndError {
  using DeadEndError::DeadEndError;
};

// The caller passed something that makes no sense.
struct ArgumentError : Error {
  using Error::Error;
};

}  // namespace akunu
