#pragma once

#include <Python.h>
#include <unistd.h>

namespace akunu::python {

// Lets other threads run Python for as long as it lives. pybind11's own class ends the process when
// the interpreter ends meanwhile: up to Python 3.13 the thread is made to exit then, and unwinding
// must not pass a destructor. Such a thread waits here for the end of the process, as in 3.14.
class WithoutGil {
 public:
  WithoutGil() = default;
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      while (true) pause();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

}  // namespace akunu::python
