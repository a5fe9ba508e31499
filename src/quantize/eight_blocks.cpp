#include "quantize/eight_blocks.h"

#include <algorithm>
#include <cmath>

#include "quantize/weighing.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

using Row = std::array<float, kBlockSize>;

// Lanes of which the lane `b` is number i of rows[b].
void turn(const std::array<const float*, kLanes>& rows, std::array<Lanes, kBlockSize>& turned) {
  for (size_t i = 0; i < kBlockSize; ++i) {
    float numbers[kLanes];
    for (size_t b = 0; b < kLanes; ++b) numbers[b] = rows[b][i];
    turned[i] = load(numbers);
  }
}

Lanes roots(const Lanes& of) {
  float numbers[kLanes];
  store(numbers, of);
  for (float& number : numbers) number = std::sqrt(number);
  return load(numbers);
}

// `weigh` without importance.
void weigh_by_size(EightBlocks& blocks) {
  Lanes squares = all(0.0f);
  for (const Lanes& x : blocks.x) squares += x * x;
  const Lanes root = roots(squares * (1.0f / kBlockSize));
  const Lanes one = choose(root, all(0.0f), all(0.0f), all(1.0f));
  for (size_t i = 0; i < kBlockSize; ++i) blocks.w[i] = magnitude(blocks.x[i]) + root + one;
}

Lanes low_of(const EightBlocks& blocks) {
  Lanes low = blocks.x[0];
  for (const Lanes& x : blocks.x) low = smaller(low, x);
  return low;
}

Lanes high_of(const EightBlocks& blocks) {
  Lanes high = blocks.x[0];
  for (const Lanes& x : blocks.x) high = larger(high, x);
  return high;
}

}  // namespace

EightBlocks read_blocks(std::span<const float> x, std::span<const float> importance) {
  EightBlocks blocks;
  const size_t n = x.size() / kBlockSize;
  std::array<const float*, kLanes> rows;
  for (size_t b = 0; b < kLanes; ++b) rows[b] = &x[std::min(b, n - 1) * kBlockSize];
  turn(rows, blocks.x);
  if (importance.empty()) {
    weigh_by_size(blocks);
    return blocks;
  }
  std::array<Row, kLanes> w;
  for (size_t b = 0; b < kLanes; ++b) {
    const size_t first = std::min(b, n - 1) * kBlockSize;
    weigh(x.subspan(first, kBlockSize), importance.subspan(first, kBlockSize), w[b]);
    rows[b] = w[b].data();
  }
  turn(rows, blocks.w);
  return blocks;
}

Lanes best_scales(const EightBlocks& blocks, Codes codes, Trials trials) {
  const Lanes low = low_of(blocks), high = high_of(blocks), zero = all(0.0f);
  const Lanes most = choose(zero - low, high, low, high);
  const Lanes to_one = all(1.0f) / choose(magnitude(most), zero, most, all(1.0f));
  Lanes best = most * (1.0f / codes.low), best_gain = all(-1.0f);
  const auto try_all = [&](const Lanes& inverse) {
    Lanes xq = zero, qq = zero;
    for (size_t i = 0; i < kBlockSize; ++i) {
      const Lanes q = clamp(nearest(blocks.x[i] * inverse), codes.low, codes.high);
      const Lanes wq = blocks.w[i] * q;
      xq += wq * blocks.x[i];
      qq += wq * q;
    }
    // Without codes there is no scale, and no gain: not a number is more than nothing.
    const Lanes scale = xq / qq, gain = scale * xq;
    best = choose(gain, best_gain, scale, best);
    best_gain = choose(gain, best_gain, gain, best_gain);
  };
  for (int i = -trials.below; i <= trials.above; ++i)
    try_all(to_one * (codes.low - trials.step * static_cast<float>(i)));
  try_all(inverse_of(best));
  return choose(magnitude(most), zero, best, zero);
}

Lines best_lines(const EightBlocks& blocks, float levels, Trials trials) {
  const Lanes low = low_of(blocks), high = high_of(blocks), zero = all(0.0f);
  const Lanes range = high - low, to_one = all(1.0f) / choose(range, zero, range, all(1.0f));
  Lanes w = zero, wx = zero;
  for (size_t i = 0; i < kBlockSize; ++i) {
    w += blocks.w[i];
    wx += blocks.w[i] * blocks.x[i];
  }
  Lines best{range * (1.0f / levels), low};
  Lanes best_gain = all(-INFINITY);
  const auto try_all = [&](const Lanes& inverse, const Lanes& minimum) {
    Lanes sum_q = zero, qq = zero, xq = zero;
    for (size_t i = 0; i < kBlockSize; ++i) {
      const Lanes q = clamp(nearest((blocks.x[i] - minimum) * inverse), 0.0f, levels);
      const Lanes wq = blocks.w[i] * q;
      sum_q += wq;
      qq += wq * q;
      xq += wq * blocks.x[i];
    }
    const Lanes determinant = w * qq - sum_q * sum_q;
    const Lines line{(w * xq - wx * sum_q) / determinant, (qq * wx - sum_q * xq) / determinant};
    const Lanes gain = line.scale * xq + line.minimum * wx;
    // A line that is none, or falls, is not taken.
    const Lanes usable =
        choose(determinant, zero, choose(line.scale, zero, gain, best_gain), best_gain);
    best.scale = choose(usable, best_gain, line.scale, best.scale);
    best.minimum = choose(usable, best_gain, line.minimum, best.minimum);
    best_gain = choose(usable, best_gain, usable, best_gain);
  };
  for (int i = -trials.below; i <= trials.above; ++i)
    try_all(to_one * (levels + trials.step * static_cast<float>(i)), low);
  try_all(inverse_of(best.scale), best.minimum);
  return {choose(range, zero, best.scale, zero), choose(range, zero, best.minimum, low)};
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
