#include "inference/observer.h"

#include <algorithm>
#include <set>

#include "cache/sequence_cache.h"
#include "core/error.h"
#include "inference/step.h"

namespace akunu {

Observer::Observer(Model& model) : model_(model) {
  for (const Observation& observation : model.observations())
    squares_[observation.weight] = {
        std::vector<double>(uint64_t{observation.n_matrices} * observation.k),
        std::vector<uint64_t>(observation.n_matrices)};
}

void Observer::look(const Observation& observation, uint32_t n_rows, InputSquares& squares) {
  const uint32_t k = observation.k;
  rows_.resize(uint64_t{n_rows} * observation.n_inputs * k);
  model_.device().read(observation.input, std::as_writable_bytes(std::span(rows_)));
  routes_.assign(uint64_t{n_rows} * observation.n_chosen, {});  // to the first matrix
  if (observation.routes)
    model_.device().read(*observation.routes, std::as_writable_bytes(std::span(routes_)));
  for (uint64_t pair = 0; pair < routes_.size(); ++pair) {
    const uint32_t matrix = routes_[pair].expert;
    const uint64_t row = observation.n_inputs == 1 ? pair / observation.n_chosen : pair;
    const float* const x = &rows_[row * k];
    double* const sums = &squares.sums[uint64_t{matrix} * k];
    for (uint32_t i = 0; i < k; ++i) sums[i] += double{x[i]} * double{x[i]};
    ++squares.n_rows[matrix];
  }
}

void Observer::add(std::span<const uint32_t> tokens, const std::function<void()>& check) {
  if (tokens.empty() || tokens.size() > model_.context())
    throw ArgumentError("a text of " + std::to_string(tokens.size()) +
                        " tokens; the context holds " + std::to_string(model_.context()));
  for (const uint32_t token : tokens)
    if (token >= model_.arch().vocab_size)
      throw ArgumentError("token " + std::to_string(token) + " is not in the vocabulary");
  const auto n_tokens = static_cast<uint32_t>(tokens.size());
  SequenceCache cache(model_.cache(), model_.sequences(), model_.max_rows_in_flight(), false);
  const auto slot = cache.begin({.id = 1,
                                 .key = {},
                                 .tokens = std::vector<uint32_t>(tokens.begin(), tokens.end()),
                                 .n_prompt = n_tokens,
                                 .n_positions = n_tokens,
                                 .most_reused = 0});
  if (!slot)
    throw OutOfMemoryError("the cache has no room for " + std::to_string(n_tokens) + " positions");
  Device& device = model_.device();
  Step step(model_);
  Row row{};
  row.sequence = *slot;
  row.adapter = kNone;
  row.last_position = kNone;
  const Choosing greedy;  // stays where it is until it is submitted
  static_cast<void>(step.update_sequence(*slot, greedy));
  while (row.position < n_tokens) {
    const uint32_t n_rows = std::min(n_tokens - row.position, device.chip().max_prompt_rows);
    cache.extend(*slot, row.position + n_rows);
    step.update(cache.take_unsent(*slot));
    step.add_prompt(row, n_rows, Step::Logits::none, false);
    std::set<std::string_view> seen;  // parts of one tensor in the file have one input
    for (const Observation& observation : model_.observations()) {
      if (check) check();
      await_all_well(model_, step.submit_program(device, observation.program));
      if (seen.insert(observation.weight).second)
        look(observation, n_rows, squares_[observation.weight]);
    }
    step.clear();
    cache.done(*slot, row.position += n_rows);
  }
  cache.discard(*slot);
}

}  // namespace akunu
