// The Gumbel noise of a token: -ln(-ln u), u = ((word >> 8) + 0.5) * 2^-24 of word 0 of Philox.
//
// 1. What it computes. The candidate with the largest z + noise (Noisiest): a draw from
//    softmax(z), without its sum. The noise of a token depends on seed, draw, choice and token
//    alone, so it does not matter in which order candidates come, nor how many are skipped that
//    cannot win.
// 2. What bounds it. Instructions: ten rounds of Philox for each candidate, and the logarithms.
// 3. What is done about it. Noise comes for eight tokens at a time. A bound without logarithms
//    (`most_gumbel`) says which lanes can still win; only where one can are the logarithms taken.
//    No noise exceeds kLargestNoise, so candidates with z below `bound` are never looked at.
// 4. Where to change it. The mathematics is step 6 of sample in docs/kernels.md, and a GPU's too.
//    The random numbers: philox.h. What a draw costs: docs/reference/benchmarks.md.
#pragma once

#include "core/rows.h"
#include "cpu/kernels/candidates.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/philox.h"

namespace akunu::cpu {

constexpr float kLargestNoise = 17.5f;  // of u = 1 - 2^-25: 25 ln 2 = 17.33

// Eight words. Between 1/2 and 1, u has 25 bits and no float of its own; 1 - u has one, and near 1 it
// is what the logarithm needs.
template <class Isa>
struct Uniforms {
  typename Isa::Vector from_zero, from_one;  // u, 1 - u

  explicit Uniforms(typename Isa::Bits words) {
    const auto step = Isa::upper_24(words);
    from_zero = fraction(step);
    from_one = fraction(Isa::subtract(Isa::broadcast(0xffffffp0f), step));
  }

 private:
  static typename Isa::Vector fraction(typename Isa::Vector step) {
    return Isa::multiply(Isa::add(step, Isa::broadcast(0.5f)), Isa::broadcast(0x1p-24f));
  }
};

template <class Isa>
static inline typename Isa::Vector gumbel(const Uniforms<Isa>& u) {
  const auto minus = Isa::subtract(Isa::zero(), u.from_one);
  const auto logarithm = Isa::select_less(u.from_zero, Isa::broadcast(0x1.6a09e6p-1f),
                                          log<Isa>(u.from_zero), log_near_one<Isa>(minus));
  return Isa::subtract(Isa::zero(), log<Isa>(Isa::subtract(Isa::zero(), logarithm)));
}

// No less than gumbel, at most 0.08 more where that counts, and without its logarithms: -ln u is at least
// 1 - u, and the logarithm of 2^n (1 + f) at least (n + f) ln 2.
template <class Isa>
static inline typename Isa::Vector most_gumbel(const Uniforms<Isa>& u) {
  constexpr float kLn2 = 0x1.62e43p-1f, kRounding = 0.01f;
  const auto power = Isa::add(Isa::exponent(u.from_one),
                              Isa::subtract(Isa::mantissa(u.from_one), Isa::broadcast(1.0f)));
  return Isa::multiply_add(power, Isa::broadcast(-kLn2), Isa::broadcast(kRounding));
}

// The candidate with the largest sum of z and noise, of all that were added so far.
template <class Isa>
class Noisiest {
 public:
  using Vector = typename Isa::Vector;

  Noisiest(const SequenceRecord& record, uint32_t draw) : record_(record), draw_(draw) {}

  uint32_t token() const { return best_.token; }
  // With a smaller z there is no chance.
  float bound() const { return best_.z - kLargestNoise; }

  // Adds the candidates of the lanes whose bit is set in `those`. `tokens` and token_of(lane): theirs.
  // True where one of them is the best now.
  template <class TokenOf>
  bool add(Vector z, typename Isa::Bits tokens, uint32_t those, const TokenOf& token_of) {
    const Uniforms<Isa> uniforms(philox4x32_10<Isa>(
        tokens, draw_, record_.choice, 0, record_.sampling.seed_low, record_.sampling.seed_high));
    // Few can win, and others need no logarithms.
    uint32_t hits =
        Isa::not_less(Isa::add(z, most_gumbel(uniforms)), Isa::broadcast(best_.z)) & those;
    if (hits == 0) return false;
    float noisy[8];
    Isa::store(noisy, Isa::add(z, gumbel(uniforms)));
    bool is_better = false;
    for (; hits != 0; hits &= hits - 1) {
      const auto lane = static_cast<uint32_t>(__builtin_ctz(hits));
      const Candidate candidate = {noisy[lane], token_of(lane)};
      if (best_.token != kNone && !BestFirst<Isa>::above(candidate, best_)) continue;
      best_ = candidate;
      is_better = true;
    }
    return is_better;
  }

  // Adds up to eight of a list.
  void add(const Candidate* list, uint32_t n) {
    float z[8] = {};
    uint32_t tokens[8] = {};
    for (uint32_t i = 0; i < n; ++i) {
      z[i] = list[i].z;
      tokens[i] = list[i].token;
    }
    add(Isa::load(z), Isa::load_bits(tokens), (1u << n) - 1,
        [&](uint32_t lane) { return tokens[lane]; });
  }

 private:
  const SequenceRecord& record_;
  const uint32_t draw_;
  Candidate best_ = {-__builtin_inff(), kNone};
};

}  // namespace akunu::cpu
