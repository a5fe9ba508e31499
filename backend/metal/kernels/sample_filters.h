// The filters: each leaves some of the candidates. docs/kernels.md says which.
//
// What costs more than a read per token (masses) is done for those only that can still be kept: a bound
// leaves a list that fits the threadgroup's memory; if it does not, the same steps walk the logits. Every
// cut is exact: a bisection over the floats' bits by counts or masses, ties by the lowest token, where a
// bisection over a range of values would be off by one at its edge.
#pragma once

#include "metal/kernels/sample_candidates.h"

inline void keep_top_k(thread Candidates& from, uint k) {
  if (k == 0 || k >= from.n) return;
  const Team team = from.team;
  const float top = best_of(from).value;
  const uint largest_key = key_of(top);
  if (!from.is_listed && k <= team.n_threads) {
    // The k-th of the threads' own largest: k tokens at least are as large.
    float own_largest = -infinity();
    for (uint i = team.thread_index; i < from.n; i += team.n_threads)
      own_largest = max(own_largest, candidate(from, i).value);
    const uint own_key = key_of(own_largest);
    uint bound = 0, high = largest_key + 1;
    while (high - bound > 1) {
      const uint middle = bound + (high - bound) / 2;
      if (team_sum(team, own_key >= middle ? 1u : 0u) >= k) {
        bound = middle;
      } else {
        high = middle;
      }
    }
    if (bound > key_of(-infinity())) narrow(from, value_of(bound));
  }
  if (k < from.n) keep(from, first_k(from, k, largest_key));
}

// A bound below which tokens are together less than half of what a filter that keeps the mass p drops,
// which leaves room for rounding: each has less than (1 - p) / vocab_size of the total, and that is at
// least 1.
inline float least_log_share(thread Candidates& from, float p) {
  return log_of(0.5f * (1.0f - p) / float(from.vocab_size));
}

inline void keep_top_p(thread Candidates& from, float p) {
  if (!(p < 1.0f)) return;
  const Candidate top = best_of(from);
  const Mass enough = share_of(total_mass(from, top.value), p);
  const uint largest_key = key_of(top.value);
  if (reaches(Mass{1.0f, 0.0f}, enough)) {
    keep(from, Prefix<ByLogit>{ByLogit{}, largest_key, top.token});
    return;
  }
  narrow(from, top.value + least_log_share(from, p));
  keep(from, first_with_mass(from, ByLogit{}, enough, top.value, largest_key));
}

struct WeightAtLeast {
  float top, bound;
  bool operator()(Candidate c) const { return exp_of(c.value - top) >= bound; }
};
inline void keep_min_p(thread Candidates& from, float p) {
  if (!(p > 0.0f)) return;
  const float top = best_of(from).value;
  narrow(from, top + log_of(max(p, 1e-37f)) - 0.01f);
  keep(from, WeightAtLeast{top, p});
}

inline void keep_top_n_sigma(thread Candidates& from, float n) {
  if (!(n > 0.0f)) return;
  const Team team = from.team;
  const float top = best_of(from).value;
  // Distances to the largest keep the sums small.
  Mass sum = Mass{0.0f, 0.0f};
  uint count = 0;
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const float z = candidate(from, i).value;
    if (z == -infinity()) continue;
    sum = sum_of(sum, Mass{z - top, 0.0f});
    ++count;
  }
  sum = team_mass(team, sum);
  const float number = float(team_sum(team, count));
  const float mean = (sum.high + sum.low) / number;
  Mass squares = Mass{0.0f, 0.0f};
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const float z = candidate(from, i).value;
    if (z == -infinity()) continue;
    const float distance = (z - top) - mean;
    squares = sum_of(squares, Mass{distance * distance, 0.0f});
  }
  squares = team_mass(team, squares);
  keep(from, AtLeast{top - n * sqrt((squares.high + squares.low) / number)});
}

// Those whose -ln p is nearest to the entropy: with z relative to the largest, -ln p less the entropy is
// the mean of z less z.
inline void keep_typical_p(thread Candidates& from, float p) {
  if (!(p < 1.0f)) return;
  const Team team = from.team;
  const float top = best_of(from).value;
  const Mass total = total_mass(from, top);
  Mass weighted = Mass{0.0f, 0.0f};
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const float distance = candidate(from, i).value - top;
    if (distance > -104.0f) weighted = sum_of(weighted, Mass{exp_of(distance) * distance, 0.0f});
  }
  weighted = team_mass(team, weighted);
  const float mean = (weighted.high + weighted.low) / (total.high + total.low);
  // Below twice the mean a token is further away than all that are more likely.
  narrow(from, top + min(2.0f * mean, least_log_share(from, p)) - 0.01f);
  const ByTypicality order = ByTypicality{top, mean};
  keep(from, first_with_mass(from, order, share_of(total, p), top, key_of(0.0f)));
  from.is_best_known = false;
}

struct NotAbove {  // a candidate, by rank
  uint key, token;
  bool operator()(Candidate c) const {
    const uint own = key_of(c.value);
    return own < key || (own == key && c.token >= token);
  }
};
// Drops the tokens whose probability reaches the threshold, except the least likely of them (XTC).
inline void drop_top_choices(thread Candidates& from, float threshold) {
  const Team team = from.team;
  const float top = best_of(from).value;
  const Mass enough = share_of(total_mass(from, top), threshold);
  uint n = 0, least = 0xffffffffu;
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const float z = candidate(from, i).value;
    if (z == -infinity() || !reaches(Mass{exp_of(z - top), 0.0f}, enough)) continue;
    ++n;
    least = min(least, key_of(z));
  }
  if (team_sum(team, n) < 2) return;
  least = team_min(team, least);
  uint last = 0xffffffffu;  // its complement, so that the smallest is the last
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const Candidate c = candidate(from, i);
    if (key_of(c.value) == least) last = min(last, ~c.token);
  }
  keep(from, NotAbove{least, ~team_min(team, last)});
  from.is_best_known = false;
}

inline float noisy(Candidate c, device const SequenceRecord& record, uint draw) {
  return c.value + gumbel(philox(uint4(c.token, draw, record.choice, 0), record.sampling.seed_low,
                                 record.sampling.seed_high));
}

// The candidate whose z and noise are the largest.
inline uint pick(thread Candidates& from, device const SequenceRecord& record, uint draw) {
  // A token whose z is below the best noisy value by more than the largest possible noise cannot win.
  const float bound = noisy(best_of(from), record, draw) - kLargestNoise;
  narrow(from, bound);
  Candidate best = Candidate{-infinity(), kNone};
  for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads) {
    const Candidate c = candidate(from, i);
    if (c.value < bound) continue;
    const Candidate chosen = Candidate{noisy(c, record, draw), c.token};
    if (best.token == kNone || is_better(chosen, best)) best = chosen;
  }
  return team_best(from.team, best).token;
}
