#include "metal/emulator/threadgroup.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "metal/emulator/checks.h"

namespace akunu::metal::emulator {
namespace {

constexpr uint32_t kMaxSimdGroups = kMaxThreads / kSimdWidth;
constexpr size_t kExchangeBytes = kSimdWidth * kSlotBytes;
// Lanes read what is bound to them and exchange values: both lie in memory that is not checked.
constexpr size_t kBoundBytes = 512;
static_assert(sizeof(Bound) <= kBoundBytes);

bool is_same(const Site& a, const Site& b) {
  return a.line == b.line && (a.what == b.what || std::strcmp(a.what, b.what) == 0) &&
         (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string text_of(const Site& site) {
  return std::string(site.what) + " at " + site.file + ":" + std::to_string(site.line);
}

}  // namespace

ThreadgroupRunner* running = nullptr;

ThreadgroupRunner::ThreadgroupRunner(Checks* checks)
    : checks_(checks), stacks_(kMaxThreads, kBoundBytes + kMaxSimdGroups * 2 * kExchangeBytes) {}

void ThreadgroupRunner::set_size(std::array<uint32_t, 3> threadgroups,
                                 std::array<uint32_t, 3> threads) {
  n_lanes_ = threads[0] * threads[1] * threads[2];
  n_simdgroups_ = n_lanes_ / kSimdWidth;
  input_.simdgroups = n_simdgroups_;
  for (size_t i = 0; i < 3; ++i) {
    input_.threadgroups.at[i] = threadgroups[i];
    input_.threads.at[i] = threads[i];
  }
  stacks_.reserve(n_lanes_);
  fibers_.resize(n_lanes_);
  lane_stacks_.resize(n_lanes_);
  simdgroups_.resize(n_simdgroups_);
  threads_in_group_.clear();
  for (uint32_t z = 0; z < threads[2]; ++z) {
    for (uint32_t y = 0; y < threads[1]; ++y) {
      for (uint32_t x = 0; x < threads[0]; ++x) threads_in_group_.push_back({{x, y, z}});
    }
  }
}

std::string ThreadgroupRunner::run(const FunctionCode& code, const Bound& bound,
                                   std::array<uint32_t, 3> position, uint64_t shuffle) {
  code_ = &code;
  bound_ = new (stacks_.memory()) Bound(bound);
  for (size_t i = 0; i < 3; ++i) input_.threadgroup.at[i] = position[i];
  states_.assign(n_lanes_, State::not_started);
  matrix_counts_.assign(n_lanes_, 0);
  waiting_simdgroups_ = finished_simdgroups_ = 0;
  problem_.clear();
  stacks_.reset();
  main_ = Fiber{};
  for (SimdGroup& group : simdgroups_) {
    group.waiting = group.finished = 0;
    group.first = static_cast<uint32_t>(shuffle) % kSimdWidth;
    group.stride = (static_cast<uint32_t>(shuffle >> 5) % kSimdWidth) | 1;  // odd: passes all lanes
    group.matrix_sites.clear();
    shuffle = shuffle * 6364136223846793005u + 1442695040888963407u;
    shuffle ^= shuffle >> 29;
  }
  first_simdgroup_ = static_cast<uint32_t>(shuffle % n_simdgroups_);
  simdgroup_stride_ = static_cast<uint32_t>((shuffle >> 32) % n_simdgroups_);
  while (std::gcd(simdgroup_stride_, n_simdgroups_) != 1) ++simdgroup_stride_;

  running = this;
  lane_ = first_lane(first_simdgroup_);
  const Stack stack = stacks_.take();
  lane_stacks_[lane_] = stack;
  prepare(fibers_[lane_], stack, &lane_entry);
  switch_fiber(main_, fibers_[lane_]);
  running = nullptr;
  return problem_;
}

uint32_t ThreadgroupRunner::first_lane(uint32_t simdgroup) const {
  return simdgroup * kSimdWidth + simdgroups_[simdgroup].first;
}

uint32_t ThreadgroupRunner::next_in_simdgroup(uint32_t lane) const {
  const uint32_t stride = simdgroups_[lane / kSimdWidth].stride;
  return lane / kSimdWidth * kSimdWidth + (lane + stride) % kSimdWidth;
}

uint32_t ThreadgroupRunner::next_simdgroup(uint32_t simdgroup) const {
  return (simdgroup + simdgroup_stride_) % n_simdgroups_;
}

void ThreadgroupRunner::lane_entry() {
  ThreadgroupRunner& runner = *running;
  begin_fiber(runner.main_);
  runner.run_lanes();
}

// A stack runs one lane after the other, as long as they do not wait. Who is to run is in lane_.
void ThreadgroupRunner::run_lanes() {
  for (;;) {
    states_[lane_] = State::stopped;
    input_.index = lane_;
    input_.thread = threads_in_group_[lane_];
    const Lane input = input_;
    code_->run(*bound_, input);
    finish_lane();
  }
}

// Returns where another lane can begin on this stack.
void ThreadgroupRunner::finish_lane() {
  const uint32_t own = lane_;
  const uint32_t simdgroup = own / kSimdWidth;
  SimdGroup& group = simdgroups_[simdgroup];
  leave_matrix_functions(group);
  if (group.waiting > 0) {
    report("returned, while " + name_of(group.last_lane) + " waits for it in " +
           text_of(group.site));
    stop();
  }
  group.last_lane = own;
  uint32_t next = 0;
  if (++group.finished < kSimdWidth) {
    next = next_in_simdgroup(own);
  } else {
    group.matrix_sites.clear();
    if (waiting_simdgroups_ > 0) {
      report("returned with its SIMD-group, while SIMD-group " + std::to_string(last_simdgroup_) +
             " waits for it in " + text_of(threadgroup_site_));
      stop();
    }
    last_simdgroup_ = simdgroup;
    if (++finished_simdgroups_ == n_simdgroups_) {
      switch_fiber(fibers_[own], main_, true);
    }
    next = first_lane(next_simdgroup(simdgroup));
  }
  lane_ = next;
  if (states_[next] == State::not_started) {
    lane_stacks_[next] = lane_stacks_[own];
    return;
  }
  // The stack is still in use, but nobody takes it before the switch is done.
  stacks_.give_back(lane_stacks_[own]);
  switch_fiber(fibers_[own], fibers_[next], true);
}

void ThreadgroupRunner::wait_and_switch(uint32_t lane) {
  const uint32_t own = lane_;
  lane_ = lane;
  if (states_[lane] == State::not_started) {
    lane_stacks_[lane] = stacks_.take();
    prepare(fibers_[lane], lane_stacks_[lane], &lane_entry);
  }
  switch_fiber(fibers_[own], fibers_[lane]);
}

void ThreadgroupRunner::arrive(SimdGroup& group, Site site) {
  leave_matrix_functions(group);
  if (group.finished > 0) {
    report("reached " + text_of(site) + ", but " + name_of(group.last_lane) + " has returned");
    stop();
  }
  if (group.waiting == 0) {
    group.site = site;
  } else if (!is_same(group.site, site)) {
    report("reached " + text_of(site) + ", but " + name_of(group.last_lane) + " waits in " +
           text_of(group.site));
    stop();
  }
  group.last_lane = lane_;
  ++group.waiting;
}

void ThreadgroupRunner::meet_threadgroup(Site site, bool orders_device, bool orders_threadgroup) {
  const uint32_t simdgroup = lane_ / kSimdWidth;
  SimdGroup& group = simdgroups_[simdgroup];
  arrive(group, site);
  if (group.waiting < kSimdWidth) {
    wait_and_switch(next_in_simdgroup(lane_));
    return;
  }
  group.matrix_sites.clear();
  if (finished_simdgroups_ > 0) {
    report("reached " + text_of(site) + ", but SIMD-group " + std::to_string(last_simdgroup_) +
           " has returned");
    stop();
  }
  if (waiting_simdgroups_ == 0) {
    threadgroup_site_ = site;
  } else if (!is_same(threadgroup_site_, site)) {
    report("reached " + text_of(site) + ", but SIMD-group " + std::to_string(last_simdgroup_) +
           " waits in " + text_of(threadgroup_site_));
    stop();
  }
  last_simdgroup_ = simdgroup;
  if (++waiting_simdgroups_ < n_simdgroups_) {
    // The lane that came first in its SIMD-group runs first again: none of its group has.
    wait_and_switch(first_lane(next_simdgroup(simdgroup)));
    return;
  }
  waiting_simdgroups_ = 0;
  for (SimdGroup& each : simdgroups_) each.waiting = 0;
  if (checks_ != nullptr) checks_->threadgroup_barrier(orders_device, orders_threadgroup);
}

void ThreadgroupRunner::meet_simdgroup(Site site, bool orders_device, bool orders_threadgroup) {
  SimdGroup& group = simdgroups_[lane_ / kSimdWidth];
  arrive(group, site);
  if (group.waiting < kSimdWidth) {
    wait_and_switch(next_in_simdgroup(lane_));
    return;
  }
  group.waiting = 0;
  group.matrix_sites.clear();
  if (checks_ != nullptr) {
    checks_->simdgroup_barrier(lane_ / kSimdWidth, orders_device, orders_threadgroup);
  }
}

Exchange ThreadgroupRunner::exchange(Site site, const void* value, uint32_t bytes,
                                     Combine combine) {
  const uint32_t simdgroup = lane_ / kSimdWidth;
  const uint32_t lane = lane_ % kSimdWidth;
  SimdGroup& group = simdgroups_[simdgroup];
  // Nobody overwrites what another still has to read: until all have arrived at the next exchange,
  // values go to the other buffer.
  std::byte* slots =
      stacks_.memory() + kBoundBytes + (simdgroup * 2 + group.buffer) * kExchangeBytes;
  std::memcpy(slots + lane * kSlotBytes, value, bytes);
  arrive(group, site);
  if (group.waiting < kSimdWidth) {
    wait_and_switch(next_in_simdgroup(lane_));
  } else {
    group.waiting = 0;
    group.buffer ^= 1;
    group.matrix_sites.clear();
    if (combine != nullptr) combine(slots);
  }
  return {slots, lane};
}

bool ThreadgroupRunner::reach_matrix_function(Site site) {
  SimdGroup& group = simdgroups_[lane_ / kSimdWidth];
  const uint32_t count = matrix_counts_[lane_]++;
  const bool is_first = group.waiting == 0 && group.finished == 0;
  if (is_first) {
    group.matrix_sites.push_back(site);
  } else if (count >= group.matrix_sites.size()) {
    report("reached " + text_of(site) + ", which " + name_of(group.last_lane) + " did not reach");
    stop();
  } else if (!is_same(group.matrix_sites[count], site)) {
    report("reached " + text_of(site) + ", but " + name_of(group.last_lane) + " reached " +
           text_of(group.matrix_sites[count]));
    stop();
  }
  return lane_ % kSimdWidth == 0;
}

void ThreadgroupRunner::leave_matrix_functions(SimdGroup& group) {
  const uint32_t count = std::exchange(matrix_counts_[lane_], 0);
  if (count < group.matrix_sites.size()) {
    report("did not reach " + text_of(group.matrix_sites[count]) + ", which " +
           name_of(group.last_lane) + " reached");
    stop();
  }
}

std::string ThreadgroupRunner::name_of(uint32_t lane) { return "lane " + std::to_string(lane); }

void ThreadgroupRunner::report(const std::string& problem) {
  problem_ = name_of(lane_) + " " + problem;
}

void ThreadgroupRunner::stop() {
  switch_fiber(fibers_[lane_], main_, true);
  std::abort();  // nobody comes back here
}

}  // namespace akunu::metal::emulator
