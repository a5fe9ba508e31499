// What an image becomes: the pass over its patches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "inference/cut_pass.h"
#include "inference/image.h"

namespace akunu {

// Fills image.vectors.
class ImagePass final : public CutPass {
 public:
  // `model`, `pace`: must outlive this.
  ImagePass(Model& model, CutPace& pace, std::shared_ptr<Image> image);

 protected:
  void lay_out(const PassPart& part) override;
  void take_outputs(uint32_t first, uint32_t n) override;
  void finish(Active& active) override;

 private:
  const std::shared_ptr<Image> image_;
  std::vector<float> vectors_;
};

}  // namespace akunu
