// Speech as Python hands it to a model: a window of it, and the rules of its text.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rows.h"
#include "inference/task.h"

namespace akunu::python {

using Window = std::shared_ptr<SpeechWindow>;

struct Rules {
  TranscriptionRules fixed;  // without its lists, which are
  std::vector<uint32_t> banned, banned_first;
};

}  // namespace akunu::python
