#include "files/scan_factors.h"

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "files/floats.h"

namespace akunu {

std::vector<SourceTensor> with_scan_factors(std::vector<SourceTensor> tensors, const Scan& scan) {
  if (scan.input_factors == Scan{}.input_factors) return tensors;
  for (SourceTensor& tensor : tensors) {
    if (!tensor.name.ends_with(".scan.kernel.weight")) continue;
    refuse_quantised_vector(tensor);
    if (tensor.k() != uint64_t{scan.convolved_dim()} * scan.width)
      throw ModelFormatError(tensor.label() + " has " + std::to_string(tensor.k()) +
                             " numbers; a convolution of " + std::to_string(scan.width) + " of " +
                             std::to_string(scan.convolved_dim()) + " rows is needed");
    auto values = std::make_shared<std::vector<float>>(tensor.k());
    for (size_t i = 0; i < values->size(); ++i) {
      const size_t row = i / scan.width, of_inner = scan.inner_dim();
      const size_t part =
          row < of_inner ? 0 : 1 + (row - of_inner) / (scan.n_groups * scan.state_dim);
      (*values)[i] = scan.input_factors[part] * float_at(tensor.format, tensor.parts[0].bytes, i);
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(*values));
    tensor.format = Format::f32;
    tensor.parts[0] = {.bytes = bytes, .owner = std::move(values), .mapping = {}};
  }
  return tensors;
}

}  // namespace akunu
