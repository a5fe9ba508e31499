// The structs that host and kernels share (core/rows.h, core/kernel_params.h), as NumPy dtypes: tests of kernels pack
// them by name, so no layout is written down a second time in Python.
#pragma once

#include <pybind11/pybind11.h>

#include "core/operation.h"

namespace akunu::python {

// Of the parameters of the operation, without their padding; the dtype's size includes it.
pybind11::object params_dtype(Operation operation);

// {"row", "span", "sequence", "logprobs"}: what a step is made of, and what it says of a row.
pybind11::dict step_dtypes();

}  // namespace akunu::python
