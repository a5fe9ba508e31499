// A device that has no fused kernels, for comparing a forward pass with its fused self. Everything
// else is the real device's.
#pragma once

#include "core/device.h"

namespace akunu::test {

class UnfusedDevice : public Device {
 public:
  explicit UnfusedDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Pipeline find_kernel(const KernelRequest& request) const override {
    return request.operation >= Operation::matmul_group ? Pipeline{}
                                                        : device_->find_kernel(request);
  }

  std::string_view backend() const override { return device_->backend(); }
  const ChipConfig& chip() const override { return device_->chip(); }
  Buffer allocate(uint64_t bytes, std::string_view label) override {
    return device_->allocate(bytes, label);
  }
  void release(const Buffer& buffer) override { device_->release(buffer); }
  uint64_t available_memory() const override { return device_->available_memory(); }
  std::vector<MemoryUse> memory_use() const override { return device_->memory_use(); }
  void write(const Binding& to, std::span<const std::byte> bytes) override {
    device_->write(to, bytes);
  }
  void read(const Binding& from, std::span<std::byte> bytes) const override {
    device_->read(from, bytes);
  }
  Weight import_weight(const WeightSource& source) override {
    return device_->import_weight(source);
  }
  void release_weight(const Weight& weight) override { device_->release_weight(weight); }
  ActivationKind activation_kind(Format format) const override {
    return device_->activation_kind(format);
  }
  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    return device_->activation_row_bytes(kind, k);
  }
  void set_limits(const SubmissionLimits& limits) override { device_->set_limits(limits); }
  Program compile(DispatchTable table, const StepMemory& memory) override {
    return device_->compile(std::move(table), memory);
  }
  void release_program(Program program) override { device_->release_program(program); }
  Ticket submit(const Replay& replay) override { return device_->submit(replay); }
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    return device_->wait(ticket, timeout);
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace akunu::test
