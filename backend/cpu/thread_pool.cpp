#include "cpu/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "cpu/cgroup.h"

namespace akunu::cpu {
namespace {

// Longer than the gap between two commands or two steps, far shorter than a scheduler's slice.
constexpr uint32_t kSpinMicroseconds = 50;

// The gate's word: workers in the stage (12 bits), whether it is open, and above them the stage's
// number, counted from the pool's birth. It may wrap around: who waits waits for another number,
// and entering is right whenever the word says that a stage is open.
constexpr uint32_t kOneWorker = 1;
constexpr uint32_t kOpen = 1u << 12;
constexpr uint32_t kOneStage = kOpen << 1;

uint32_t workers_in(uint32_t gate) { return gate & (kOpen - 1); }
bool is_open(uint32_t gate) { return (gate & kOpen) != 0; }
uint32_t number_of(uint32_t gate) { return gate / kOneStage; }
uint32_t next_stage(uint32_t gate) { return (gate & ~(kOneStage - 1)) + kOneStage; }  // closed

// Helpers inherit the mask of blocked signals; with all of them blocked, Ctrl-C reaches the
// threads of the program that uses us. Those by which the system reports a mistake of the thread
// itself stay: blocked, they would end the process without a word, and without the handler that
// saves us from files that were truncated (weight/mapped_file.h).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t most;
    sigfillset(&most);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&most, fault);
    pthread_sigmask(SIG_SETMASK, &most, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

void name_this_thread(uint32_t worker) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), ("akunu-" + std::to_string(worker)).c_str());
#else
  static_cast<void>(worker);
#endif
}

}  // namespace

ThreadPool::ThreadPool(uint32_t n_workers, std::vector<MemoryNode> nodes)
    : n_workers_(n_workers), nodes_(std::move(nodes)) {
  // With more workers than processors, one that spins only keeps another from running.
  if (n_workers <= usable_processors()) spins_ = calibrate_spins(kSpinMicroseconds);
  const SignalsBlocked blocked;
  helpers_.reserve(n_workers - 1);
  try {
    for (uint32_t worker = 1; worker < n_workers; ++worker)
      helpers_.emplace_back([this, worker] { help(worker); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true);
  uint32_t gate = gate_.value();
  gate_.replace(gate, next_stage(gate));  // nobody else changes a gate that is closed
  gate_.wake();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(Job job, void* context, std::span<const uint32_t> widths) {
  if (widths.empty()) return;
  job_ = job;
  context_ = context;
  widths_ = widths;
  uint32_t gate = gate_.value();
  const uint32_t opened = next_stage(gate) | kOpen | kOneWorker;
  first_stage_ = number_of(opened);
  gate_.replace(gate, opened);
  if (widths[0] > 1) gate_.wake();
  work_from(first_stage_, 0);
}

// Of the job that is under way.
uint32_t ThreadPool::index_of(uint32_t stage) const {
  return (stage - first_stage_) & number_of(UINT32_MAX);
}

// From a stage that this worker is in to the end of the job.
void ThreadPool::work_from(uint32_t stage, uint32_t worker) {
  for (std::optional<uint32_t> inside = stage; inside;) {
    job_(context_, worker, index_of(*inside));
    const uint32_t done = *inside;
    inside = leave(done);
    if (!inside) inside = enter_after(done);
  }
}

// The last one out goes on to the next stage, where there is one.
std::optional<uint32_t> ThreadPool::leave(uint32_t stage) {
  const uint32_t next = index_of(stage) + 1;  // known as long as this worker is inside
  const bool over = next == widths_.size();
  const bool others_wanted = over || widths_[next] > 1;
  uint32_t gate = gate_.value();
  while (true) {
    const bool last = workers_in(gate) == 1;
    const uint32_t wanted = !last  ? gate - kOneWorker
                            : over ? next_stage(gate)
                                   : next_stage(gate) | kOpen | kOneWorker;
    if (!gate_.replace(gate, wanted)) continue;
    if (!last) return std::nullopt;
    if (others_wanted) gate_.wake();
    if (over) return std::nullopt;
    return number_of(wanted);
  }
}

// Waits for another stage than `stage` and enters it; nothing where the job is over instead.
std::optional<uint32_t> ThreadPool::enter_after(uint32_t stage) {
  while (true) {
    gate_.wait_until([&](uint32_t now) { return !is_open(now) || number_of(now) != stage; },
                     spins_);
    uint32_t gate = gate_.value();
    if (!is_open(gate)) return std::nullopt;
    if (number_of(gate) != stage && gate_.replace(gate, gate + kOneWorker)) return number_of(gate);
  }
}

void ThreadPool::help(uint32_t worker) {
  name_this_thread(worker);
  if (!nodes_.empty()) stay_on(nodes_[node_of_worker(nodes_, worker, n_workers_)]);
  while (true) {
    gate_.wait_until([&](uint32_t now) { return is_open(now) || stopping_.load(); }, spins_);
    if (stopping_.load()) return;
    uint32_t gate = gate_.value();
    if (is_open(gate) && gate_.replace(gate, gate + kOneWorker)) work_from(number_of(gate), worker);
  }
}

uint32_t usable_processors(const std::string& root) {
  uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    processors = std::max(1u, static_cast<uint32_t>(CPU_COUNT(&allowed)));
#endif
  if (const std::optional<double> quota = processor_quota(root))
    processors = std::min(processors, std::max(1u, static_cast<uint32_t>(std::ceil(*quota))));
  return processors;
}

}  // namespace akunu::cpu
