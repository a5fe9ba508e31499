// Waits for the engine in which Ctrl-C works.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>

#include "inference/task.h"
#include "without_gil.h"

namespace akunu::python {

// How long a wait may go on without looking for Ctrl-C; kWithoutLimit in threads that need not. Python
// runs signal handlers in its main thread only, and between two instructions of Python: when Ctrl-C
// comes, nobody wakes that thread out of a wait in here. So it looks now and then whether one came.
std::chrono::milliseconds signal_interval();

// Until `is_done(timeout)`, which waits that long at most. Throws what a signal handler raises.
template <class IsDone>
void wait_until(const IsDone& is_done) {
  if (is_done(std::chrono::milliseconds(0))) return;
  const std::chrono::milliseconds timeout = signal_interval();
  for (bool done = false; !done;) {
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    const WithoutGil without_gil;
    done = is_done(timeout);
  }
}

}  // namespace akunu::python
