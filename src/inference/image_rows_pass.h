// The rows of an image in a text: the pass that makes their keys and values. They see each other in both directions, so
// no step can have some of them before it is done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence_cache.h"
#include "inference/active.h"
#include "inference/cut_pass.h"
#include "inference/image.h"

namespace akunu {

// Its rows begin with the first one that has not run. Rows with outputs, and the last row of a prompt, run again in
// steps, for which the cache then has all that they see.
class ImageRowsPass final : public CutPass {
 public:
  // All must outlive this. The device comes to know the text with the first piece.
  ImageRowsPass(Model& model, CutPace& pace, SequenceCache& cache, Active& active,
                const PlacedImage& image);

 protected:
  // Adapters that come or go during the pass are other programs.
  Program program_of(size_t part) const override;
  void lay_out(const PassPart& part) override;
  std::span<const Update> updates(size_t first_part) override;
  void finish(Active& active) override;

 private:
  SequenceCache& cache_;
  const Task& task_;
  const uint32_t sequence_;
  const uint32_t first_, end_;  // positions of the rows
  const std::span<const float> vectors_;
  std::span<const uint32_t> log_;  // see Step::update_sequence
  bool is_known_;                  // the text, to the device
  std::vector<Update> updates_;
};

}  // namespace akunu
