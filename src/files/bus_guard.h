// Surviving SIGBUS: what the system sends to a thread that touches a page of a mapped file which is
// no longer there, because somebody truncated the file or its disk failed.
//
// While a BusGuard lives, such a page is replaced by zeros, with all behind it, the guard remembers
// that, and the thread goes on with numbers that are worth nothing; whoever uses them looks at
// `damaged` before they are believed. The handler is installed with the first guard and goes with
// the last. Faults outside guarded memory go to the handler that was there before, and so does a
// SIGBUS that somebody sends.
#pragma once

#include <cstddef>
#include <span>

namespace akunu {

class BusGuard {
 public:
  // Guards a mapping of the file behind `descriptor`, from its start; both must stay as they are
  // until the guard is gone.
  BusGuard(std::span<const std::byte> mapping, int descriptor);
  ~BusGuard();
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  // Whether pages have been lost. Any thread may ask.
  bool damaged() const;

 private:
  struct Slot;
  friend struct GuardRegistry;
  Slot* slot_;
};

}  // namespace akunu
