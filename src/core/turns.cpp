#include "core/turns.h"

#include <cassert>

namespace akunu {

void Turns::take(const void* owner, int32_t priority) {
  std::unique_lock lock(mutex_);
  if (n_taken_ > 0 && owner_ == owner) {
    ++n_taken_;
    return;
  }
  Waiter waiter{.owner = owner, .priority = priority};
  Waiter** place = &first_;
  while (*place != nullptr && (*place)->priority >= priority) place = &(*place)->next;
  waiter.next = *place;
  *place = &waiter;
  changed_.wait(lock, [&] { return n_taken_ == 0 && first_ == &waiter; });
  first_ = waiter.next;
  owner_ = owner;
  n_taken_ = 1;
}

void Turns::give_back(const void* owner) {
  static_cast<void>(owner);
  {
    const std::lock_guard lock(mutex_);
    assert(n_taken_ > 0 && owner_ == owner);
    if (--n_taken_ > 0 || first_ == nullptr) return;
  }
  changed_.notify_all();
}

uint32_t Turns::n_waiting() const {
  const std::lock_guard lock(mutex_);
  uint32_t n = 0;
  for (const Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) ++n;
  return n;
}

bool Turns::is_wanted(const void* owner) const {
  const std::lock_guard lock(mutex_);
  for (const Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next)
    if (waiter->owner != owner) return true;
  return false;
}

bool Turns::is_used(const void* owner) const {
  {
    const std::lock_guard lock(mutex_);
    if (n_taken_ > 0 && owner_ != owner) return true;
  }
  return is_wanted(owner);
}

}  // namespace akunu
