#include "files/delta_projections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "models/common/name_rules.h"

namespace akunu {
namespace {

// Neighbouring rows of every key head.
struct HeadRun {
  uint64_t first = 0;
  uint64_t n = 0;
};

// Those of all key heads, one run after the other: all queries, then all keys, ...
SourceTensor gathered(const SourceTensor& tensor, const DeltaRule& rule,
                      std::initializer_list<HeadRun> runs, std::string name) {
  const uint64_t n_rows = tensor.rows(), of_head = n_rows / rule.n_key_heads;
  uint64_t n = 0;
  for (const HeadRun& run : runs) n += run.n * rule.n_key_heads;
  SourceTensor result = tensor;
  result.name = std::move(name);
  result.shape[1] = n;
  for (WeightPart& part : result.parts) {
    if (part.bytes.empty()) continue;
    const uint64_t each = part.bytes.size() / n_rows;
    const auto copy = std::make_shared<std::vector<std::byte>>(n * each);
    auto to = copy->begin();
    for (const HeadRun& run : runs)
      for (uint64_t head = 0; head < rule.n_key_heads; ++head)
        to = std::ranges::copy(
                 part.bytes.subspan((head * of_head + run.first) * each, run.n * each), to)
                 .out;
    part = {.bytes = *copy, .owner = copy};
  }
  return result;
}

void check_rows(const SourceTensor& tensor, uint64_t n) {
  if (n == 0 || tensor.n_dims != 2 || tensor.rows() != n)
    throw ModelFormatError(tensor.label() + " has " + std::to_string(tensor.rows()) +
                           " rows; heads of the delta rule ask for " + std::to_string(n));
}

}  // namespace

std::vector<SourceTensor> cut_by_key_heads(std::vector<SourceTensor> tensors,
                                           const DeltaRule& rule) {
  const uint64_t n_heads = rule.n_key_heads, key_dim = rule.key_dim;
  const uint64_t per_key = n_heads == 0 ? 0 : rule.n_value_heads / n_heads;
  const uint64_t values = per_key * rule.value_dim;
  const std::string qkvz = std::string(kDeltaQkvz) + ".weight";
  const std::string ba = std::string(kDeltaBa) + ".weight";
  std::vector<SourceTensor> result;
  for (SourceTensor& tensor : tensors) {
    const bool is_qkvz = tensor.name.ends_with(qkvz);
    if (!is_qkvz && !tensor.name.ends_with(ba)) {
      result.push_back(std::move(tensor));
      continue;
    }
    const std::string& ending = is_qkvz ? qkvz : ba;
    const std::string begin = tensor.name.substr(0, tensor.name.size() - ending.size());
    if (is_qkvz) {
      check_rows(tensor, n_heads * 2 * (key_dim + values));
      result.push_back(gathered(tensor, rule,
                                {{0, key_dim}, {key_dim, key_dim}, {2 * key_dim, values}},
                                begin + "delta.qkv.weight"));
      result.push_back(
          gathered(tensor, rule, {{2 * key_dim + values, values}}, begin + "delta.gate.weight"));
    } else {
      check_rows(tensor, n_heads * 2 * per_key);
      result.push_back(gathered(tensor, rule, {{0, per_key}}, begin + "delta.b.weight"));
      result.push_back(gathered(tensor, rule, {{per_key, per_key}}, begin + "delta.a.weight"));
    }
  }
  return result;
}

}  // namespace akunu
