// In the place of backend/cuda/kernels/language.cuh when a test compiles kernels of NVIDIA's GPUs for the CPU: this folder is before
// backend/ on the include path.
#pragma once

#include "streamed_words.h"
