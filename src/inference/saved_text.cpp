// What the scheduler does for texts that are saved and loaded: checks, then a task in the queue. The
// cache's part is cache/saved_positions.cpp.
#include "inference/saved_text.h"

#include <string>

#include "core/error.h"
#include "core/memory_left.h"
#include "inference/scheduler.h"

namespace akunu {

std::vector<GroupShape> Scheduler::saved_groups() const {
  if (const uint32_t n_ranks = model_.context.device->n_ranks(); n_ranks > 1)
    throw UnsupportedModelError("texts of a model that is computed by " + std::to_string(n_ranks) +
                                " GPUs cannot be saved: each has the keys and values of its heads");
  std::vector<GroupShape> groups;
  for (const CacheGroup& group : model_.context.cache.groups()) {
    if (group.shape.is_cross())
      throw UnsupportedModelError("texts of this model cannot be saved: a part of its cache is '" +
                                  name_of(group.shape.kind) + "', and belongs to one text alone");
    groups.push_back(group.shape);
  }
  return groups;
}

std::shared_ptr<SavingTask> Scheduler::save(std::vector<uint32_t> tokens) {
  check(tokens);
  const std::vector<GroupShape> groups = saved_groups();
  const auto n = static_cast<uint32_t>(tokens.size());
  SavedPositions room{first_entries_to_save(groups, n), {}};
  const uint64_t bytes = saved_bytes(groups, room.first_entries, n);
  if (const MemoryLeft left = model_.context.device->memory_left();
      bytes >= kAskSystemFrom && !left.fits(bytes))
    throw OutOfMemoryError("keys and values of " + std::to_string(n) + " tokens need " +
                           mebibytes(bytes) + " beside the cache; " +
                           describe_refusal(bytes, left));
  room.bytes.resize(bytes);
  auto task = std::make_shared<SavingTask>(std::move(tokens), std::move(room));
  queue_.add(task);
  return task;
}

std::shared_ptr<RestoringTask> Scheduler::restore(std::vector<uint32_t> tokens,
                                                  SavedPositions saved) {
  check(tokens);
  const std::vector<GroupShape> groups = saved_groups();
  const auto n = static_cast<uint32_t>(tokens.size());
  if (saved.first_entries.size() != groups.size())
    throw ArgumentError("positions of " + std::to_string(saved.first_entries.size()) +
                        " cache groups; this model has " + std::to_string(groups.size()));
  const std::vector<uint32_t> least = first_entries_to_save(groups, n);
  for (size_t group = 0; group < groups.size(); ++group)
    if (const uint32_t most = saved_entries(groups[group], n);
        saved.first_entries[group] < least[group] || saved.first_entries[group] > most)
      throw ArgumentError("saved pages of group " + std::to_string(group) + " begin at entry " +
                          std::to_string(saved.first_entries[group]) + "; possible are " +
                          std::to_string(least[group]) + " to " + std::to_string(most));
  if (const uint64_t bytes = saved_bytes(groups, saved.first_entries, n);
      saved.bytes.size() != bytes)
    throw ArgumentError("saved positions have " + std::to_string(saved.bytes.size()) +
                        " bytes; those of " + std::to_string(n) + " tokens have " +
                        std::to_string(bytes));
  auto task = std::make_shared<RestoringTask>(std::move(tokens), std::move(saved));
  queue_.add(task);
  return task;
}

}  // namespace akunu
