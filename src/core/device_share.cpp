#include "core/device_share.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace akunu {

// What is short goes before what generates: a load takes a few of them, and the first texts wait.
constexpr int32_t kBeforeSteps = std::numeric_limits<int32_t>::max();

class DeviceShare::Turn {
 public:
  explicit Turn(DeviceShare& share) : share_(share) {
    share_.shared_->turns.take(&share_, kBeforeSteps);
  }
  ~Turn() { share_.shared_->turns.give_back(&share_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  DeviceShare& share_;
};

DeviceShare::DeviceShare(std::shared_ptr<SharedDevice> shared)
    : shared_(std::move(shared)), device_(*shared_->device) {}

void DeviceShare::count(const Buffer& buffer) {
  const MemoryUse use = device_.use_of(buffer);
  own_.add(use.label, use.mapped, use.bytes);
  shared_->of_shares.add(use.label, use.mapped, use.bytes);
}

void DeviceShare::discount(const Buffer& buffer) {
  const MemoryUse use = device_.use_of(buffer);
  own_.remove(use.label, use.mapped, use.bytes);
  shared_->of_shares.remove(use.label, use.mapped, use.bytes);
}

Buffer DeviceShare::allocate(uint64_t bytes, std::string_view label) {
  const std::lock_guard lock(shared_->memory);
  const Buffer buffer = device_.allocate(bytes, label);
  count(buffer);
  return buffer;
}

void DeviceShare::release(const Buffer& buffer) {
  const std::lock_guard lock(shared_->memory);
  discount(buffer);
  device_.release(buffer);
}

MemoryLeft DeviceShare::memory_left() const {
  const std::lock_guard lock(shared_->memory);
  return device_.memory_left();
}

std::vector<MemoryUse> DeviceShare::memory_use() const {
  const std::lock_guard lock(shared_->memory);
  std::vector<MemoryUse> uses = own_.uses();
  for (MemoryUse use : device_.memory_use()) {
    for (const MemoryUse& counted : shared_->of_shares.uses())
      if (counted.label == use.label && counted.mapped == use.mapped) use.bytes -= counted.bytes;
    const auto own = std::ranges::find_if(uses, [&](const MemoryUse& each) {
      return each.label == use.label && each.mapped == use.mapped;
    });
    if (own != uses.end())
      own->bytes += use.bytes;
    else if (use.bytes > 0)
      uses.push_back(use);
  }
  return uses;
}

MemoryUse DeviceShare::use_of(const Buffer& buffer) const {
  const std::lock_guard lock(shared_->memory);
  return device_.use_of(buffer);
}

Weight DeviceShare::import_weight(const WeightSource& source) {
  const std::lock_guard lock(shared_->memory);
  const Weight weight = device_.import_weight(source);
  for (const Binding& plane : weight.planes)
    if (plane) count(plane.buffer);
  return weight;
}

void DeviceShare::release_weight(const Weight& weight) {
  const std::lock_guard lock(shared_->memory);
  for (const Binding& plane : weight.planes)
    if (plane) discount(plane.buffer);
  device_.release_weight(weight);
}

Pipeline DeviceShare::find_kernel(const KernelRequest& request) const {
  const std::lock_guard lock(shared_->memory);
  return device_.find_kernel(request);
}

void DeviceShare::set_limits(const SubmissionLimits& limits) {
  statuses_.reserve(limits.max_rows);
  const Turn turn(*this);
  const std::lock_guard lock(shared_->memory);
  device_.set_limits(limits);
}

Program DeviceShare::compile(DispatchTable table, const StepMemory& memory) {
  const Turn turn(*this);
  const std::lock_guard lock(shared_->memory);
  return device_.compile(std::move(table), memory);
}

void DeviceShare::release_program(Program program) {
  const std::lock_guard lock(shared_->memory);
  device_.release_program(program);
}

Ticket DeviceShare::submit(const Replay& replay) {
  shared_->turns.take(this, replay.priority);
  try {
    return device_.submit(replay);
  } catch (...) {
    shared_->turns.give_back(this);
    throw;
  }
}

// A turn ends when its submission has, or will not any more.
Outcome DeviceShare::wait(Ticket ticket, std::chrono::milliseconds timeout) {
  const bool is_first = ticket > std::exchange(last_waited_, std::max(ticket, last_waited_));
  try {
    Outcome outcome = device_.wait(ticket, timeout);
    // Others' submissions may follow, and with them other statuses.
    statuses_.assign(outcome.statuses.begin(), outcome.statuses.end());
    outcome.statuses = statuses_;
    if (!outcome.finished)
      last_waited_ = ticket - 1;
    else if (is_first)
      shared_->turns.give_back(this);
    return outcome;
  } catch (...) {
    if (is_first) shared_->turns.give_back(this);
    throw;
  }
}

// In order with this share's submissions; others' neither run meanwhile nor carry it out.
void DeviceShare::copy(std::span<const Copy> copies) {
  const Turn turn(*this);
  device_.copy(copies);
}

std::vector<CommandTime> DeviceShare::profile(const Replay& replay) {
  const Turn turn(*this);
  return device_.profile(replay);
}

}  // namespace akunu
