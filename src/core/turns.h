// Whose turn it is on a device that several models share. A turn is a submission, or several of one
// model behind each other while nobody else waits; who waits gets it by priority, then in the order
// in which they came.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace akunu {

class Turns {
 public:
  // Returns when it is the turn of `owner`. An owner whose turn it is may take it again, at once,
  // and gives it back as often. Neither allocates.
  void take(const void* owner, int32_t priority);
  void give_back(const void* owner);
  // Somebody else than `owner` waits for a turn.
  bool is_wanted(const void* owner) const;
  // Whether anyone but `owner` has the turn or waits for one.
  bool is_used(const void* owner) const;
  uint32_t n_waiting() const;

 private:
  // In the list of those that wait, which is in order. It lies on the stack of who waits.
  struct Waiter {
    const void* owner = nullptr;
    int32_t priority = 0;
    Waiter* next = nullptr;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const void* owner_ = nullptr;
  uint32_t n_taken_ = 0;
  Waiter* first_ = nullptr;
};

}  // namespace akunu
