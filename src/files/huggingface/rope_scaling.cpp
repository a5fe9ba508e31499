#include "files/huggingface/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/error.h"

namespace akunu {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

float factor_of(ConfigObject& scaling) {
  const float factor = scaling.needed_number("factor");
  if (!(factor > 0)) scaling.refuse_value("factor", "it must be above 0");
  return factor;
}

// Of the context that it was stretched from: what the model says goes before what the scaling says.
uint32_t original_context(ConfigObject& scaling, const RopeBasis& basis, uint32_t usual) {
  const uint32_t said =
      scaling.needed_count("original_max_position_embeddings",
                           basis.original_context != 0 ? basis.original_context : usual);
  return basis.original_context != 0 ? basis.original_context : said;
}

// Where no factor is said, how much longer the context became.
double factor_or_ratio(ConfigObject& scaling, const RopeBasis& basis, uint32_t original) {
  if (scaling.find("factor") != nullptr) return static_cast<double>(factor_of(scaling));
  return static_cast<double>(basis.context_length) / original;
}

// Positions that pair `i` of a head turns once in, theta^(2i / rope_dim) * 2 pi.
double wavelength(const RopeBasis& basis, size_t i) {
  return kTurn *
         std::pow(static_cast<double>(basis.theta), 2.0 * static_cast<double>(i) / basis.rope_dim);
}

// Llama 3.1: frequencies that turn often within the original context stay, those that turn rarely are
// divided by the factor, and the ones between are interpolated.
std::vector<float> llama3_divisors(ConfigObject& scaling, const RopeBasis& basis) {
  const double factor = static_cast<double>(factor_of(scaling));
  const double low = static_cast<double>(scaling.needed_number("low_freq_factor"));
  const double high = static_cast<double>(scaling.needed_number("high_freq_factor"));
  if (!(low > 0)) scaling.refuse_value("low_freq_factor", "it must be above 0");
  if (!(high > low)) scaling.refuse_value("high_freq_factor", "it must be above low_freq_factor");
  const uint32_t original = original_context(scaling, basis, 0);
  std::vector<float> divisors(basis.rope_dim / 2);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double turns = original / wavelength(basis, i);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    divisors[i] = static_cast<float>(1 / ((1 - kept) / factor + kept));
  }
  return divisors;
}

// What Q and K are multiplied by, said or made of other keys.
void check_attention_factor(const ConfigObject& scaling, float factor) {
  constexpr float kMost = 1e15f;  // its square is a factor on their products, in float
  if (factor > 0 && factor <= kMost) return;
  throw ModelFormatError(scaling.named("attention_factor") + " would be " + std::to_string(factor) +
                         "; it must be above 0 and at most 1e15");
}

// YaRN with the corrections and defaults of transformers.
void read_yarn(ConfigObject& scaling, const RopeBasis& basis, RopeScaling& result) {
  Yarn yarn{.original_context = original_context(scaling, basis, basis.context_length)};
  yarn.factor = factor_or_ratio(scaling, basis, yarn.original_context);
  yarn.beta_fast = static_cast<double>(scaling.number("beta_fast").value_or(32.0f));
  yarn.beta_slow = static_cast<double>(scaling.number("beta_slow").value_or(1.0f));
  if (!(yarn.beta_slow > 0)) scaling.refuse_value("beta_slow", "it must be above 0");
  if (!(yarn.beta_fast > yarn.beta_slow))
    scaling.refuse_value("beta_fast", "it must be above beta_slow");
  yarn.truncate = scaling.flag("truncate").value_or(true);
  result.yarn = yarn;
  result.divisors = yarn_divisors(yarn, basis);
  const double scale = static_cast<double>(scaling.number("mscale").value_or(0.0f));
  const double all_scale = static_cast<double>(scaling.number("mscale_all_dim").value_or(0.0f));
  const double usual = scale != 0 && all_scale != 0 ? yarn_magnitude(yarn.factor, scale) /
                                                          yarn_magnitude(yarn.factor, all_scale)
                                                    : yarn_attention_factor(yarn);
  result.attention_factor = scaling.number("attention_factor").value_or(static_cast<float>(usual));
  check_attention_factor(scaling, result.attention_factor);
  const double of_all = yarn_magnitude(yarn.factor, all_scale);
  check_attention_factor(scaling, static_cast<float>(of_all));
  result.scale_factor = static_cast<float>(of_all * of_all);
}

std::vector<float> factor_list(ConfigObject& scaling, std::string_view key, size_t n_pairs) {
  const std::optional<std::vector<float>> factors = scaling.numbers(key);
  if (!factors) scaling.refuse_missing(key);
  if (factors->size() != n_pairs)
    throw ModelFormatError(scaling.named(key) + " has " + std::to_string(factors->size()) +
                           " numbers; " + std::to_string(n_pairs) + " frequencies rotate");
  for (const float factor : *factors)
    if (!(factor > 0))
      throw ModelFormatError(scaling.named(key) + " holds " + std::to_string(factor) +
                             "; factors must be above 0");
  return *factors;
}

// Long-RoPE (Ding et al., 2024): a list of factors each for contexts up to the original one and beyond.
void read_longrope(ConfigObject& scaling, const RopeBasis& basis, RopeScaling& result) {
  result.original_context = original_context(scaling, basis, basis.context_length);
  result.divisors = factor_list(scaling, "short_factor", basis.rope_dim / 2);
  result.long_divisors = factor_list(scaling, "long_factor", basis.rope_dim / 2);
  const double factor = factor_or_ratio(scaling, basis, result.original_context);
  const double usual =
      factor <= 1 ? 1.0
                  : std::sqrt(1 + std::log(factor) /
                                      std::log(static_cast<double>(result.original_context)));
  result.attention_factor = scaling.number("attention_factor").value_or(static_cast<float>(usual));
  check_attention_factor(scaling, result.attention_factor);
}

bool is_divisor(float number) { return number > 0 && std::isfinite(number); }

}  // namespace

std::vector<float> yarn_divisors(const Yarn& yarn, const RopeBasis& basis) {
  // The pair that turns `turns` times within the original context.
  const auto pair_of = [&](double turns) {
    return basis.rope_dim * std::log(yarn.original_context / (turns * kTurn)) /
           (2 * std::log(static_cast<double>(basis.theta)));
  };
  double low = pair_of(yarn.beta_fast), high = pair_of(yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, basis.rope_dim - 1.0);
  if (low == high) high += 0.001;  // as transformers has it
  std::vector<float> divisors(basis.rope_dim / 2);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    divisors[i] = static_cast<float>(1 / (divided / yarn.factor + (1 - divided)));
  }
  return divisors;
}

double yarn_magnitude(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

double yarn_attention_factor(const Yarn& yarn) { return yarn_magnitude(yarn.factor, 1.0); }

RopeAxes read_rope_axes(ConfigObject& scaling, uint32_t n_pairs) {
  RopeAxes axes;
  const bool is_interleaved = scaling.flag("mrope_interleaved").value_or(false);
  const std::optional<std::vector<float>> sections = scaling.numbers("mrope_section");
  if (!sections) return axes;
  const float sum = std::accumulate(sections->begin(), sections->end(), 0.0f);
  if (sections->size() != 3 || sum != static_cast<float>(n_pairs) ||
      n_pairs > RopeAxes::kMostPairs ||
      std::ranges::any_of(*sections, [](float n) { return n < 0 || n != std::floor(n); }))
    return axes;
  const auto n_first = static_cast<uint32_t>((*sections)[0]);
  const auto n_second = static_cast<uint32_t>((*sections)[1]);
  for (uint32_t pair = 0; pair < n_pairs; ++pair) {
    const uint32_t turn = pair % 3;  // time, y, x, time, ...
    if (!is_interleaved)
      axes.set(pair, pair < n_first ? 0 : pair < n_first + n_second ? 1 : 2);
    else if (turn != 0 && static_cast<float>(pair) < 3 * (*sections)[turn])
      axes.set(pair, turn);
  }
  return axes;
}

RopeScaling read_rope_scaling(ConfigObject& scaling, const RopeBasis& basis) {
  const std::optional<std::string> old_name = scaling.text("type");
  const std::string type = scaling.text("rope_type").value_or(old_name.value_or("default"));
  const char* const key = scaling.find("rope_type") != nullptr ? "rope_type" : "type";
  RopeScaling result;
  if (type == "default" || type == "mrope") {  // of text, positions in three dimensions are alike
    scaling.find("factor");                    // transformers does not look at it either
  } else if (type == "linear") {
    result.linear_factor = factor_of(scaling);
  } else if (type == "dynamic" && basis.has_alpha && scaling.find("alpha") != nullptr) {
    const float alpha = scaling.needed_number("alpha");
    if (!(alpha > 0)) scaling.refuse_value("alpha", "it must be above 0");
    // Its files have YaRN's and dynamic NTK's keys besides, which nobody reads.
    for (const char* other : {"factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow"})
      scaling.find(other);
    if (basis.rope_dim > 2)
      result.theta_factor = std::pow(
          alpha, static_cast<float>(basis.rope_dim) / static_cast<float>(basis.rope_dim - 2));
  } else if (type == "dynamic") {
    result.dynamic_factor = factor_of(scaling);
  } else if (type == "llama3") {
    result.divisors = llama3_divisors(scaling, basis);
  } else if (type == "longrope" || type == "su" || (type == "yarn" && basis.is_phi3)) {
    read_longrope(scaling, basis, result);
  } else if (type == "yarn") {
    read_yarn(scaling, basis, result);
  } else {
    scaling.refuse_support(key, "akunu has default, linear, dynamic, llama3, yarn and longrope");
  }
  for (const std::vector<float>* divisors : {&result.divisors, &result.long_divisors})
    if (std::ranges::any_of(*divisors, [](float each) { return !is_divisor(each); }))
      scaling.refuse_value(key, "with its numbers and a rope_theta of " +
                                    std::to_string(basis.theta) +
                                    " a frequency would be divided by what is no positive number");
  return result;
}

}  // namespace akunu
