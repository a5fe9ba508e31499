// One step in the making: rows, spans and passes in the order that the device wants them, and the
// updates that go before. Rows that generate come first, prompt rows behind them.
#pragma once

#include <array>
#include <vector>

#include "inference/model.h"

namespace akunu {

class Step {
 public:
  explicit Step(const Model& model);

  void clear();
  bool empty() const { return rows_.empty(); }

  // Bytes must stay where they are until the step is submitted.
  void update(const Binding& destination, std::span<const std::byte> bytes);
  void update(std::span<const Update> updates);
  // What the device has to know of a sequence besides its pages: its record and its tokens.
  void update_sequence(uint32_t sequence, const SequenceRecord& record);

  // A row that generates: runs the `single` or `few` kernels. All of them before any prompt rows.
  // Returns its index.
  uint32_t add_generated(const Row& row);
  // A run of prompt rows of one sequence from `first.position` on. Logits for the last row, for
  // all, or for none; `chain_last`: the last row's token is chosen and logged.
  enum class Logits : uint8_t { none, last, all };
  uint32_t add_prompt(const Row& first, uint32_t n_rows, Logits logits, bool chain_last);

  uint32_t n_rows() const { return static_cast<uint32_t>(rows_.size()); }
  uint32_t n_generated() const { return n_generated_; }

  // `choose`: run the sampler and move chained rows on. With `go_on`, the rows that the device has
  // from the step before are used again: they must be the same ones, moved on.
  Ticket submit(Device& device, uint32_t steps, bool choose, bool go_on);
  // Runs one step, the sampler included, command after command; see Device::profile.
  std::vector<CommandTime> profile(Device& device);

 private:
  // Most passes that a step has: two bodies, two logits, one choice.
  using Passes = std::array<Pass, 5>;
  Replay make_replay(Passes& passes, bool choose, bool go_on) const;
  void add_span(uint32_t sequence, uint32_t first_row, uint32_t n_rows);

  const Model& model_;
  std::vector<Row> rows_;
  std::vector<Span> spans_;
  std::vector<Update> updates_;
  uint32_t n_generated_ = 0;
  uint32_t n_generated_head_rows_ = 0;
  uint32_t n_head_rows_ = 0;
};

// Until the device has done what was submitted. Throws DeviceError, which names command and row, where that failed,
// and what Model::check_files throws.
void await(Model& model, Ticket ticket);

}  // namespace akunu
