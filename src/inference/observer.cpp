#include "inference/observer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cache/sequence_cache.h"
#include "core/error.h"
#include "inference/step.h"

namespace akunu {

namespace {

Programs compile(const Context& context, std::vector<Observation>& observations) {
  ProgramCompiler compiler(context, true);
  const Values& values = compiler.fused().values;
  for (const ObservedPart& part : compiler.fused().observed) {
    observations.push_back(
        {.program = compiler.compile(part.nodes, RowClass::many),
         .weight = context.weights->tensors->name_in_file(values[part.weight].name),
         .input = compiler.binding(part.input),
         .k = part.stack.k,
         .n_inputs = part.stack.n_inputs,
         .n_matrices = part.stack.n_experts,
         .n_chosen = part.stack.n_chosen});
    if (part.routes != kNoValue) observations.back().routes = compiler.binding(part.routes);
  }
  return Programs(std::move(compiler));
}

}  // namespace

std::unique_ptr<Observer> Observer::load(const std::string& path,
                                         const std::shared_ptr<Device>& device,
                                         uint32_t n_positions) {
  const LoadOptions options{.context = n_positions, .kv_memory = std::nullopt, .observed = true};
  const std::shared_ptr<const Weights> weights = load_weights(path, device, options);
  return blaming(*weights, [&] { return std::make_unique<Observer>(weights, device, options); });
}

Observer::Observer(std::shared_ptr<const Weights> weights, std::shared_ptr<Device> device,
                   const LoadOptions& options)
    : context_(std::move(weights), std::move(device), options),
      programs_(compile(context_, observations_)) {
  for (const Observation& observation : observations_)
    squares_[observation.weight] = {
        std::vector<double>(uint64_t{observation.n_matrices} * observation.k),
        std::vector<uint64_t>(observation.n_matrices)};
}

void Observer::look(const Observation& observation, uint32_t n_rows, InputSquares& squares) {
  const uint32_t k = observation.k;
  rows_.resize(uint64_t{n_rows} * observation.n_inputs * k);
  context_.device->read(observation.input, std::as_writable_bytes(std::span(rows_)));
  routes_.assign(uint64_t{n_rows} * observation.n_chosen, {});  // to the first matrix
  if (observation.routes)
    context_.device->read(*observation.routes, std::as_writable_bytes(std::span(routes_)));
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
  if (tokens.empty() || tokens.size() > context_.n_positions())
    throw ArgumentError("a text of " + std::to_string(tokens.size()) +
                        " tokens; the context holds " + std::to_string(context_.n_positions()));
  for (const uint32_t token : tokens)
    if (token >= context_.weights->arch.vocab_size)
      throw ArgumentError("token " + std::to_string(token) + " is not in the vocabulary");
  const auto n_tokens = static_cast<uint32_t>(tokens.size());
  SequenceCache cache(context_.cache, context_.sequences, context_.sizes.max_rows_in_flight, false);
  const auto slot =
      cache.sequences.begin({.id = 1,
                             .key = {},
                             .tokens = std::vector<uint32_t>(tokens.begin(), tokens.end()),
                             .n_prompt = n_tokens,
                             .n_positions = n_tokens,
                             .most_reused = 0});
  if (!slot)
    throw OutOfMemoryError("the cache has no room for " + std::to_string(n_tokens) + " positions");
  Device& device = *context_.device;
  Step step(context_, programs_);
  Row row{};
  row.sequence = *slot;
  row.adapter = kNone;
  row.last_position = kNone;
  const Choosing greedy;  // stays where it is until it is submitted
  static_cast<void>(step.update_sequence(*slot, greedy));
  while (row.position < n_tokens) {
    const uint32_t n_rows = std::min(n_tokens - row.position, device.chip().max_prompt_rows);
    cache.sequences.extend(*slot, row.position + n_rows);
    step.update(cache.sequences.take_unsent(*slot));
    step.add_prompt(row, n_rows, Step::Logits::none, false);
    std::set<std::string_view> seen;  // parts of one tensor in the file have one input
    for (const Observation& observation : observations_) {
      if (check) check();
      await_all_well(context_, step.submit_program(device, observation.program));
      if (seen.insert(observation.weight).second)
        look(observation, n_rows, squares_[observation.weight]);
    }
    step.clear();
    cache.sequences.done(*slot, row.position += n_rows);
  }
  cache.sequences.discard(*slot);
}

}  // namespace akunu
