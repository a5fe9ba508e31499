#include "inference/programs.h"

#include <utility>

namespace akunu {

Programs::Programs(ProgramCompiler&& compiler) : rotations(compiler.context()) {
  const Weights& weights = *compiler.context().weights;
  logits = compiler.binding(compiler.forward(RowClass::single).logits_value);
  for (const RowClass row_class : kRowClasses) {
    const auto index = static_cast<size_t>(row_class);
    const Forward& from = compiler.forward(row_class);
    by_class[index] = {.body = compiler.compile(from.body, row_class),
                       .logits = compiler.compile(from.logits, row_class)};
    if (weights.adapters.targets().empty()) continue;
    // The output is not adapted.
    adapted[index] = by_class[index];
    adapted[index].body = compiler.compile_another(compiler.fused().adapted[index].body, row_class);
  }
  const Forward& many = compiler.forward(RowClass::many);
  if (weights.arch.audio) {
    first_convolution = compiler.compile_another(many.first_convolution, RowClass::many);
    encode = compiler.compile_another(many.encode, RowClass::many);
    encoded = compiler.binding(many.encoded);
    if (!many.aligned.empty()) aligned = compiler.compile_another(many.aligned, RowClass::many);
  }
  if (weights.arch.images) {
    encode_image = compiler.compile_another(many.encode_image, RowClass::many);
    project_image = compiler.compile_another(many.project_image, RowClass::many);
    image_vectors = compiler.binding(many.image_vectors);
  }
  if (!weights.arch.embeds) {  // an encoder chooses nothing
    const Forward& few = compiler.forward(RowClass::few);
    choose_scored = compiler.compile(few.choose_scored, RowClass::few);
    choose = compiler.compile(few.choose, RowClass::few);
  }
  if (weights.has_prediction_head()) ahead = AheadPrograms(compiler);
  passes = compiler.take();
}

}  // namespace akunu
