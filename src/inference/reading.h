// A task without output: reads a text that has ended as a prompt, while the engine has nothing else
// to do, so that the next prompt can take over what was generated, too.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cache/sequence_cache.h"
#include "inference/task.h"

namespace akunu {

class Reading final : public Task {
 public:
  explicit Reading(Unread unread) : Task(rows_of(unread), Choosing{}, INT32_MIN) {
    arrival = unread.id;  // of the text: who shortens that one means this, too
  }

  const std::vector<uint32_t>& chosen() const override { return none_; }
  void take_tokens(std::span<const uint32_t>) override {}
  std::span<float> logits_of(uint32_t, uint32_t) override { return {}; }

 protected:
  bool has_news() const override { return false; }

 private:
  static TaskRows rows_of(Unread& unread) {
    TaskRows rows;
    rows.first_output = static_cast<uint32_t>(unread.tokens.size());
    rows.tokens = std::move(unread.tokens);
    rows.adapters = std::move(unread.key.adapters);
    return rows;
  }

  const std::vector<uint32_t> none_;
};

}  // namespace akunu
