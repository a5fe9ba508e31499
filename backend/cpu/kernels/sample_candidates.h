// The candidates of the next token: first the logits of the whole row, later a list of tokens, once a
// filter leaves few of them.
//
// 1. What it computes. The filters of docs/kernels.md (top-k, top-p, min-p, ...), each exactly, in the
//    order that the sequence's record says; then the token with the largest z + noise (the Gumbel-max
//    trick: a draw from softmax(z)). z is a logit divided by the temperature; the rank of a token is its
//    place by z, the lower id first among equals; its weight is e^(z - largest z).
// 2. What bounds it. Passes over the vocabulary: 150,000 logits are 600 KB, in L2.
// 3. What is done about it. Filters that compare with a bound go over vectors (sample_scans.h);
//    ranks are found only as far as a filter asks (sample_ranks.h); what a filter leaves becomes a
//    list; the temperature is a divisor that scans apply.
// 4. Where to change it. A filter: its method here, called by sample.cpp. Noise: sample_noise.h. A "coarse"
//    bound is a little below the exact one, so that a scan of logits misses nothing; exact comparisons
//    follow.
#pragma once

#include <math.h>
#include <stdint.h>

#include "core/rows.h"
#include "cpu/kernels/candidates.h"
#include "cpu/kernels/sample_noise.h"
#include "cpu/kernels/sample_ranks.h"
#include "cpu/kernels/sample_scans.h"

namespace akunu::cpu {

template <class Isa>
class Candidates {
 public:
  using Vector = typename Isa::Vector;

  // `copy`: memory for logits that change, perhaps those that are given already. `list`: memory for
  // a candidate per token of the vocabulary. `largest`: of the logits.
  Candidates(const float* logits, uint32_t vocab_size, float largest, float* copy, Candidate* list)
      : logits_(logits),
        vocab_size_(vocab_size),
        copy_(copy),
        memory_(list),
        is_largest_known_(true),
        largest_(largest) {}

  // The logits of all tokens, to be changed: -inf of those that are no candidates any more. The memory
  // of the list is free until the next filter.
  float* writable() {
    if (is_listed_) {
      for (uint32_t i = 0; i < vocab_size_; ++i) copy_[i] = -kInfinity;
      for (uint32_t i = 0; i < n_; ++i) copy_[list_[i].token] = list_[i].z;
    } else if (divisor_ != 1.0f) {
      for (uint32_t i = 0; i < vocab_size_; ++i) copy_[i] = logits_[i] / divisor_;
    } else if (logits_ != copy_) {
      __builtin_memcpy(copy_, logits_, sizeof(float) * vocab_size_);
    }
    logits_ = copy_;
    divisor_ = 1.0f;
    is_listed_ = false;
    is_largest_known_ = false;
    return copy_;
  }
  Candidate* list_memory() { return memory_; }

  // False where that leaves one token, which `only` gets.
  bool set_temperature(float temperature, uint32_t& only) {
    if (temperature == 0.0f) {
      only = best().token;
      return false;
    }
    is_largest_known_ &= !is_listed_ && divisor_ == 1.0f;
    largest_ /= temperature;  // the same as the largest of the quotients: division keeps the order
    divisor_ = temperature;
    for (uint32_t i = 0; is_listed_ && i < n_; ++i) list_[i].z = z_of(list_[i].token);
    if (largest() != kInfinity) return true;
    only = best().token;  // an infinite z wins whatever the noise
    return false;
  }

  void keep_top_k(uint32_t k) {
    if (k == 0 || k >= (is_listed_ ? n_ : vocab_size_)) return;
    if (!is_listed_) return take_top_k(k);
    Ranks<Isa> ranks(list_, n_, largest() - kUsualDepth, largest());
    ranks.hand_out(k);
    keep_from(ranks.left());
  }

  void keep_top_p(float p) {
    if (!(p < 1.0f)) return;
    const double enough = static_cast<double>(p) * sums().weight;
    const float top = largest();
    // `rest`: tokens so far below the largest weigh less than (1 - p) / vocab_size each, so all of them
    // together less than the share 1 - p that is dropped (the total weighs at least 1, which the largest
    // token has). Half of it leaves room for rounding.
    const auto rest = static_cast<float>(::log(0.5 * (1.0 - static_cast<double>(p)) / vocab_size_));
    keep_mass(enough, ByRank{top}, top, top + rest);
  }

  void keep_min_p(float p) {
    if (!(p > 0.0f)) return;
    // The list may have some more; keep_if then compares weights.
    if (!is_listed_)
      take_at_least(largest() + static_cast<float>(::log(static_cast<double>(p))) - 0.01f);
    const float bound = p;
    keep_if([&](const Candidate&, float weight) { return weight >= bound; });
  }

  void keep_top_n_sigma(float n) {
    if (!(n > 0.0f)) return;
    const auto finite = [](Vector v, Vector x) {
      return Isa::select_less(v, Isa::broadcast(-__FLT_MAX__), Isa::zero(), x);
    };
    const auto scale = Isa::broadcast(divisor_);
    const auto top = Isa::broadcast(largest());
    // z relative to the largest, so that the sums stay small and exact enough.
    double first[2];
    sum(
        [&](Vector z, Vector(&out)[2]) {
          out[0] = finite(z, Isa::subtract(z, top));
          out[1] = finite(z, Isa::broadcast(1.0f));
        },
        scale, first);
    const auto mean = static_cast<float>(first[0] / first[1]);
    double second[1];
    sum(
        [&](Vector z, Vector(&out)[1]) {
          const Vector d = Isa::subtract(Isa::subtract(z, top), Isa::broadcast(mean));
          out[0] = finite(z, Isa::multiply(d, d));
        },
        scale, second);
    const double sigma = ::sqrt(second[0] / first[1]);
    const float bound =
        static_cast<float>(static_cast<double>(largest()) - static_cast<double>(n) * sigma);
    if (!is_listed_) return take_at_least(bound);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_; ++i)
      if (list_[i].z >= bound) list_[kept++] = list_[i];
    n_ = kept;
  }

  // Those whose -ln p is nearest to the entropy: with z relative to the largest, -ln p less the
  // entropy is the mean of z less z.
  void keep_typical_p(float p) {
    if (!(p < 1.0f)) return;
    const Sums all = sums();
    const auto mean = static_cast<float>(all.weighted / all.weight);
    const float top = largest();
    // Below twice the mean, a token is further from the mean than every more likely one, so those are kept
    // first. The other bound is keep_top_p's.
    const auto rest = static_cast<float>(::log(0.5 * (1.0 - static_cast<double>(p)) / vocab_size_));
    const float lowest = 2.0f * mean < rest ? 2.0f * mean : rest;
    keep_mass(static_cast<double>(p) * all.weight, Nearest{top, mean}, top + mean,
              top + lowest - 0.01f);
    is_largest_known_ = false;
  }

  // Drops the tokens whose probability reaches the threshold, except the least likely of them (XTC).
  void drop_top_choices(float threshold) {
    const double enough = static_cast<double>(threshold) * sums().weight;
    const auto reaches = [&](float z) {
      return z > -kInfinity && static_cast<double>(weight(z)) >= enough;
    };
    Candidate last = {kInfinity, 0};
    if (is_listed_) {
      for (uint32_t i = 0; i < n_; ++i)
        if (reaches(list_[i].z) && BestFirst<Isa>::above(last, list_[i])) last = list_[i];
      if (last.z == kInfinity) return;
      uint32_t kept = 0;
      for (uint32_t i = 0; i < n_; ++i)
        if (!BestFirst<Isa>::above(list_[i], last)) list_[kept++] = list_[i];
      n_ = kept;
      is_largest_known_ = false;
      return;
    }
    const double share = enough > 0 ? ::log(enough) - 0.01 : -__builtin_inf();
    uint32_t n = 0;
    for_at_least(largest() + static_cast<float>(share), [&](uint32_t token, float z) {
      if (!reaches(z)) return;
      memory_[n++] = {z, token};
      if (BestFirst<Isa>::above(last, memory_[n - 1])) last = memory_[n - 1];
    });
    if (n < 2) return;
    float* logits = writable();
    for (uint32_t i = 0; i < n; ++i)
      if (memory_[i].token != last.token) logits[memory_[i].token] = -kInfinity;
  }

  // The candidate whose z and noise are the largest.
  uint32_t pick(const SequenceRecord& record, uint32_t draw) {
    constexpr uint32_t kFew = 32;
    Noisiest<Isa> noisiest(record, draw);
    // The best first: it sets a bound that most other tokens cannot reach, whatever their noise.
    if (!is_listed_ || n_ > kFew) {
      const Candidate top = best();
      noisiest.add(&top, 1);
    }
    if (is_listed_) {
      for (uint32_t first = 0; first < n_; first += 8)
        noisiest.add(list_ + first, n_ - first < 8 ? n_ - first : 8);
    } else {
      const auto scale = Isa::broadcast(divisor_);
      float coarse = coarse_logit(noisiest.bound());
      for_vectors<Isa>(logits_, vocab_size_, [&](uint32_t i, Vector v, uint32_t n) {
        const uint32_t hits = Isa::not_less(v, Isa::broadcast(coarse)) & ((1u << n) - 1);
        if (hits == 0) return;
        const auto token_of = [&](uint32_t lane) { return i + lane; };
        if (noisiest.add(Isa::divide(v, scale), Isa::count_from(i), hits, token_of))
          coarse = coarse_logit(noisiest.bound());
      });
    }
    return noisiest.token();
  }

 private:
  static constexpr float kUsualDepth = 16.0f;  // below the best, there is little that is kept

  // The order in which keep_mass takes candidates: by a key, the largest first. While it runs, the list
  // holds keys instead of z. `best`: the largest key that there can be; a candidate whose z differs from the z
  // of that key by some amount has a key that is lower by the same amount.
  struct ByRank {
    static constexpr bool kIsZ = true;
    float best;
    float operator()(float z) const { return z; }
  };
  struct Nearest {
    static constexpr bool kIsZ = false;
    float top, mean;
    static constexpr float best = 0.0f;
    float operator()(float z) const { return -__builtin_fabsf((z - top) - mean); }
  };

  // Of e^(z - largest), and of that times z - largest.
  struct Sums {
    double weight, weighted;
  };

  float z_of(uint32_t token) const { return logits_[token] / divisor_; }

  float largest() {
    if (is_largest_known_) return largest_;
    is_largest_known_ = true;
    if (!is_listed_) return largest_ = largest_of<Isa>(logits_, vocab_size_) / divisor_;
    largest_ = -kInfinity;
    for (uint32_t i = 0; i < n_; ++i)
      if (list_[i].z > largest_) largest_ = list_[i].z;
    return largest_;
  }

  // The first by rank.
  Candidate best() {
    const float top = largest();
    Candidate found = {top, kNone};
    if (is_listed_) {
      for (uint32_t i = 0; i < n_; ++i)
        if (list_[i].z == top && list_[i].token < found.token) found = list_[i];
      return found;
    }
    const float coarse = coarse_logit(top);
    for (uint32_t first = 0; first < vocab_size_; ++first) {
      const uint32_t more = first_with<Isa>(logits_ + first, vocab_size_ - first, coarse);
      if (more == kNone) break;
      first += more;
      if (z_of(first) >= top) return {top, first};
    }
    return found;
  }

  void weights(const float (&z)[8], float (&out)[8]) const {
    Isa::store(out, exp<Isa>(Isa::subtract(Isa::load(z), Isa::broadcast(largest_))));
  }
  // e^(z - largest), once the largest is known.
  float weight(float z) const {
    const float all[8] = {z, z, z, z, z, z, z, z};
    float out[8];
    weights(all, out);
    return out[0];
  }
  // Of up to eight candidates.
  template <class Order = ByRank>
  void weights_of(const Candidate* list, uint32_t n, float (&out)[8]) const {
    float z[8];
    for (uint32_t i = 0; i < 8; ++i)
      z[i] = i >= n ? -kInfinity : Order::kIsZ ? list[i].z : z_of(list[i].token);
    weights(z, out);
  }

  // A little less than z * divisor: the z of a logit below this is below `z`, however both were rounded.
  float coarse_logit(float z) const {
    const float product = z * divisor_;
    return product - 0x1p-20f * __builtin_fabsf(product) - 0x1p-100f;
  }

  // Calls visit(token, z) for every token of the whole row with z >= bound, in order of tokens.
  template <class Visit>
  void for_at_least(float bound, const Visit& visit) const {
    for_those_at_least<Isa>(
        logits_, vocab_size_, [coarse = coarse_logit(bound)] { return coarse; },
        [&](uint32_t token) {
          const float z = z_of(token);
          if (z >= bound) visit(token, z);
        });
  }

  // Makes a list of all tokens with z >= bound.
  void take_at_least(float bound) { take_if(bound, ByRank{bound}, bound); }

  // Makes a list of the first k by rank, with a heap whose root is the worst of them. Of equal z the token
  // that came first has the better rank, so a later one must be strictly better.
  void take_top_k(uint32_t k) {
    list_ = memory_;
    for (n_ = 0; n_ < k; ++n_) list_[n_] = {z_of(n_), n_};
    make_heap<Isa, WorstFirst<Isa>>(list_, k);
    // Logits have the order of z, except that different logits may be rounded to the same z.
    float worst = logits_[list_[0].token];
    for_those_at_least<Isa>(
        logits_ + k, vocab_size_ - k, [&] { return worst; },
        [&](uint32_t i) {
          const float z = z_of(k + i);
          if (!(z > list_[0].z)) return;
          list_[0] = {z, k + i};
          sift_down<Isa, WorstFirst<Isa>>(list_, k, 0);
          worst = logits_[list_[0].token];
        });
    is_listed_ = true;
  }

  // Sums over all candidates of what `terms` makes of their z.
  template <uint32_t kSums, class Terms>
  void sum(const Terms& terms, Vector scale, double (&out)[kSums]) const {
    if (!is_listed_)
      return sum_terms<Isa, kSums>(
          logits_, vocab_size_, -kInfinity, out,
          [&](Vector v, Vector(&each)[kSums]) { terms(Isa::divide(v, scale), each); });
    for (double& one : out) one = 0;
    for (uint32_t first = 0; first < n_; first += 8) {
      float z[8];
      for (uint32_t i = 0; i < 8; ++i) z[i] = first + i < n_ ? list_[first + i].z : -kInfinity;
      Vector each[kSums];
      terms(Isa::load(z), each);
      for (uint32_t s = 0; s < kSums; ++s) {
        float lanes[8];
        Isa::store(lanes, each[s]);
        for (const float lane : lanes) out[s] += static_cast<double>(lane);
      }
    }
  }

  Sums sums() {
    const auto top = Isa::broadcast(largest());
    double both[2];
    sum(
        [&](Vector z, Vector(&out)[2]) {
          const Vector d = Isa::subtract(z, top);
          out[0] = exp<Isa>(d);
          out[1] = Isa::multiply(out[0], Isa::maximum(Isa::broadcast(-104.0f), d));
        },
        Isa::broadcast(divisor_), both);
    return {both[0], both[1]};
  }

  void keep_from(uint32_t first) {
    list_ += first;
    n_ -= first;
  }

  // Keeps the first candidates that weigh `enough` together. `best_z`: the z of the best. Of a whole row,
  // tokens with z < lowest need not be looked at.
  template <class Order>
  void keep_mass(double enough, const Order& order, float best_z, float lowest) {
    float depth = kUsualDepth;
    if (is_listed_) {
      for (uint32_t i = 0; i < n_; ++i) list_[i].z = order(list_[i].z);
    } else {
      depth = take_mass(enough, order, best_z, lowest);
    }
    Ranks<Isa> ranks(list_, n_, order.best - depth, order.best);
    keep_from(first_with_mass<Order>(ranks, enough));
    for (uint32_t i = 0; i < n_ && !Order::kIsZ; ++i) list_[i].z = z_of(list_[i].token);
  }

  // Hands out ranks until they weigh enough together. Returns where in the list they begin.
  template <class Order>
  uint32_t first_with_mass(Ranks<Isa>& ranks, double enough) const {
    double reached = 0;
    while (ranks.left() > 0) {
      const uint32_t end = ranks.left();
      ranks.hand_out(8);
      float weights[8];
      weights_of<Order>(list_ + ranks.left(), end - ranks.left(), weights);
      for (uint32_t i = end - ranks.left(); i-- > 0;) {
        reached += static_cast<double>(weights[i]);
        if (reached >= enough) return ranks.left() + i;
      }
    }
    return 0;
  }

  // Lists those of the whole row that keep_mass keeps, and more: mostly a small part has the mass, and
  // finding it is cheaper than putting all into order. Returns how much less than the best the keys are.
  template <class Order>
  float take_mass(double enough, const Order& order, float best_z, float lowest) {
    for (float depth = 4.0f; depth < kUsualDepth; depth += 2.0f) {
      const float bound = best_z - depth - (0.01f + 0x1p-20f * __builtin_fabsf(best_z));
      if (!(bound > lowest)) break;
      take_if(bound, order, order.best - depth);
      if (n_ > 0 && mass<Order>() >= enough * (1 + 1e-9)) return depth;  // summed in any order
    }
    take_if(lowest, order, -kInfinity);
    return best_z - lowest;
  }

  // Lists all tokens with z >= bound and a key that is no less than `least`.
  template <class Order>
  void take_if(float bound, const Order& order, float least) {
    list_ = memory_;
    n_ = 0;
    for_at_least(bound, [&](uint32_t token, float z) {
      const float key = order(z);
      if (key >= least) list_[n_++] = {key, token};
    });
    is_listed_ = true;
  }

  template <class Order>
  double mass() const {
    double sum = 0;
    for (uint32_t first = 0; first < n_; first += 8) {
      float weights[8];
      weights_of<Order>(list_ + first, n_ - first < 8 ? n_ - first : 8, weights);
      for (const float each : weights) sum += static_cast<double>(each);
    }
    return sum;
  }

  template <class Holds>
  void keep_if(const Holds& holds) {
    largest();
    uint32_t kept = 0;
    for (uint32_t first = 0; first < n_; first += 8) {
      const uint32_t n = n_ - first < 8 ? n_ - first : 8;
      float weights[8];
      weights_of(list_ + first, n, weights);
      for (uint32_t i = 0; i < n; ++i)
        if (holds(list_[first + i], weights[i])) list_[kept++] = list_[first + i];
    }
    n_ = kept;
  }

  // The candidates are all tokens, with z = logits_[token] / divisor_, or those of the list, which has their
  // z as well.
  const float* logits_;
  float divisor_ = 1.0f;
  const uint32_t vocab_size_;
  float* const copy_;
  Candidate* const memory_;
  bool is_listed_ = false;
  Candidate* list_ = nullptr;
  uint32_t n_ = 0;
  bool is_largest_known_ = false;
  float largest_ = 0;
};

}  // namespace akunu::cpu
