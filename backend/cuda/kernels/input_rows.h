// input_rows of metal/kernels/matvec.h: rows that a launch staged lie further apart than those of an input. The
// generator (cuda/generate.py) puts this in the place of that.
template <uint kRows>
__device__ inline void input_rows(const float* input, Share share, uint k, Input (&inputs)[kRows]) {
  const uint stride = kTakesStagedRows ? Staged::floats(k) : k;
  for (uint m = 0; m < kRows; ++m)
    inputs[m] = input + ulong(share.row + min(m, share.n_rows - 1)) * stride;
}
