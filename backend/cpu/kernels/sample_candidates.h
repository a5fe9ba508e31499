// What a token is drawn from: first the logits of the whole row, later a list, once a filter leaves few
// tokens. Every filter is exact; docs/kernels.md says what each keeps.
#pragma once

#include <math.h>
#include <stdint.h>

#include "core/rows.h"
#include "cpu/kernels/candidates.h"
#include "cpu/kernels/sample_noise.h"
#include "cpu/kernels/sample_scans.h"

namespace akunu::cpu {

template <class Isa>
class Candidates {
 public:
  using Vector = typename Isa::Vector;

  // `copy`: memory for logits that change, perhaps those that are given already. `list`: memory for
  // a candidate per token of the vocabulary.
  Candidates(const float* logits, uint32_t vocab_size, float* copy, Candidate* list)
      : logits_(logits), vocab_size_(vocab_size), copy_(copy), memory_(list) {}

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
    divisor_ = temperature;
    is_largest_known_ = false;
    for (uint32_t i = 0; is_listed_ && i < n_; ++i) list_[i].z = z_of(list_[i].token);
    if (largest() != kInfinity) return true;
    only = best().token;  // an infinite z wins whatever the noise
    return false;
  }

  void keep_top_k(uint32_t k) {
    if (k == 0 || k >= (is_listed_ ? n_ : vocab_size_)) return;
    if (!is_listed_) return take_top_k(k);
    make_heap<Isa, BestFirst<Isa>>(list_, n_);
    uint32_t left = n_;
    for (uint32_t i = 0; i < k; ++i) pop_best(left);
    keep_from(left);
  }

  void keep_top_p(float p) {
    if (!(p < 1.0f)) return;
    const double total = sums().weight;
    // Tokens of less than (1 - p) / vocab_size of the total, and that is at least 1, are together
    // less than what is dropped; half of it leaves room for rounding.
    if (!is_listed_) {
      const double rest = 0.5 * (1.0 - static_cast<double>(p)) / vocab_size_;
      take_at_least(largest() + static_cast<float>(::log(rest)));
    }
    keep_best_mass(static_cast<double>(p) * total);
  }

  void keep_min_p(float p) {
    if (!(p > 0.0f)) return;
    // The bound is coarse: what counts is the weight.
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
    // Distances to the largest keep the sums small.
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
    if (!is_listed_) {
      // Below twice the mean a token is further away than all that are more likely; see keep_top_p.
      const auto rest =
          static_cast<float>(::log(0.5 * (1.0 - static_cast<double>(p)) / vocab_size_));
      const float lowest = 2.0f * mean < rest ? 2.0f * mean : rest;
      take_at_least(top + lowest - 0.01f);
    }
    for (uint32_t i = 0; i < n_; ++i) list_[i].z = -__builtin_fabsf((list_[i].z - top) - mean);
    make_heap<Isa, BestFirst<Isa>>(list_, n_);
    const double enough = static_cast<double>(p) * all.weight;
    double reached = 0;
    uint32_t left = n_;
    while (left > 0) {
      Candidate& nearest = pop_best(left);
      nearest.z = z_of(nearest.token);
      reached += static_cast<double>(weight(nearest.z));
      if (reached >= enough) break;
    }
    keep_from(left);
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
    // A token whose z is below the best noisy value by more than the largest possible noise cannot win.
    constexpr uint32_t kFew = 32;
    if (!is_listed_ || n_ > kFew) {
      Candidate top = best();
      const float bound = noisiest(&top, 1, record, draw).z - kLargestNoise;
      if (!is_listed_) {
        take_at_least(bound);
      } else {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n_; ++i)
          if (list_[i].z >= bound) list_[kept++] = list_[i];
        n_ = kept;
      }
    }
    return noisiest(list_, n_, record, draw).token;
  }

 private:
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
    for_at_least(top, [&](uint32_t token, float) {
      if (token < found.token) found.token = token;
    });
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

  // Calls visit(token, z), in order, for all with z >= bound of the whole row.
  template <class Visit>
  void for_at_least(float bound, const Visit& visit) const {
    // A logit this far below bound * divisor is below it after any rounding.
    const float product = bound * divisor_;
    const float coarse = product - 0x1p-20f * __builtin_fabsf(product) - 0x1p-100f;
    for_those_at_least<Isa>(
        logits_, vocab_size_, [&] { return coarse; },
        [&](uint32_t token) {
          const float z = z_of(token);
          if (z >= bound) visit(token, z);
        });
  }

  // Makes a list of all tokens with z >= bound.
  void take_at_least(float bound) {
    list_ = memory_;
    n_ = 0;
    for_at_least(bound, [&](uint32_t token, float z) { list_[n_++] = {z, token}; });
    is_listed_ = true;
  }

  // Makes a list of the first k by rank. Tokens come in order, so a later one must be strictly better.
  void take_top_k(uint32_t k) {
    list_ = memory_;
    for (n_ = 0; n_ < k; ++n_) list_[n_] = {z_of(n_), n_};
    make_heap<Isa, WorstFirst<Isa>>(list_, k);
    // The logits order like z, but for rounding: equal z may come from logits that differ.
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

  // Pops the best of a heap: swaps it behind the entries that are left.
  Candidate& pop_best(uint32_t& left) {
    const Candidate best = list_[0];
    list_[0] = list_[--left];
    list_[left] = best;
    if (left > 0) sift_down<Isa, BestFirst<Isa>>(list_, left, 0);
    return list_[left];
  }
  void keep_from(uint32_t first) {
    list_ += first;
    n_ -= first;
  }

  // The shortest prefix by rank of this weight.
  void keep_best_mass(double enough) {
    make_heap<Isa, BestFirst<Isa>>(list_, n_);
    double reached = 0;
    uint32_t left = n_;
    while (left > 0) {
      reached += static_cast<double>(weight(pop_best(left).z));
      if (reached >= enough) break;
    }
    keep_from(left);
  }

  template <class Holds>
  void keep_if(const Holds& holds) {
    largest();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_; ++i)
      if (holds(list_[i], weight(list_[i].z))) list_[kept++] = list_[i];
    n_ = kept;
  }

  Candidate noisiest(const Candidate* list, uint32_t n, const SequenceRecord& record,
                     uint32_t draw) const {
    Candidate best = {-kInfinity, kNone};
    for (uint32_t first = 0; first < n; first += 8) {
      const uint32_t count = n - first < 8 ? n - first : 8;
      uint32_t words[8] = {};
      float z[8] = {};
      for (uint32_t i = 0; i < count; ++i) {
        const Candidate& candidate = list[first + i];
        words[i] = philox4x32_10<Isa>({{candidate.token, draw, record.choice, 0}},
                                      record.sampling.seed_low, record.sampling.seed_high)
                       .word[0];
        z[i] = candidate.z;
      }
      Isa::store(z, Isa::add(Isa::load(z), gumbel<Isa>(words)));
      for (uint32_t i = 0; i < count; ++i) {
        const Candidate noisy = {z[i], list[first + i].token};
        if (best.token == kNone || BestFirst<Isa>::above(noisy, best)) best = noisy;
      }
    }
    return best;
  }

  // z is logits_[token] / divisor_, of all tokens or of those in the list, which has it too.
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
