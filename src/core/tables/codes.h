// The numbers that a code of four bits stands for, in formats that have a table of them. For the
// kernels of the CPU and of Metal, and for what makes such weights.
#pragma once

#include "core/rows.h"

namespace akunu {

// IQ4_NL and IQ4_XS: closer together near zero, where most weights are.
AKUNU_CONSTANT int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};

// MXFP4 and NVFP4: twice the float of four bits (E2M1); the sign is the upper bit.
AKUNU_CONSTANT int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace akunu
