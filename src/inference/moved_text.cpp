#include "inference/moved_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory_left.h"
#include "inference/step.h"

namespace akunu {

void Generation::take_positions(const PositionCopies& copies, uint32_t slot) {
  SavedPositions kept = copies.room(slot);
  copies.read(slot, kept);
  const std::lock_guard lock(mutex_);
  kept_ = std::move(kept);
}

SavedPositions Generation::take_kept() {
  const std::lock_guard lock(mutex_);
  return std::exchange(kept_, {});
}

std::vector<uint32_t> Generation::text() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> text = rows().tokens;
  text.insert(text.end(), tokens_.begin(), tokens_.end());
  return text;
}

namespace {

std::vector<GroupShape> groups_of(const Context& context) {
  std::vector<GroupShape> groups;
  for (const CacheGroup& group : context.cache.groups()) groups.push_back(group.shape);
  return groups;
}

}  // namespace

void refuse_unless_kept_fits(const Context& context) {
  const std::vector<GroupShape> groups = groups_of(context);
  std::vector<uint32_t> first_entries;
  for (const GroupShape& group : groups)
    first_entries.push_back(group.needed(context.n_positions(), context.n_positions()).first);
  const uint64_t bytes = saved_bytes(groups, first_entries, context.n_positions());
  if (bytes < kAskSystemFrom) return;
  if (const MemoryLeft left = context.device->memory_left(); !left.fits(bytes))
    throw OutOfMemoryError(
        "a text that shifts keeps its keys and values when the context is full, " +
        mebibytes(bytes) + " beside the cache; " + describe_refusal(bytes, left) +
        "; context_overflow='reread' needs none of it");
}

std::shared_ptr<const MovedPositions> positions_of_text_before(const Context& context,
                                                               Generation& before,
                                                               const GenerateRequest& request) {
  if (!before.is_over())
    throw ArgumentError("a text goes on from another one that has not ended yet");
  const SavedPositions kept = before.take_kept();
  if (kept.bytes.empty() || request.prompt_logprobs != kNone ||
      request.adapters != before.rows().adapters)
    return nullptr;
  const std::optional<Moves> moves = moves_between(before.text(), request.prompt);
  if (!moves) return nullptr;
  std::optional<MovedPositions> moved = move_positions(
      groups_of(context), kept, *moves, static_cast<uint32_t>(request.prompt.size()) - 1);
  if (!moved) return nullptr;
  // What the text before had generated, or had moved itself, is not as a prompt
  // would have it.
  moved->n_exact = std::min({moved->n_exact, before.n_exact(), before.n_given()});
  return std::make_shared<const MovedPositions>(std::move(*moved));
}

void turn_keys(Context& context, KeyRotations& rotations, Sequences& sequences,
               const MovedPositions& moved, uint32_t sequence) {
  Device& device = *context.device;
  rotations.write_turns(-static_cast<double>(moved.by));
  std::vector<Row> rows;
  for (uint32_t group = 0; group < rotations.programs().size(); ++group) {
    const Program program = rotations.programs()[group].get();
    if (program.handle == nullptr) continue;  // its keys have no positions
    uint32_t position = std::max(moved.first, moved.saved.first_entries[group] * kPagePositions);
    while (position < moved.n) {
      rows.resize(std::min(moved.n - position, context.sizes.max_prompt_rows));
      for (Row& row : rows) {
        row = Row{};
        row.sequence = sequence;
        row.position = position++;
        row.kv_length = row.position + 1;
        row.flags = kRowActive | kRowPrompt;
        row.head_row = row.adapter = row.last_position = row.second_segment = kNone;
      }
      const auto n_rows = static_cast<uint32_t>(rows.size());
      const Span span{sequence, 0, n_rows, 0};
      const Pass pass{.program = program, .n_rows = n_rows, .n_spans = 1};
      const Ticket ticket = device.submit({.rows = rows,
                                           .spans = std::span(&span, 1),
                                           .updates = sequences.take_unsent(sequence),
                                           .passes = std::span(&pass, 1)});
      await_all_well(context, ticket);
    }
  }
}

}  // namespace akunu
