// What the scheduler does for texts that are saved and loaded: a task in the queue. request_checks.h has the checks. The
// cache's part is cache/saved_positions.cpp.
#include "inference/saved_text.h"

#include "inference/request_checks.h"
#include "inference/scheduler.h"

namespace akunu {

std::shared_ptr<SavingTask> Scheduler::save(std::vector<uint32_t> tokens) {
  check_process();
  check_tokens(model_, tokens);
  SavedPositions room = room_to_save(model_, static_cast<uint32_t>(tokens.size()));
  auto task = std::make_shared<SavingTask>(std::move(tokens), std::move(room));
  queue_.add(task);
  return task;
}

std::shared_ptr<RestoringTask> Scheduler::restore(std::vector<uint32_t> tokens,
                                                  SavedPositions saved) {
  check_process();
  check_tokens(model_, tokens);
  check_saved(model_, static_cast<uint32_t>(tokens.size()), saved);
  auto task = std::make_shared<RestoringTask>(std::move(tokens), std::move(saved));
  queue_.add(task);
  return task;
}

}  // namespace akunu
