// The bodies that add to rows what the adapters of their texts say. What other programs leave or read in scratch memory
// lies where it lies without adapters, so logits and choices are the programs of all texts, and adapters
// that come or go change these bodies alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/scratch.h"
#include "core/device.h"
#include "inference/adapters.h"
#include "inference/context.h"
#include "inference/program_compiler.h"

namespace akunu {

class AdaptedPrograms {
 public:
  // `others`: what is compiled without adapters. It, the context and the adapters' memory must outlive this. Throws UnsupportedModelError and
  // OutOfMemoryError.
  AdaptedPrograms(const Context& context, const CompiledPasses& others, const Adapters& adapters);

  Program body(RowClass row_class) const { return bodies_[static_cast<size_t>(row_class)].get(); }
  Program of_image_rows(size_t part) const { return image_rows_[part].get(); }
  uint32_t generated_rows_per_pass() const { return generated_rows_per_pass_; }

 private:
  Scratch scratch_;  // what the bodies have that the others lack
  std::array<OwnedProgram, 3> bodies_;
  std::vector<OwnedProgram> image_rows_;  // see Forward::image_rows
  uint32_t generated_rows_per_pass_;
};

// Null for a set without an adapter.
std::unique_ptr<const AdaptedPrograms> adapted_programs(const Context& context,
                                                        const CompiledPasses& others,
                                                        const Adapters& adapters);

}  // namespace akunu
