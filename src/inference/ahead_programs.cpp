#include "inference/ahead_programs.h"

namespace akunu {

AheadPrograms::AheadPrograms(ProgramCompiler& compiler) {
  for (const RowClass row_class : kRowClasses) {
    const Forward& from = compiler.forward(row_class);
    by_class[static_cast<size_t>(row_class)] = {
        .body = compiler.compile_another(from.ahead, row_class),
        .logits = compiler.compile_another(from.ahead_logits, row_class)};
  }
  choose = compiler.compile(compiler.forward(RowClass::few).ahead_choose, RowClass::few);
}

}  // namespace akunu
