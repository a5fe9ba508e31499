// The pass of an encoder over one input of a text, an image or a window of speech. It runs in pieces, between which
// other texts' steps run. A piece is some rows of one part of the encoder, or several whole parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/arch.h"
#include "core/device.h"
#include "core/forward.h"

namespace akunu {

struct Model;

// See Forward::encode.
struct EncoderPart {
  Program program;
  uint32_t n_rows = 0;
  uint32_t rows_per_output = 0;  // as many neighbouring rows become one head row; 0: none does
};

// The programs of an encoder, in order; none where a model has no encoder in front of its decoder.
struct EncoderPrograms {
  std::vector<EncoderPart> parts;
  Binding input;   // float32 [rows of the first part, numbers]
  Binding output;  // of images: float32 [head rows, dim of the text]
};

// Their parts. `compile`: of nodes for prompt rows.
EncoderPrograms compile_encoder(const ArchDescriptor& arch, const Forward& forward,
                                const std::function<Program(const std::vector<Node>&)>& compile);

// The measured time of a row in each part of the encoder.
class EncoderPace {
 public:
  explicit EncoderPace(size_t n_parts) : seconds_(n_parts) {}

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

class EncoderPass {
 public:
  virtual ~EncoderPass() = default;
  EncoderPass(const EncoderPass&) = delete;
  EncoderPass& operator=(const EncoderPass&) = delete;

  bool is_done() const { return part_ == encoder_.parts.size(); }
  // Runs the next piece, with no other submission in flight. Throws DeviceError. Values that parts hand on are the
  // model's: once a pass has begun, no other may run before it is done or given up.
  void run_piece(const PieceSize& size, int32_t priority);

 protected:
  // Both must outlive this. `input` goes to the device.
  EncoderPass(Model& model, EncoderPace& pace, std::span<const float> input);

  // Fills rows_ and seen_ for a part.
  virtual void lay_out(const EncoderPart& part) = 0;
  // What the device must know before the next piece; the bytes stay until it was submitted.
  virtual std::span<const Update> updates() { return {}; }
  // What came out of head rows, from this output on.
  virtual void take_outputs(uint32_t /*first*/, uint32_t /*n*/) {}
  virtual void finish() {}

  static Row row_at(uint32_t position);

  Model& model_;
  const EncoderPrograms& encoder_;
  std::vector<Row> rows_;
  std::vector<Span> seen_;  // what rows see, by Row::span

 private:
  EncoderPace::Expected add_passes(const PieceSize& size);
  uint32_t rows_within(const PieceSize& size, double taken) const;
  void add_pass(const EncoderPart& part, uint32_t n_rows);

  EncoderPace& pace_;
  size_t part_ = 0;  // the next piece begins there
  uint32_t row_ = 0;
  std::vector<Span> spans_;  // of a piece
  std::vector<Pass> passes_;
};

}  // namespace akunu
