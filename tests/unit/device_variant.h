// The real device, but without fused kernels, with longer chains, or submitted ahead: for comparing
// the engine with itself.
#pragma once

#include <algorithm>
#include <atomic>

#include "core/device.h"

namespace akunu::test {

class DeviceVariant : public Device {
 public:
  DeviceVariant(std::shared_ptr<Device> device, bool fused, uint32_t chain_steps,
                uint32_t submissions_ahead = 0)
      : device_(std::move(device)), chip_(device_->chip()), fused_(fused) {
    chip_.chain_steps = chain_steps;
    chip_.submissions_ahead = submissions_ahead;
  }

  Pipeline find_kernel(const KernelRequest& request) const override {
    const bool is_fused = request.operation >= Operation::matmul_group;
    return is_fused && !fused_ ? Pipeline{} : device_->find_kernel(request);
  }
  std::string unsupported_shape(const KernelRequest& request) const override {
    return device_->unsupported_shape(request);
  }
  uint32_t n_ranks() const override { return device_->n_ranks(); }
  Binding exchange() const override { return device_->exchange(); }
  const ChipConfig& chip() const override { return chip_; }

  std::string_view backend() const override { return device_->backend(); }
  Buffer allocate(uint64_t bytes, std::string_view label) override {
    return device_->allocate(bytes, label);
  }
  void release(const Buffer& buffer) override { device_->release(buffer); }
  bool has_own_memory() const override { return device_->has_own_memory(); }
  MemoryLeft memory_left() const override { return device_->memory_left(); }
  std::vector<MemoryUse> memory_use() const override { return device_->memory_use(); }
  MemoryUse use_of(const Buffer& buffer) const override { return device_->use_of(buffer); }
  bool is_wanted() const override { return device_->is_wanted(); }
  bool is_used_by_others() const override { return device_->is_used_by_others(); }
  void write(const Binding& to, std::span<const std::byte> bytes) override {
    device_->write(to, bytes);
  }
  void read(const Binding& from, std::span<std::byte> bytes) const override {
    device_->read(from, bytes);
  }
  void copy(std::span<const Copy> copies) override { device_->copy(copies); }
  Weight import_weight(const WeightSource& source) override {
    return device_->import_weight(source);
  }
  void release_weight(const Weight& weight) override { device_->release_weight(weight); }
  ActivationKind activation_kind(Format format, RowClass row_class) const override {
    return device_->activation_kind(format, row_class);
  }
  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    return device_->activation_row_bytes(kind, k);
  }
  void set_limits(const SubmissionLimits& limits) override { device_->set_limits(limits); }
  Program compile(DispatchTable table, const StepMemory& memory) override {
    return device_->compile(std::move(table), memory);
  }
  void release_program(Program program) override { device_->release_program(program); }
  Ticket submit(const Replay& replay) override {
    const Ticket ticket = device_->submit(replay);
    most_in_flight_ = std::max(most_in_flight_.load(), ticket - waited_for_);
    n_steps_ += replay.steps;
    return ticket;
  }
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    waited_for_ = std::max(waited_for_, ticket);
    return device_->wait(ticket, timeout);
  }
  std::vector<CommandTime> profile(const Replay& replay) override {
    return device_->profile(replay);
  }
  // The most submissions that were under way at once.
  uint64_t most_in_flight() const { return most_in_flight_; }
  uint64_t n_steps() const { return n_steps_; }

 protected:
  ChipConfig& change_chip() { return chip_; }  // before anybody asks
  Device& inner() { return *device_; }
  const Device& inner() const { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  ChipConfig chip_;
  bool fused_;
  Ticket waited_for_ = 0;
  std::atomic<uint64_t> most_in_flight_ = 0;  // the scheduler's thread submits, a test asks
  std::atomic<uint64_t> n_steps_ = 0;         // likewise
};

}  // namespace akunu::test
