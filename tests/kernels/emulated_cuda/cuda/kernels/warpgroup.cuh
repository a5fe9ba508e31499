// In the place of backend/cuda/kernels/warpgroup.cuh, as language.cuh beside it.
#pragma once

#include "streamed_words.h"
