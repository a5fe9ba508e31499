// The vocabulary of MSL, for kernels that generate.py has made C++ of. Fast math is off.
#pragma once

#include "metal/emulator/msl/atomic.h"
#include "metal/emulator/msl/binding.h"
#include "metal/emulator/msl/build.h"
#include "metal/emulator/msl/half.h"
#include "metal/emulator/msl/math.h"
#include "metal/emulator/msl/simd.h"
#include "metal/emulator/msl/simdgroup_matrix.h"
#include "metal/emulator/msl/vector.h"
