// The process that made an object.
//
// A forked child inherits the memory of its parent and one thread: nobody there can join the others,
// unlock what they held, or use what the system gave to the parent's process (GPUs, event queues). An
// object with threads or locks keeps a HomeProcess. In a child it takes no lock, joins nothing and gives
// nothing back; what is asked of it is refused.
#pragma once

#include <unistd.h>

#include "core/error.h"

namespace akunu {

class HomeProcess {
 public:
  HomeProcess() : home_(getpid()) {}

  // Whether this is another process than the one that made the object. Costs one system call.
  bool is_another() const { return getpid() != home_; }

  // Throws DeviceError in such a process: `message` says what to do there.
  void refuse_elsewhere(const char* message) const {
    if (is_another()) throw DeviceError(message);
  }

 private:
  pid_t home_;
};

}  // namespace akunu
