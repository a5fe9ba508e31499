// The scheduler's part in token masks: who needs some, and how long a step waits for them. What they
// are: text_masks.h. Who computes them: masks.h.
#include <algorithm>
#include <chrono>

#include "inference/scheduler.h"

namespace akunu {
namespace {

// Most masks take microseconds. The scheduler waits this long for them before it submits: one submission is
// cheaper than two, and tokens that the grammar forces then get drafted rows in it.
constexpr std::chrono::microseconds kBeforeStep{100};
// A step waits this long between its logits and its sampling for masks that are not ready.
constexpr std::chrono::microseconds kBeforeChoice{1000};
// With nothing to run, the scheduler looks this often for cancelled texts.
constexpr std::chrono::microseconds kBetweenLooks{10'000};

}  // namespace

// For every text with a constraint, already while its prompt is computed: the first mask takes longest.
void Scheduler::ask_for_masks() {
  for (const Active& active : active_) {
    const Task& task = *active.task;
    if (!task.is_constrained() || task.masks()->is_asked() || task.masks()->is_known()) continue;
    // The first token's row reads the prompt, and has no drafted ones behind it.
    task.masks()->ask(task.chosen().empty() ? 0 : kMaxFewRows - 1);
    masks_.queue(active.task);
  }
}

// Requests a mask for each drafted row too, once the composer has decided how many rows are drafted.
void Scheduler::ask_for_drafted() {
  for (const Active& active : active_) {
    TextMasks* const masks = active.is_masked ? active.task->masks() : nullptr;
    if (masks == nullptr || masks->is_asked() || masks->has_masks(active.drafted.size())) continue;
    masks->ask(active.drafted);
    masks_.queue(active.task);
  }
}

bool Scheduler::has_masks() const {
  return std::ranges::all_of(active_, [](const Active& active) {
    return !active.is_masked || active.task->masks()->has_masks(active.drafted.size());
  });
}

void Scheduler::send_masks() {
  for (const Active& active : active_) {
    if (!active.is_masked || active.is_late) continue;
    const uint32_t last_row = active.first_row + active.n_rows - 1;
    const auto n_drafted = static_cast<uint32_t>(active.drafted.size());
    step_.update(model_.context.mask(step_.head_row(last_row - n_drafted)),
                 std::as_bytes(active.task->masks()->masks(n_drafted)));
  }
}

void Scheduler::wait_before_step() {
  queue_.wait_until(std::chrono::steady_clock::now() + kBeforeStep, [&] {
    return std::ranges::none_of(active_, [&](const Active& active) {
      const TextMasks* const masks = active.task->masks();
      return masks != nullptr && masks->is_asked() && !masks->is_late &&
             composer_.is_generating(active);
    });
  });
}

void Scheduler::wait_before_choice() {
  ask_for_drafted();
  queue_.wait_until(std::chrono::steady_clock::now() + kBeforeChoice, [&] { return has_masks(); });
}

void Scheduler::wait_for_somebody() {
  queue_.wait_until(std::chrono::steady_clock::now() + kBetweenLooks, [&] {
    return queue_.has_news() || std::ranges::any_of(active_, [](const Active& active) {
             return active.waits && !active.task->masks()->is_asked();
           });
  });
}

}  // namespace akunu
