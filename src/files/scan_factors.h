// The factors of a scan on x, B and C (Falcon-H1), which go through a convolution: its weights are multiplied instead, so
// that nothing is to be done as the model runs.
#pragma once

#include <vector>

#include "core/blocks/scan.h"
#include "files/model_source.h"

namespace akunu {

// Those of the tensors that are weights of such a convolution as copies in F32, multiplied; others as they are, and all
// where the factors are 1. Throws ModelFormatError where their length is not what the scan's numbers ask for.
std::vector<SourceTensor> with_scan_factors(std::vector<SourceTensor> tensors, const Scan& scan);

}  // namespace akunu
