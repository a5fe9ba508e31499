// What a token is drawn from: the logits of the whole row, or once few enough are left, a list in the
// threadgroup's memory. All threads of the threadgroup call these functions together.
#pragma once

#include "metal/kernels/sample.h"

constant constexpr uint kListed = 2048;  // candidates in threadgroup memory

// z is logits[token] / divisor, of all tokens or of those in the list, which has it. A token that is no
// candidate any more has -inf.
struct Candidates {
  Team team;
  uint vocab_size;
  device const float* logits;
  device float* copy;  // where logits may be changed; perhaps those that are given already
  float divisor;
  bool is_listed;
  uint n;  // vocab_size, or entries of the list
  threadgroup float* z;
  threadgroup uint* tokens;
  bool is_best_known;
  Candidate best;  // by rank
};
inline Candidates all_candidates(Team team, uint vocab_size, device const float* logits,
                                 device float* copy, threadgroup uint* memory) {
  return Candidates{team,
                    vocab_size,
                    logits,
                    copy,
                    1.0f,
                    false,
                    vocab_size,
                    reinterpret_cast<threadgroup float*>(memory),
                    memory + kListed,
                    false,
                    Candidate{0.0f, 0u}};
}
inline Candidate candidate(thread Candidates& from, uint i) {
  if (from.is_listed) return Candidate{from.z[i], from.tokens[i]};
  const float z = from.logits[i];
  return Candidate{from.divisor == 1.0f ? z : z / from.divisor, i};
}

// The first by rank.
inline Candidate best_of(thread Candidates& from) {
  if (from.is_best_known) return from.best;
  Candidate best = Candidate{-infinity(), kNone};
  for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads) {
    const Candidate c = candidate(from, i);
    if (best.token == kNone || is_better(c, best)) best = c;
  }
  from.best = team_best(from.team, best);
  from.is_best_known = true;
  return from.best;
}

// All logits, to be changed. The memory of the list is free until the next filter.
inline void make_writable(thread Candidates& from) {
  const Team team = from.team;
  if (from.is_listed) {
    for (uint i = team.thread_index; i < from.vocab_size; i += team.n_threads)
      from.copy[i] = -infinity();
    threadgroup_barrier(mem_flags::mem_device);
    for (uint i = team.thread_index; i < from.n; i += team.n_threads)
      from.copy[from.tokens[i]] = from.z[i];
  } else if (from.logits != from.copy || from.divisor != 1.0f) {
    for (uint i = team.thread_index; i < from.vocab_size; i += team.n_threads)
      from.copy[i] = from.logits[i] / from.divisor;
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  from.logits = from.copy;
  from.divisor = 1.0f;
  from.is_listed = false;
  from.n = from.vocab_size;
  from.is_best_known = false;
}

// --- Keeping some ----------------------------------------------------------------------------------

// Makes a list of those for which `holds`; false, and nothing done, where they are too many. Its order
// depends on nothing but the logits: an atomic counter would shuffle it, and sums of masses with it.
template <class Holds>
inline bool make_list(thread Candidates& from, Holds holds) {
  const Team team = from.team;
  uint own = 0;
  for (uint i = team.thread_index; i < from.vocab_size; i += team.n_threads)
    own += holds(candidate(from, i)) ? 1 : 0;
  uint n = 0;
  uint place = team_prefix(team, own, n);
  if (n > kListed) return false;
  for (uint i = team.thread_index; i < from.vocab_size; i += team.n_threads) {
    const Candidate c = candidate(from, i);
    if (!holds(c)) continue;
    from.z[place] = c.value;
    from.tokens[place] = c.token;
    ++place;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  from.is_listed = true;
  from.n = n;
  return true;
}

template <class Holds>
inline void keep(thread Candidates& from, Holds holds) {
  const Team team = from.team;
  if (from.is_listed) {
    uint kept = 0;
    for (uint first = 0; first < from.n; first += team.n_threads) {
      const uint i = first + team.thread_index;
      const Candidate c = i < from.n ? candidate(from, i) : Candidate{0.0f, 0u};
      const bool stays = i < from.n && holds(c);
      uint n = 0;
      const uint place = kept + team_prefix(team, stays ? 1u : 0u, n);
      threadgroup_barrier(mem_flags::mem_threadgroup);  // all have read theirs
      if (stays) {
        from.z[place] = c.value;
        from.tokens[place] = c.token;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      kept += n;
    }
    from.n = kept;
    return;
  }
  if (make_list(from, holds)) return;
  for (uint i = team.thread_index; i < from.vocab_size; i += team.n_threads)
    from.copy[i] = holds(candidate(from, i)) ? from.logits[i] : -infinity();
  threadgroup_barrier(mem_flags::mem_device);
  from.logits = from.copy;
}

struct AtLeast {
  float bound;
  bool operator()(Candidate c) const { return c.value >= bound; }
};

// Makes a list of those with z >= bound, where they are not too many. Whoever calls it knows that no
// other is kept.
inline void narrow(thread Candidates& from, float bound) {
  if (!from.is_listed) make_list(from, AtLeast{bound});
}

// --- Orders ----------------------------------------------------------------------------------------

// Whole numbers by which candidates are ordered, largest first; of equal ones the lower token.
struct ByLogit {
  uint key(float z) const { return key_of(z); }
};
struct ByTypicality {  // how near -ln p is to the entropy
  float top, mean;
  uint key(float z) const { return key_of(-fabs((z - top) - mean)); }
};

// The first of an order: those with a larger key, and of an equal one the tokens up to `last`.
template <class Order>
struct Prefix {
  Order order;
  uint least, last;
  bool operator()(Candidate c) const {
    const uint key = order.key(c.value);
    return key > least || (key == least && c.token <= last);
  }
};

inline uint count_from(thread Candidates& from, uint key) {
  uint n = 0;
  for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads)
    n += key_of(candidate(from, i).value) >= key ? 1 : 0;
  return team_sum(from.team, n);
}

// The token of the n-th (from 1) candidate with exactly this key, by token.
inline uint nth_equal(thread Candidates& from, uint key, uint n) {
  uint low = 0, high = from.vocab_size - 1;  // the answer lies in between
  while (low < high) {
    const uint middle = low + (high - low) / 2;
    uint count = 0;
    for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads) {
      const Candidate c = candidate(from, i);
      count += key_of(c.value) == key && c.token <= middle ? 1 : 0;
    }
    if (team_sum(from.team, count) >= n) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The first k by rank, of more than k.
inline Prefix<ByLogit> first_k(thread Candidates& from, uint k, uint largest_key) {
  uint low = 0, high = largest_key + 1, above = 0;  // count(low) >= k > count(high) = above
  uint reached = from.n;                            // count(low)
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    const uint count = count_from(from, middle);
    if (count == k) return Prefix<ByLogit>{ByLogit{}, middle, kNone};
    if (count > k) {
      low = middle;
      reached = count;
    } else {
      high = middle;
      above = count;
    }
  }
  const uint wanted = k - above;
  if (reached - above == wanted) return Prefix<ByLogit>{ByLogit{}, low, kNone};
  return Prefix<ByLogit>{ByLogit{}, low, nth_equal(from, low, wanted)};
}

// The mass of those that `prefix` holds; e^(z - top) each.
template <class Order>
inline Mass mass_of(thread Candidates& from, Prefix<Order> prefix, float top) {
  Mass mass = Mass{0.0f, 0.0f};
  for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads) {
    const Candidate c = candidate(from, i);
    if (prefix(c)) mass = sum_of(mass, Mass{exp_of(c.value - top), 0.0f});
  }
  return team_mass(from.team, mass);
}
inline Mass total_mass(thread Candidates& from, float top) {
  return mass_of(from, Prefix<ByLogit>{ByLogit{}, 0, kNone}, top);
}

// The shortest first part of an order with at least the mass `enough`.
template <class Order>
inline Prefix<Order> first_with_mass(thread Candidates& from, Order order, Mass enough, float top,
                                     uint largest_key) {
  uint low = 0, high = largest_key + 1;  // mass from low on >= enough > mass from high on
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    if (reaches(mass_of(from, Prefix<Order>{order, middle, kNone}, top), enough)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  uint equals = 0;
  for (uint i = from.team.thread_index; i < from.n; i += from.team.n_threads)
    equals += order.key(candidate(from, i).value) == low ? 1 : 0;
  if (team_sum(from.team, equals) < 2) return Prefix<Order>{order, low, kNone};
  uint last = from.vocab_size - 1;
  for (uint first = 0; first < last;) {
    const uint middle = first + (last - first) / 2;
    if (reaches(mass_of(from, Prefix<Order>{order, low, middle}, top), enough)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return Prefix<Order>{order, low, last};
}

inline Mass share_of(Mass total, float share) {
  const float product = share * total.high;
  return Mass{product, fma(share, total.high, -product) + share * total.low};
}
