// The programs of an encoder in front of a decoder, of images or speech.
#pragma once

#include <functional>
#include <vector>

#include "core/arch.h"
#include "core/device.h"
#include "core/forward.h"
#include "inference/cut_pass.h"

namespace akunu {

// In order; none where a model has no encoder in front of its decoder.
struct EncoderPrograms {
  std::vector<PassPart> parts;
  Binding input;   // float32 [rows of the first part, numbers]
  Binding output;  // of images: float32 [head rows, dim of the text]
};

// Their parts. `compile`: of nodes for prompt rows.
EncoderPrograms compile_encoder(const ArchDescriptor& arch, const Forward& forward,
                                const std::function<Program(const std::vector<Node>&)>& compile);

}  // namespace akunu
