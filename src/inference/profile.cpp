#include "inference/profile.h"

#include <algorithm>

#include "cache/sequence_cache.h"
#include "core/error.h"
#include "inference/step.h"

namespace akunu {
namespace {

// Tokens of no meaning, all of the vocabulary: an embedding that is read again and again is cached.
std::vector<uint32_t> make_tokens(uint32_t n, uint32_t vocab_size) {
  std::vector<uint32_t> tokens(n);
  for (uint32_t i = 0; i < n; ++i)
    tokens[i] = static_cast<uint32_t>(uint64_t{i} * 2654435761u % vocab_size);
  return tokens;
}

// Computes the positions before `depth`: memory that nobody has written is one page of zeros, which a processor's
// cache holds, however long the text.
void compute_before(Step& step, Model& model, Sequences& sequences, Row row,
                    const ProfileRequest& request) {
  Device& device = *model.context.device;
  for (row.position = 0; row.position < request.depth;) {
    if (request.check) request.check();
    const uint32_t n_rows = std::min(request.depth - row.position, device.chip().max_prompt_rows);
    sequences.extend(row.sequence, row.position + n_rows);
    step.update(sequences.take_unsent(row.sequence));
    step.add_prompt(row, n_rows, Step::Logits::none, false);
    await_all_well(model.context, step.submit(device, 1, false));
    step.clear();
    sequences.done(row.sequence, row.position += n_rows);
  }
}

}  // namespace

std::vector<ProfiledCommand> profile(Model& model, const ProfileRequest& request) {
  const uint32_t n_rows = std::max(1u, request.n_prompt);
  const uint64_t n_positions = uint64_t{request.depth} + n_rows;
  if (n_positions > model.context.n_positions())
    throw ArgumentError("a step of " + std::to_string(n_rows) + " rows after " +
                        std::to_string(request.depth) + " positions; the context holds " +
                        std::to_string(model.context.n_positions()));
  if (n_rows > model.context.device->chip().max_prompt_rows)
    throw ArgumentError(std::to_string(n_rows) + " rows in one step; this device takes " +
                        std::to_string(model.context.device->chip().max_prompt_rows));
  if (request.repetitions == 0) throw ArgumentError("a profile needs a repetition");

  SequenceCache cache(model.context.cache, model.context.sequences,
                      model.context.sizes.max_rows_in_flight, false);
  const std::vector<uint32_t> tokens =
      make_tokens(static_cast<uint32_t>(n_positions), model.context.arch().vocab_size);
  const auto slot = cache.sequences.begin({.id = 1,
                                           .key = {},
                                           .tokens = tokens,
                                           .n_prompt = static_cast<uint32_t>(n_positions),
                                           .n_positions = static_cast<uint32_t>(n_positions),
                                           .most_reused = 0});
  if (!slot)
    throw OutOfMemoryError("the cache has no room for " + std::to_string(n_positions) +
                           " positions");
  Step step(model.context, model.programs);
  Row row{};
  row.sequence = *slot;
  row.adapter = kNone;
  row.last_position = kNone;
  const Choosing greedy;  // stays where it is until it is submitted
  static_cast<void>(step.update_sequence(*slot, greedy));
  compute_before(step, model, cache.sequences, row, request);
  cache.sequences.extend(*slot, static_cast<uint32_t>(n_positions));
  step.update(cache.sequences.take_unsent(*slot));
  row.position = request.depth;
  if (request.n_prompt > 0)
    step.add_prompt(row, n_rows, Step::Logits::last, true);
  else
    step.add_generated(row, 1, Step::Logits::last, true);

  std::vector<ProfiledCommand> commands;
  std::vector<std::vector<double>> seconds;
  for (uint32_t repetition = 0; repetition < request.repetitions + 1; ++repetition) {
    if (request.check) request.check();
    const std::vector<CommandTime> times = step.profile(*model.context.device);
    if (repetition == 0) {  // warms caches up, and says which commands there are
      for (const CommandTime& time : times) commands.push_back({std::string(time.label), 0});
      seconds.resize(times.size());
      continue;
    }
    for (size_t i = 0; i < times.size(); ++i) seconds[i].push_back(times[i].seconds);
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    const auto middle = seconds[i].begin() + static_cast<ptrdiff_t>(seconds[i].size() / 2);
    std::nth_element(seconds[i].begin(), middle, seconds[i].end());
    commands[i].seconds = *middle;
  }
  model.context.weights->check_files();
  return commands;
}

}  // namespace akunu
