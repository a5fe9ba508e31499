// A pass of many rows for one text: an encoder's over an image or a window of speech, or that of an image's rows in the
// text. It runs in pieces, between which other texts' steps run. A piece is some rows of one part of the pass, or
// several whole parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/rows.h"

namespace akunu {

struct Active;
struct Model;

// See Forward::encode and Forward::image_rows.
struct PassPart {
  Program program;
  uint32_t n_rows = 0;
  uint32_t rows_per_output = 0;  // as many neighbouring rows become one head row; 0: none does
};

// The measured time of a row in each part of a pass.
class CutPace {
 public:
  explicit CutPace(size_t n_parts) : seconds_(n_parts) {}

  double seconds_per_row(size_t part) const { return seconds_[part]; }  // 0: not known yet
  // A piece that ran: rows of the parts from `first` up to, not including, `end`, and the time that they were expected to
  // take. `took` compares that with the time they took.
  struct Expected {
    size_t first = 0, end = 0;
    uint32_t n_rows = 0;
    double seconds = 0;  // 0: not known yet; then the piece has one part
  };
  void took(const Expected& piece, double seconds);

 private:
  std::vector<double> seconds_;
};

// What a piece may take: as many rows as are likely to end within `seconds`, and in any case `least_rows` of a part.
struct PieceSize {
  double seconds = 0;
  uint32_t least_rows = 0;
};

class CutPass {
 public:
  virtual ~CutPass() = default;
  CutPass(const CutPass&) = delete;
  CutPass& operator=(const CutPass&) = delete;

  bool is_done() const { return part_ == parts_.size(); }
  // Runs the next piece for the text, with no other submission in flight. Throws DeviceError. Values that parts hand on
  // are the model's: once a pass has begun, no other may run before it is done or given up.
  void run_piece(const PieceSize& size, Active& active);

 protected:
  // `model`, `pace`: must outlive this. `pace`: of as many parts.
  CutPass(Model& model, CutPace& pace, std::vector<PassPart> parts);

  // Called before each piece of a part.
  virtual Program program_of(size_t part) const { return parts_[part].program; }
  // Fills rows_ and seen_ for a part.
  virtual void lay_out(const PassPart& part) = 0;
  // What the device must know before the next piece, which begins with this part; the bytes stay until it was submitted.
  virtual std::span<const Update> updates(size_t /*first_part*/) { return {}; }
  // What came out of head rows, from this output on.
  virtual void take_outputs(uint32_t /*first*/, uint32_t /*n*/) {}
  virtual void finish(Active&) {}

  static Row row_at(uint32_t position);

  Model& model_;
  std::vector<Row> rows_;
  std::vector<Span> seen_;  // what rows see, by Row::span

 private:
  CutPace::Expected add_passes(const PieceSize& size);
  uint32_t rows_within(const PieceSize& size, double taken) const;
  void add_pass(const PassPart& part, uint32_t n_rows);

  const std::vector<PassPart> parts_;
  CutPace& pace_;
  size_t part_ = 0;  // the next piece begins there
  uint32_t row_ = 0;
  std::vector<Span> spans_;  // of a piece
  std::vector<Pass> passes_;
};

}  // namespace akunu
