// One step in the making: rows, spans and passes in the order that the device wants them, and the
// updates that go before. Generated rows come before prompt rows. Within each of the two, rows of tasks
// that sample tokens come before rows of tasks that only want logits.
#pragma once

#include <vector>

#include "inference/context.h"
#include "inference/programs.h"
#include "inference/task.h"

namespace akunu {

class Step {
 public:
  // Both must outlive this.
  Step(const Context& context, const Programs& programs);

  void clear();
  bool empty() const { return rows_.empty(); }

  // Bytes must stay where they are until the step is submitted.
  void update(const Binding& destination, std::span<const std::byte> bytes);
  void update(std::span<const Update> updates);
  // What the device has to know of a sequence besides its pages: how it chooses, and its tokens.
  // False, and nothing done, where this step has no room for it beside others that begin.
  // `log`: its tokens where the sequence has others; empty: those.
  bool update_sequence(uint32_t sequence, const Choosing& choosing,
                       std::span<const uint32_t> log = {});
  bool update_sequence(uint32_t sequence, const Choosing&& gone_too_early) = delete;

  // Rows whose logits are wanted.
  enum class Logits : uint8_t { none, last, all };
  // A run of rows of one sequence from `first.position` on, which run the `single` or `few` kernels,
  // in groups of at most the programs' generated_rows_per_pass. A row sees the positions up to its own; where
  // `first.kv_length` is not 0, each sees that many. `choose`: the last row's token is chosen and logged, and the
  // row moves on. Of a run with kRowScored all rows with logits are scored. Returns the index of the
  // first.
  uint32_t add_generated(const Row& first, uint32_t n_rows, Logits logits, bool choose);
  // Rows of one sequence that generate, the first with the token chosen last and the others with
  // drafted ones: each of them chooses, and none moves on.
  uint32_t add_drafted(const Row& first, uint32_t n_rows);
  // As add_generated, of rows that run the `many` kernels, after all that generate. Those of an image all see
  // `first.kv_length` positions.
  // `align`: weights of cross-attention are wanted of rows with logits.
  uint32_t add_prompt(const Row& first, uint32_t n_rows, Logits logits, bool choose,
                      bool align = false);

  uint32_t n_rows() const { return static_cast<uint32_t>(rows_.size()); }
  uint32_t n_generated() const { return n_generated_; }
  uint32_t n_head_rows() const { return n_head_rows_; }
  // The row's logits lie there, after the step.
  uint32_t head_row(uint32_t row) const { return rows_[row].head_row; }

  // With `go_on`, the rows that the device has from the step before are used again: they must be
  // the same ones, moved on. `priority`: see Replay.
  Ticket submit(Device& device, uint32_t steps, bool go_on, int32_t priority = 0);
  // One step in two submissions, with room for the host's work between: `update` what tokens may be
  // chosen, of which the first needs to know nothing. A row that the first finds wrong is in its
  // outcome alone.
  Ticket submit_logits(Device& device, bool go_on, int32_t priority = 0);
  Ticket submit_choice(Device& device, int32_t priority = 0);
  // Runs a program over the rows of the prompt, in place of the step's own.
  Ticket submit_program(Device& device, Program program);
  // Behind a step, whose rows are given up: those of a prediction head over some of its rows, as they were
  // composed, while what they left is still in scratch. `add_ahead`: of this row. `draw`: a token is chosen of what the
  // head says, with this draw; kNone: none is. `wants_logits`: they lie in the row's head row.
  void begin_ahead();
  void add_ahead(uint32_t row, uint32_t draw, bool wants_logits);
  bool has_ahead() const { return n_ahead_ > 0; }
  Ticket submit_ahead(Device& device, int32_t priority = 0);
  const Row& row(uint32_t row) const { return rows_[row]; }
  std::span<Row> rows(uint32_t first, uint32_t n) { return std::span(rows_).subspan(first, n); }
  // Runs one step, command after command; see Device::profile.
  std::vector<CommandTime> profile(Device& device);

 private:
  // A run of neighbouring rows, as a pass covers it.
  struct Run {
    uint32_t first_row = 0, n_rows = 0;
    uint32_t first_head_row = 0, n_head_rows = 0;
    uint32_t first_span = 0, n_spans = 0;
    bool is_adapted = false;  // some row has an adapter
    bool generates = false;
    bool is_aligned = false;  // weights of cross-attention are wanted of some rows
  };

  enum class Part : uint8_t { all, logits, choice };

  void add_rows(Run& run, const Row& first, uint32_t n_rows, Logits logits, bool choose);
  Replay make_replay(Part part, bool go_on);
  // Of the step's rows, and of the passes added so far.
  Replay replay_of_passes() const;
  void add_pass(Program program, const Run& run);
  void add_choices(Program program);

  const Context& context_;
  const Programs& programs_;
  std::vector<Row> rows_;
  std::vector<Span> spans_;
  std::vector<Update> updates_;
  uint64_t sequence_bytes_ = 0;  // of update_sequence
  std::vector<Run> generated_;   // groups, each of which is a pass
  Run prompt_;
  uint32_t n_generated_ = 0;
  uint32_t n_head_rows_ = 0;
  uint32_t n_generated_choosing_ = 0;  // rows up to the last that chooses or is scored
  uint32_t n_prompt_choosing_ = 0;
  bool has_scored_ = false;
  uint32_t n_ahead_ = 0;  // rows of a prediction head
  std::vector<Pass> passes_;
};

// What Step::update_sequence sends.
void append_sequence(const Context& context, uint32_t sequence, const Choosing& choosing,
                     std::span<const uint32_t> log, std::vector<Update>& updates);

// Until the device has done what was submitted. Throws DeviceError where the device failed, and what
// Weights::check_files throws. What went wrong with single rows is in the outcome.
Outcome await(const Context& context, Ticket ticket);
// The same; throws a DeviceError that tells what is wrong with the first bad row, if there is one.
void await_all_well(const Context& context, Ticket ticket);

// What is wrong with a row: which operation found it, at which position of its text, and why.
std::string describe(const Status& status, const KvCache& cache);

}  // namespace akunu
