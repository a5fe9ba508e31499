#include "inference/encoder_programs.h"

namespace akunu {

EncoderPrograms compile_encoder(const ArchDescriptor& arch, const Forward& forward,
                                const std::function<Program(const std::vector<Node>&)>& compile) {
  EncoderPrograms encoder;
  if (arch.audio)
    encoder.parts.push_back({compile(forward.first_convolution), arch.audio->n_frames()});
  const uint32_t n_rows = arch.audio ? arch.audio->n_positions : arch.images->n_patches();
  for (const std::vector<Node>& part : forward.encode)
    encoder.parts.push_back({compile(part), n_rows});
  if (arch.images) {
    const bool is_average = arch.images->is.merger == PatchMerger::average;
    encoder.parts.push_back({.program = compile(forward.project_image),
                             .n_rows = is_average ? n_rows : arch.images->n_tokens(),
                             .rows_per_output = is_average ? arch.images->patches_per_token() : 1});
  }
  return encoder;
}

}  // namespace akunu
