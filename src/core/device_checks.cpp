#include "core/device_checks.h"

#include <algorithm>

#include "core/error.h"

namespace akunu {
namespace {

void check_limit(std::string_view what, uint64_t asked, uint64_t limit) {
  if (asked > limit)
    throw ArgumentError("a submission has " + std::to_string(asked) + " " + std::string(what) +
                        ", the limit is " + std::to_string(limit));
}

void check_updates(std::span<const Update> updates, const SubmissionLimits& limits) {
  check_limit("updates", updates.size(), limits.max_updates);
  uint64_t n_bytes = 0;
  for (const Update& update : updates) {
    n_bytes += update.bytes.size();
    const uint64_t size = update.destination.buffer.size, offset = update.destination.offset;
    if (!update.destination || offset > size || update.bytes.size() > size - offset)
      throw ArgumentError("an update of " + std::to_string(update.bytes.size()) +
                          " bytes at byte " + std::to_string(offset) + " leaves its buffer of " +
                          std::to_string(size) + " bytes");
  }
  check_limit("update bytes", n_bytes, limits.max_update_bytes);
}

void check_command(const Command& command, int32_t waits_for, size_t index,
                   const std::string& label) {
  const OperationInfo& info = operation_info(command.operation);
  const std::string where =
      "command " + std::to_string(index) + " (" + label + ", " + std::string(info.name) + ")";
  if (!command.pipeline) throw ArgumentError(where + " has no pipeline");
  if (waits_for >= static_cast<int32_t>(index) || waits_for < -1)
    throw ArgumentError(where + " waits for command " + std::to_string(waits_for) +
                        ", which is not an earlier one");
  for (size_t slot = 0; slot < kMaxOperands; ++slot) {
    const bool is_operand = slot < info.operands.size();
    const Binding& binding = command.operands[slot];
    const std::string name =
        is_operand ? std::string(info.operands[slot].name) : "slot " + std::to_string(slot);
    if (!binding && is_operand && !info.operands[slot].optional)
      throw ArgumentError(where + " has nothing bound to " + name);
    if (binding && binding.offset > binding.buffer.size)
      throw ArgumentError(where + " binds " + name + " at byte " + std::to_string(binding.offset) +
                          " of a buffer of " + std::to_string(binding.buffer.size));
  }
}

}  // namespace

SubmissionLimits larger_of(const SubmissionLimits& a, const SubmissionLimits& b) {
  return {.max_rows = std::max(a.max_rows, b.max_rows),
          .max_updates = std::max(a.max_updates, b.max_updates),
          .max_update_bytes = std::max(a.max_update_bytes, b.max_update_bytes),
          .max_passes = std::max(a.max_passes, b.max_passes)};
}

uint32_t end_of_rows(std::span<const Pass> passes) {
  uint32_t end = 0;
  for (const Pass& pass : passes) end = std::max(end, pass.first_row + pass.n_rows);
  return end;
}

void check_replay(const Replay& replay, const SubmissionLimits& limits,
                  const StepMemory& (*memory_of)(Program program)) {
  check_limit("rows", replay.rows.size(), limits.max_rows);
  check_limit("spans", replay.spans.size(), limits.max_rows);
  check_limit("passes", replay.passes.size(), limits.max_passes);
  check_updates(replay.updates, limits);
  if (replay.passes.empty() && (!replay.rows.empty() || !replay.spans.empty()))
    throw ArgumentError("a submission has rows, but no pass whose memory they could go to");
  for (const Pass& pass : replay.passes) {
    if (pass.program.handle == nullptr)
      throw ArgumentError("a pass of a submission has no program");
    const StepMemory& memory = memory_of(pass.program);
    if (memory.rows.handle != memory_of(replay.passes.front().program).rows.handle)
      throw ArgumentError("the programs of a submission were compiled with different step memory");
    const uint64_t max_rows =
                       std::min({memory.rows.size / sizeof(Row),
                                 memory.statuses.size / sizeof(Status), uint64_t{limits.max_rows}}),
                   max_spans = memory.spans.size / sizeof(Span);
    check_limit("rows in a pass", uint64_t{pass.first_row} + pass.n_rows, max_rows);
    check_limit("spans in a pass", uint64_t{pass.first_span} + pass.n_spans, max_spans);
    check_limit("rows", replay.rows.size(), max_rows);
    check_limit("spans", replay.spans.size(), max_spans);
  }
}

void check_ticket(Ticket ticket, Ticket n_submitted, uint64_t n_kept) {
  if (ticket == 0 || ticket > n_submitted)
    throw ArgumentError("ticket " + std::to_string(ticket) +
                        " was never given out; the last one is " + std::to_string(n_submitted));
  if (ticket + n_kept <= n_submitted)
    throw ArgumentError("the outcome of ticket " + std::to_string(ticket) +
                        " is no longer kept; the last one is " + std::to_string(n_submitted));
}

void check_table(const DispatchTable& table) {
  if (table.labels.size() != table.commands.size() ||
      table.waits_for.size() != table.commands.size())
    throw ArgumentError("a table of " + std::to_string(table.commands.size()) + " commands has " +
                        std::to_string(table.labels.size()) + " labels and " +
                        std::to_string(table.waits_for.size()) + " dependencies");
  for (size_t i = 0; i < table.commands.size(); ++i)
    check_command(table.commands[i], table.waits_for[i], i, table.labels[i]);
}

void check_weight(const WeightSource& source) {
  const FormatInfo& info = format_info(source.format);
  const std::string what = "weight " + std::string(source.name) + " (" + std::string(info.name) +
                           " [" + std::to_string(source.rows) + ", " + std::to_string(source.k) +
                           "])";
  if (source.k % info.block_size != 0)
    throw ArgumentError(what + ": rows must be a multiple of " + std::to_string(info.block_size) +
                        " long");
  for (uint32_t plane = 0; plane < kMaxPlanes; ++plane) {
    const uint64_t bytes_per_row = plane_row_bytes(source.format, plane, source.k);
    const bool overflows = bytes_per_row != 0 && source.rows > UINT64_MAX / bytes_per_row;
    const uint64_t bytes = source.parts[plane].bytes.size();
    if (overflows || bytes != source.rows * bytes_per_row)
      throw ArgumentError(what + " has " + std::to_string(bytes) + " bytes" +
                          (plane > 0 ? " in part " + std::to_string(plane) : "") +
                          ", expected rows of " + std::to_string(bytes_per_row));
  }
}

void check_copy(std::string_view verb, const Binding& binding, uint64_t bytes) {
  if (!binding || binding.offset > binding.buffer.size ||
      bytes > binding.buffer.size - binding.offset)
    throw ArgumentError(std::string(verb) + " of " + std::to_string(bytes) + " bytes at byte " +
                        std::to_string(binding.offset) + " leaves the buffer of " +
                        std::to_string(binding.buffer.size) + " bytes");
}

void check_copies(std::span<const Copy> copies) {
  constexpr uint64_t kWord = 4;
  for (const Copy& copy : copies) {
    check_copy("copy", copy.from, copy.bytes);
    check_copy("copy", copy.to, copy.bytes);
    if (copy.from.offset % kWord != 0 || copy.to.offset % kWord != 0 || copy.bytes % kWord != 0)
      throw ArgumentError("copy of " + std::to_string(copy.bytes) + " bytes from byte " +
                          std::to_string(copy.from.offset) + " to byte " +
                          std::to_string(copy.to.offset) + " is not one of whole words");
    const uint64_t from = copy.from.offset, to = copy.to.offset;
    if (copy.from.buffer.handle == copy.to.buffer.handle && from < to + copy.bytes &&
        to < from + copy.bytes)
      throw ArgumentError("copy of " + std::to_string(copy.bytes) + " bytes from byte " +
                          std::to_string(from) + " to byte " + std::to_string(to) +
                          " of one buffer overlaps itself");
  }
}

std::vector<MemoryUse> MemoryLedger::uses() const {
  std::vector<MemoryUse> used;
  for (const MemoryUse& use : uses_)
    if (use.bytes > 0) used.push_back(use);
  return used;
}

uint64_t& MemoryLedger::at(std::string_view label, bool mapped) {
  for (MemoryUse& use : uses_)
    if (use.label == label && use.mapped == mapped) return use.bytes;
  uses_.push_back({.label = std::string(label), .bytes = 0, .mapped = mapped});
  return uses_.back().bytes;
}

}  // namespace akunu
