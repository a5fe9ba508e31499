// What an image becomes: the pass over its patches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "inference/encoder_pass.h"
#include "inference/image.h"

namespace akunu {

// Fills image.vectors.
class ImagePass final : public EncoderPass {
 public:
  // `model`, `pace`: must outlive this.
  ImagePass(Model& model, EncoderPace& pace, std::shared_ptr<Image> image);

 protected:
  void lay_out(const EncoderPart& part) override;
  void take_outputs(uint32_t first, uint32_t n) override;
  void finish() override;

 private:
  const std::shared_ptr<Image> image_;
  std::vector<float> vectors_;
};

}  // namespace akunu
