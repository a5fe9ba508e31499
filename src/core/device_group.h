// Several devices of one kind that compute one model together (tensor parallelism), as one Device. Each is a rank: it has
// a share of every weight that is split, all of the others, and memory of the same sizes; it runs the same
// programs over the same rows. `all_reduce` adds up what the ranks have made, in their order, so all ranks have
// the same bits, choose the same tokens and never tell each other of it. docs/decisions/kernels-on-gpus.md.
//
// To a model the group is what one rank is: its heads, its rows of a weight, its memory. What is read comes from the
// first rank, what is written goes to all of them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/device.h"

namespace akunu {

class DeviceGroup final : public Device {
 public:
  // Takes 2 to kMaxRanks devices of the same model. Throws ArgumentError for others, and DeviceError where one has no
  // peer access to the memory of another.
  explicit DeviceGroup(std::vector<std::shared_ptr<Device>> ranks);
  ~DeviceGroup() override;

  std::string_view backend() const override { return first().backend(); }
  const ChipConfig& chip() const override { return chip_; }
  uint32_t n_ranks() const override { return static_cast<uint32_t>(ranks_.size()); }
  Binding exchange() const override { return {exchange_, 0}; }

  Buffer allocate(uint64_t bytes, std::string_view label) override;
  void release(const Buffer& buffer) override;
  bool has_own_memory() const override { return first().has_own_memory(); }
  // Of the rank that has the least.
  MemoryLeft memory_left() const override;
  // Of each rank: all have the same.
  std::vector<MemoryUse> memory_use() const override;
  MemoryUse use_of(const Buffer& buffer) const override;

  void write(const Binding& destination, std::span<const std::byte> bytes) override;
  void read(const Binding& source, std::span<std::byte> bytes) const override;
  void copy(std::span<const Copy> copies) override;

  // Each rank gets its share; the weight says how large that is.
  Weight import_weight(const WeightSource& source) override;
  void release_weight(const Weight& weight) override;

  ActivationKind activation_kind(Format format, RowClass row_class) const override {
    return first().activation_kind(format, row_class);
  }
  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    return first().activation_row_bytes(kind, k);
  }
  Pipeline find_kernel(const KernelRequest& request) const override {
    return first().find_kernel(request);
  }
  std::string unsupported_shape(const KernelRequest& request) const override {
    return first().unsupported_shape(request);
  }

  void set_limits(const SubmissionLimits& limits) override;
  Program compile(DispatchTable table, const StepMemory& memory) override;
  void release_program(Program program) override;

  Ticket submit(const Replay& replay) override;
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override;
  // Times of the first rank; an all_reduce among them lasts until the slowest has come.
  std::vector<CommandTime> profile(const Replay& replay) override;

 private:
  // What handles point to: the same on every rank.
  struct Parts {
    std::vector<Buffer> buffers;
  };
  struct Programs {
    std::vector<Program> programs;
  };

  Device& first() const { return *ranks_.front(); }
  static Buffer part(const Buffer& buffer, size_t rank);
  static Binding part(const Binding& binding, size_t rank);
  Buffer add(std::vector<Buffer> buffers);
  MemoryUse labelled(MemoryUse use) const;
  DispatchTable table_of(const DispatchTable& table, size_t rank) const;
  // Of the next rank: what it points to is in passes_ and updates_.
  Replay replay_of(const Replay& replay, size_t rank);
  struct ReplayOfRank;
  std::vector<ReplayOfRank> replays_of(const Replay& replay);
  Ticket submit_with_threads(const Replay& replay);
  void refuse() const;
  [[noreturn]] void fail(size_t rank, const std::string& why);
  template <class Run>
  void run_all(const Run& run);
  Outcome wait_with_threads(Ticket ticket);

  std::vector<std::shared_ptr<Device>> ranks_;
  ChipConfig chip_;
  std::unordered_map<const void*, std::unique_ptr<Parts>> parts_;
  std::vector<std::unique_ptr<Programs>> programs_;
  Buffer exchange_;
  SubmissionLimits limits_;
  // Of the rank that is told of a submission; `submit` does not allocate.
  std::vector<Pass> passes_;
  std::vector<Update> updates_;
  Ticket last_ticket_ = 0;
  std::string failure_;  // of a rank: without it nothing can be computed
};

}  // namespace akunu
