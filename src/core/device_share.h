// A model's share of a device that several models use. Each has memory of its own and counts it;
// they take turns with what runs (core/turns.h). To a model it is its device.
//
// Threads: a load may allocate, import and compile in one thread while others' submissions run. A
// share's own submissions are one thread's.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/device.h"
#include "core/device_checks.h"
#include "core/turns.h"

namespace akunu {

// What the shares of a device have in common.
struct SharedDevice {
  explicit SharedDevice(std::shared_ptr<Device> shared) : device(std::move(shared)) {}

  const std::shared_ptr<Device> device;
  Turns turns;
  std::mutex memory;       // held by who allocates, releases, or asks what there is
  MemoryLedger of_shares;  // what all of them have; the rest is the device's own
};

class DeviceShare final : public Device {
 public:
  explicit DeviceShare(std::shared_ptr<SharedDevice> shared);

  std::string_view backend() const override { return device_.backend(); }
  const ChipConfig& chip() const override { return device_.chip(); }

  Buffer allocate(uint64_t bytes, std::string_view label) override;
  void release(const Buffer& buffer) override;
  bool has_own_memory() const override { return device_.has_own_memory(); }
  MemoryLeft memory_left() const override;
  // This share's own memory, and what the device has for all of them.
  std::vector<MemoryUse> memory_use() const override;
  MemoryUse use_of(const Buffer& buffer) const override;

  void write(const Binding& destination, std::span<const std::byte> bytes) override {
    device_.write(destination, bytes);
  }
  void read(const Binding& source, std::span<std::byte> bytes) const override {
    device_.read(source, bytes);
  }

  void copy(std::span<const Copy> copies) override;

  Weight import_weight(const WeightSource& source) override;
  void release_weight(const Weight& weight) override;

  ActivationKind activation_kind(Format format, RowClass row_class) const override {
    return device_.activation_kind(format, row_class);
  }
  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    return device_.activation_row_bytes(kind, k);
  }
  Pipeline find_kernel(const KernelRequest& request) const override;
  std::string unsupported_shape(const KernelRequest& request) const override {
    return device_.unsupported_shape(request);
  }
  uint32_t n_ranks() const override { return device_.n_ranks(); }
  Binding exchange() const override { return device_.exchange(); }

  void set_limits(const SubmissionLimits& limits) override;
  Program compile(DispatchTable table, const StepMemory& memory) override;
  void release_program(Program program) override;

  Ticket submit(const Replay& replay) override;
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override;
  std::shared_ptr<Device> share() const override { return std::make_shared<DeviceShare>(shared_); }
  bool is_wanted() const override { return shared_->turns.is_wanted(this); }
  bool is_used_by_others() const override { return shared_->turns.is_used(this); }
  std::vector<CommandTime> profile(const Replay& replay) override;

 private:
  class Turn;

  void count(const Buffer& buffer);
  void discount(const Buffer& buffer);

  const std::shared_ptr<SharedDevice> shared_;
  Device& device_;
  MemoryLedger own_;
  std::vector<Status> statuses_;  // of the outcome that was waited for last
  Ticket last_waited_ = 0;
};

}  // namespace akunu
