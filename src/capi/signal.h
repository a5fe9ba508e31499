// A descriptor to wait on: what akunu_get_descriptor gives.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "core/error.h"

namespace akunu::capi {

// A descriptor that can be read from `tell` on until `forget`.
class Signal {
 public:
  Signal() {
    int ends[2];
    if (pipe(ends) != 0) throw DeviceError("the system gave no pipe for a descriptor to wait on");
    read_end_ = ends[0];
    write_end_ = ends[1];
    for (const int end : ends) {
      fcntl(end, F_SETFL, O_NONBLOCK);
      fcntl(end, F_SETFD, FD_CLOEXEC);
    }
  }
  ~Signal() {
    close(read_end_);
    close(write_end_);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  int descriptor() const { return read_end_; }

  // One byte is in the pipe at most, so writing it neither blocks nor fails.
  void tell() {
    if (told_.exchange(true)) return;
    const char byte = 1;
    static_cast<void>(!write(write_end_, &byte, 1));
  }
  void forget() {
    if (!told_.load()) return;
    char byte;
    // The byte may be on its way: then the descriptor stays readable once too often, never too seldom.
    if (read(read_end_, &byte, 1) == 1) told_.store(false);
  }

 private:
  int read_end_ = -1, write_end_ = -1;
  std::atomic<bool> told_{false};
};

}  // namespace akunu::capi
