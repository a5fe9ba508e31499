// The tiles of gemm.h.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant constexpr uint kTile = 64;  // columns, and rows of a whole tile
constant constexpr uint kStep = 32;  // of k
