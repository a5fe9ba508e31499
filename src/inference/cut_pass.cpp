// How a pass is cut.
//
// 1. What it does. `run_piece` submits passes over rows of its parts, in order, as many as are likely to
//    end within the time that it gets, and measures how long they took.
// 2. What bounds it. A piece reads the weights of its part. With few rows, reading them takes as long as multiplying.
// 3. Why it has the bits of the whole pass. A row's arithmetic does not depend on other rows, and a part begins
//    where all rows must be complete (Forward::encode, Forward::image_rows).
#include "inference/cut_pass.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "inference/active.h"
#include "inference/model.h"
#include "inference/step.h"

namespace akunu {

void CutPace::took(const Expected& piece, double seconds) {
  if (piece.seconds == 0) {
    seconds_[piece.first] = seconds / piece.n_rows;
    return;
  }
  // A piece that was interrupted says little.
  const double factor = (1 + std::min(seconds / piece.seconds, 4.0)) / 2;
  for (size_t part = piece.first; part < piece.end; ++part) seconds_[part] *= factor;
}

Row CutPass::row_at(uint32_t position) {
  Row row{};
  row.position = position;
  row.kv_length = position + 1;
  row.flags = kRowActive | kRowPrompt;
  row.head_row = row.adapter = row.last_position = row.second_segment = kNone;
  return row;
}

CutPass::CutPass(Model& model, CutPace& pace, std::vector<PassPart> parts)
    : model_(model), parts_(std::move(parts)), pace_(pace) {}

void CutPass::run_piece(const PieceSize& size, Active& active) {
  const auto began = std::chrono::steady_clock::now();
  if (row_ == 0) lay_out(parts_[part_]);
  const CutPace::Expected piece = add_passes(size);
  await_all_well(model_.context,
                 model_.context.device->submit({.rows = rows_,
                                                .spans = spans_,
                                                .updates = updates(piece.first),
                                                .passes = passes_,
                                                .priority = active.task->priority()}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  pace_.took(piece, took.count());
  if (const Pass& pass = passes_.front(); pass.n_head_rows > 0)
    take_outputs(pass.first_span, pass.n_head_rows);
  if (is_done()) finish(active);
}

// Adds passes as long as there is time, and advances to where the next piece begins.
CutPace::Expected CutPass::add_passes(const PieceSize& size) {
  passes_.clear();
  spans_ = seen_;
  const PassPart& first = parts_[part_];
  CutPace::Expected piece{.first = part_, .end = part_};
  while (!is_done() && passes_.size() < model_.context.submission_limits.max_passes) {
    const PassPart& part = parts_[part_];
    // Others have other rows, or outputs.
    if (part.n_rows != first.n_rows || part.rows_per_output != first.rows_per_output) break;
    const double seconds_per_row = pace_.seconds_per_row(part_);
    const uint32_t n_rows = rows_within(size, piece.seconds);
    if (n_rows == 0) break;
    add_pass(part, n_rows);
    piece.end = part_ + 1;
    piece.n_rows += n_rows;
    piece.seconds += n_rows * seconds_per_row;
    row_ += n_rows;
    if (row_ < part.n_rows) break;
    row_ = 0;
    ++part_;
    if (seconds_per_row == 0) break;  // what it takes is measured alone
  }
  return piece;
}

// Rows of the next part, in a piece whose passes so far are expected to take `taken` seconds.
uint32_t CutPass::rows_within(const PieceSize& size, double taken) const {
  const PassPart& part = parts_[part_];
  const bool is_first = passes_.empty();
  uint32_t most = part.n_rows - row_;
  uint32_t unit = kMaxFewRows;  // a kernel reads weights once for as many
  if (part.rows_per_output > 0) {
    unit = part.rows_per_output;
    most = std::min(most, unit * model_.context.device->chip().max_head_rows);
  }
  const double seconds_per_row = pace_.seconds_per_row(part_);
  double n = is_first ? std::max(size.least_rows, unit) : 0;
  if (seconds_per_row > 0) n = std::max(n, (size.seconds - taken) / seconds_per_row);
  if (n >= most) return most;
  return static_cast<uint32_t>(n) / unit * unit;
}

void CutPass::add_pass(const PassPart& part, uint32_t n_rows) {
  Pass pass{.program = program_of(part_), .first_row = row_, .n_rows = n_rows};
  if (part.rows_per_output > 0) {
    pass.n_head_rows = pass.n_spans = n_rows / part.rows_per_output;
    pass.first_span = row_ / part.rows_per_output;
    for (uint32_t i = 0; i < pass.n_head_rows; ++i)
      rows_[row_ + (i + 1) * part.rows_per_output - 1].head_row = i;
  } else {  // a span of the rows that run, next to the span of all rows, which they see
    pass.n_spans = 1;
    pass.first_span = static_cast<uint32_t>(spans_.size());
    spans_.push_back({seen_[0].sequence, row_, n_rows, 0});
  }
  passes_.push_back(pass);
}

}  // namespace akunu
