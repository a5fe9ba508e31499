#include <fcntl.h>
#include <poll.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "register.h"
#include "waker.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {

// A task in the waker's books, for as long as its teller lives.
struct Waker::Listed {
  Listed(std::shared_ptr<Waker> owner, uint64_t own_id) : waker(std::move(owner)), id(own_id) {
    const std::lock_guard lock(waker->mutex_);
    waker->news_.reserve(++waker->n_listed_);
  }
  ~Listed() {
    const std::lock_guard lock(waker->mutex_);
    std::erase(waker->news_, this);
    --waker->n_listed_;
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

  void tell() {
    const std::lock_guard lock(waker->mutex_);
    if (has_news) return;
    has_news = true;
    waker->news_.push_back(this);
    // One byte, for the first of them: the pipe is never full.
    if (waker->news_.size() == 1) static_cast<void>(!write(waker->write_end_, "", 1));
  }

  const std::shared_ptr<Waker> waker;
  const uint64_t id;
  bool has_news = false;
};

Waker::Waker() {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) throw Error("the system gives no file descriptor to wait at");
  read_end_ = ends[0];
  write_end_ = ends[1];
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
}

Waker::~Waker() {
  close(read_end_);
  close(write_end_);
}

std::function<void()> Waker::teller(uint64_t id) {
  return [listed = std::make_shared<Listed>(shared_from_this(), id)] { listed->tell(); };
}

std::vector<uint64_t> Waker::take() {
  std::vector<uint64_t> ids;
  if (home_.is_another()) return ids;  // whoever holds the lock may not be here
  const std::lock_guard lock(mutex_);
  std::array<char, 16> bytes;
  while (read(read_end_, bytes.data(), bytes.size()) > 0) {
  }
  ids.reserve(news_.size());
  for (Listed* const each : news_) {
    ids.push_back(each->id);
    each->has_news = false;
  }
  news_.clear();
  return ids;
}

void Waker::wait() const {
  pollfd waiting{read_end_, POLLIN, 0};
  const WithoutGil without_gil;
  poll(&waiting, 1, -1);
}

void Waker::interrupt() const { static_cast<void>(!write(write_end_, "", 1)); }

void register_waker(py::module_& m) {
  py::class_<Waker, std::shared_ptr<Waker>>(m, "Waker")
      .def(py::init<>())
      .def("fileno", &Waker::fileno)
      .def("take", &Waker::take)
      .def("wait", &Waker::wait)
      .def("interrupt", &Waker::interrupt);
}

}  // namespace akunu::python
