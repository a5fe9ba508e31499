// The CPU, but as a device with memory of its own: no buffer has `contents`. What reads or writes them
// without asking the device dies of it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "unit/device_variant.h"

namespace akunu::test {

class HiddenMemory final : public DeviceVariant {
 public:
  explicit HiddenMemory(std::shared_ptr<Device> device)
      : DeviceVariant(std::move(device), true, 0), own_chip_(inner().chip()) {}

  const ChipConfig& chip() const override { return own_chip_; }
  Buffer allocate(uint64_t bytes, std::string_view label) override {
    return hidden(inner().allocate(bytes, label));
  }
  void release(const Buffer& buffer) override {
    inner().release(seen(buffer));
    buffers_.erase(buffer.handle);
  }
  MemoryUse use_of(const Buffer& buffer) const override { return inner().use_of(seen(buffer)); }
  void write(const Binding& to, std::span<const std::byte> bytes) override {
    inner().write(seen(to), bytes);
  }
  void read(const Binding& from, std::span<std::byte> bytes) const override {
    inner().read(seen(from), bytes);
  }
  void copy(std::span<const Copy> copies) override {
    std::vector<Copy> all(copies.begin(), copies.end());
    for (Copy& each : all) each = {seen(each.from), seen(each.to), each.bytes};
    inner().copy(all);
  }
  Weight import_weight(const WeightSource& source) override {
    Weight weight = inner().import_weight(source);
    for (Binding& plane : weight.planes)
      if (plane) plane.buffer = hidden(plane.buffer);
    return weight;
  }
  void release_weight(const Weight& weight) override {
    Weight own = weight;
    for (Binding& plane : own.planes) plane = seen(plane);
    inner().release_weight(own);
    for (const Binding& plane : weight.planes) buffers_.erase(plane.buffer.handle);
  }
  void set_limits(const SubmissionLimits& limits) override {
    updates_.reserve(limits.max_updates);
    inner().set_limits(limits);
  }
  Program compile(DispatchTable table, const StepMemory& memory) override {
    for (Command& command : table.commands)
      for (Binding& operand : command.operands) operand = seen(operand);
    return inner().compile(std::move(table),
                           {seen(memory.rows), seen(memory.spans), seen(memory.pages),
                            seen(memory.sequences), seen(memory.statuses)});
  }
  Ticket submit(const Replay& replay) override { return inner().submit(seen(replay)); }
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    return inner().wait(ticket, timeout);
  }
  std::vector<CommandTime> profile(const Replay& replay) override {
    return inner().profile(seen(replay));
  }

 private:
  // The handle of a hidden buffer points to what it hides.
  Buffer hidden(const Buffer& buffer) {
    auto owned = std::make_unique<Buffer>(buffer);
    void* const handle = owned.get();
    buffers_.emplace(handle, std::move(owned));
    return {handle, buffer.size, nullptr};
  }
  static Buffer seen(const Buffer& buffer) {
    return buffer.handle == nullptr ? buffer : *static_cast<const Buffer*>(buffer.handle);
  }
  static Binding seen(const Binding& binding) { return {seen(binding.buffer), binding.offset}; }
  Replay seen(const Replay& replay) {
    updates_.clear();
    for (const Update& update : replay.updates)
      updates_.push_back({seen(update.destination), update.bytes});
    Replay own = replay;
    own.updates = updates_;
    return own;
  }

  ChipConfig own_chip_;
  std::unordered_map<const void*, std::unique_ptr<Buffer>> buffers_;
  std::vector<Update> updates_;
};

}  // namespace akunu::test
