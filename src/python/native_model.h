// _core.NativeModel: a loaded model, which starts requests and says what it is. Callers keep its engine for as
// long as they are inside; a forked child is refused.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arguments.h"
#include "inference/engine.h"
#include "native_constraint.h"
#include "native_generation.h"
#include "native_images.h"
#include "native_logits.h"
#include "native_speech.h"

namespace akunu::python {

class NativeModel {
 public:
  explicit NativeModel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  ~NativeModel() { close(); }
  NativeModel(const NativeModel&) = delete;
  NativeModel& operator=(const NativeModel&) = delete;

  std::unique_ptr<NativeGeneration> start(
      const Tokens& tokens, uint32_t max_tokens, std::vector<uint32_t> stop_ids,
      const Sampling& sampling, const std::map<uint32_t, float>& logit_bias,
      std::vector<uint32_t> dry_breakers, std::optional<uint32_t> logprobs,
      std::optional<uint32_t> prompt_logprobs, const NativeGeneration* shares_with, uint32_t choice,
      int32_t priority, NativeConstraint* constraint, const std::map<uint32_t, float>& adapters,
      const Window& window, const Rules* rules, uint32_t speculation, bool keeps_positions,
      const NativeGeneration* goes_on_from, const GivenImages& images);
  std::unique_ptr<NativeLogits> start_logits(LogitsRequest request);
  std::unique_ptr<NativeLogits> start_encode(EncodeRequest request);
  // float32 [n - first, vocab_size]
  pybind11::array_t<float> logits(LogitsRequest request);

  bool wait_until_idle(int timeout_ms) const;
  // Ends what is under way; memory goes when the last caller inside has left.
  void close();

  pybind11::dict config() const;
  // Bytes by label, as the device counts them.
  pybind11::dict memory() const;
  // What waits and runs, and the pages of each group of the cache. Waits for nobody.
  pybind11::dict occupancy() const;

  // Throws Error where it is closed, DeviceError in a forked child.
  std::shared_ptr<Engine> engine() const;

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace akunu::python
