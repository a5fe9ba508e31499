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
  }
  const Forward& many = compiler.forward(RowClass::many);
  if (weights.arch.audio || weights.arch.images) {
    const Context& context = compiler.context();
    encoder = compile_encoder(weights.arch, many, [&](const std::vector<Node>& nodes) {
      return compiler.compile_another(nodes, RowClass::many);
    });
    encoder.input = (weights.arch.audio ? context.frames : context.patches).binding();
    if (weights.arch.images) encoder.output = compiler.binding(many.image_vectors);
    for (const std::vector<Node>& part : many.image_rows)
      image_rows.push_back(compiler.compile_another(part, RowClass::many));
    if (!many.aligned.empty()) aligned = compiler.compile_another(many.aligned, RowClass::many);
  }
  if (!weights.arch.embeds) {  // an encoder chooses nothing
    const Forward& few = compiler.forward(RowClass::few);
    choose_scored = compiler.compile(few.choose_scored, RowClass::few);
    choose = compiler.compile(few.choose, RowClass::few);
  }
  if (weights.has_prediction_head()) ahead = AheadPrograms(compiler);
  passes = compiler.take();
  adapted = adapted_programs(compiler.context(), passes, *compiler.context().adapters.get());
}

}  // namespace akunu
