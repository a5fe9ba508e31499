// embed: out[r] = table[token of the row] * scale; a thread per 16 numbers. Floor: the row's bytes.
// The token comes from the log on the device, so a chained row reads what the step before picked. A row
// whose input is a vector copies it.
#pragma once

#include "metal/kernels/formats.h"

// Grid: (dim / 16 / threads, rows).
template <class F>
[[kernel]] void embed(device const uint* tokens [[buffer(0)]],
                      device const uchar* table [[buffer(1)]], device float* out [[buffer(2)]],
                      device const float* vectors [[buffer(3), function_constant(kIsBound3)]],
                      device const uchar* second [[buffer(14), function_constant(kIsBound14)]],
                      device const uchar* third [[buffer(15), function_constant(kIsBound15)]],
                      constant PassRange& pass [[buffer(23)]],
                      constant EmbedParams& params [[buffer(25)]], device Row* rows [[buffer(26)]],
                      device Status* statuses [[buffer(29)]],
                      uint3 position [[thread_position_in_grid]]) {
  const uint index = position.x, dim = params.dim;
  if (index >= (dim + 15) / 16) return;
  const uint row = pass.first_row + position.y;
  if (kIsBound3 && (rows[row].flags & kRowVectorInput) != 0) {
    const ulong first = ulong(row) * dim + 16 * index;
    for (uint i = 0; i < min(16u, dim - 16 * index); ++i) out[first + i] = vectors[first + i];
    return;
  }
  const uint token = tokens[ulong(rows[row].sequence) * params.log_stride + rows[row].position];
  float4 q[4];
  for (uint piece = 0; piece < 4; ++piece) q[piece] = float4(0.0f);
  if (token < params.vocab_size) {
    float scale = 1.0f, minimum = 0.0f;
    Planes planes = one_plane(table);
    if (kIsBound14) planes.second = second;
    if (kIsBound15) planes.third = third;
    const uint n_rows = params.n_rows != 0 ? params.n_rows : params.vocab_size;
    F::unpack_16(F::row(planes, token < n_rows ? token : 0, dim), index, dim, q, scale, minimum);
    finish_16<F>(q, scale, minimum);
    for (uint piece = 0; piece < 4; ++piece) q[piece] = q[piece] * params.scale;
  } else if (index == 0) {
    record_status(statuses, rows, row, kStatusBadToken, token);
  }
  device float* to = out + ulong(row) * dim + 16 * index;
  if (dim % 16 == 0) {
    for (uint piece = 0; piece < 4; ++piece) reinterpret_cast<device float4*>(to)[piece] = q[piece];
  } else {
    for (uint i = 0; i < min(16u, dim - 16 * index); ++i) to[i] = q[i / 4][i % 4];
  }
}

#define AKUNU_EMBED(name, F) \
  template [[host_name("embed_" #name)]] [[kernel]] decltype(embed<F>) embed<F>;
