// Device: the one virtual class. It owns memory, knows kernels, and runs programs in order.
//
// Threads: memory (allocate to release_weight, find_kernel, release_program) by one thread at a
// time, and what runs (set_limits to profile) by one thread at a time; the two may be at the same
// time, but for set_limits and compile, which are both. Where models share a device, DeviceShare
// sees to that. Submissions run in the order they were made. A buffer lives until it is released or
// the device dies; releasing memory that a submission in flight may touch is the caller's mistake.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/chip.h"
#include "core/format.h"
#include "core/memory_left.h"
#include "core/operation.h"
#include "core/params.h"
#include "core/rows.h"

namespace akunu {

struct Buffer {
  void* handle = nullptr;
  uint64_t size = 0;              // bytes
  std::byte* contents = nullptr;  // null where the host cannot see the memory
};

struct Binding {
  Buffer buffer;
  uint64_t offset = 0;  // bytes
  explicit operator bool() const { return buffer.handle != nullptr; }
};

// Bytes of a weight as they lie in a file.
struct WeightPart {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner = nullptr;  // keeps `bytes` alive (the mapped file)
  // All that is mapped of the file, if it is; the pages that it begins and ends in are mapped whole.
  std::span<const std::byte> mapping = {};
};

// What a group of devices (core/device_group.h) does with a weight: each rank has all of it, or an equal share of its
// rows, or of each row.
enum class Split : uint8_t { none, rows, columns };

// A weight as a file has it: `rows` rows of `k` numbers in `format`, row after row.
struct WeightSource {
  std::string_view name;
  Format format = Format::f32;
  uint64_t rows = 0;
  uint64_t k = 0;
  std::array<WeightPart, kMaxPlanes> parts = {};  // one per plane of the format
  // Of a device that has its own memory: the weight stays in the host's, which the device reads.
  bool in_host_memory = false;
  // Of a group of devices. The rows are those of `n_matrices` matrices, one after the other, each of which is split.
  Split split = Split::none;
  uint64_t n_matrices = 1;
};

// A weight as the device has it.
struct Weight {
  std::array<Binding, kMaxPlanes> planes = {};  // as many as the format has
  Format format = Format::f32;
  uint64_t rows = 0;
  uint64_t k = 0;
};

// Which kernel a command needs: all that is known when a program is built. A device chooses by it,
// and refuses by it what it cannot compute.
struct KernelRequest {
  Operation operation = Operation::add;
  RowClass row_class = RowClass::single;
  ActivationKind activation = ActivationKind::f32;  // of the activation operand, if any
  std::array<std::optional<Format>, kMaxGroup> weights =
      {};                      // of the weight operands, in slot order
  Format cache = Format::f16;  // of the cache operands, if any: of the values, where there are
  CommandParams params;        // the shape: n, k, head_dim, window and whatever else they say

  bool operator==(const KernelRequest&) const = default;
};

struct Pipeline {
  const void* handle = nullptr;
  uint32_t most_rows = UINT32_MAX;  // of a pass
  explicit operator bool() const { return handle != nullptr; }
};

struct Command {
  Operation operation = Operation::add;
  Pipeline pipeline;
  Extent extent = Extent::rows;
  std::array<Binding, kMaxOperands> operands = {};
  CommandParams params;
};

// A flat program: commands with every pipeline and operand bound, labels beside them.
struct DispatchTable {
  std::vector<Command> commands;
  std::vector<std::string> labels;  // "layer 3 attention"; as many as commands
  std::vector<int32_t> waits_for;   // the last earlier command that must be complete, or -1
};

// Memory that every kernel sees besides its operands (slots 26 to 30).
struct StepMemory {
  Buffer rows;       // Row[max_rows]
  Buffer spans;      // Span[max_rows]
  Buffer pages;      // uint32 page table
  Buffer sequences;  // SequenceRecord[max_sequences]
  Buffer statuses;   // Status[max_rows]
};

struct Program {
  const void* handle = nullptr;
};

// One program over a run of rows. A step may hold several: prompt rows run another table than
// generated ones, the head runs after both.
struct Pass {
  Program program;
  uint32_t first_row = 0;
  uint32_t n_rows = 0;
  uint32_t first_head_row = 0;
  uint32_t n_head_rows = 0;
  uint32_t first_span = 0;
  uint32_t n_spans = 0;
  bool generates = false;  // rows of the classes `single` and `few`
};

// Whether the rows of all passes generate, or are few. Such a step comes again: a device that can records it once and
// launches it as a whole. Others may be many hundred launches.
inline bool has_few_rows(std::span<const Pass> passes) {
  return std::ranges::all_of(passes, [](const Pass& pass) {
    return pass.generates || (pass.n_rows <= kMaxFewRows && pass.n_head_rows <= kMaxFewRows);
  });
}

// Bytes that change before the first step of a submission, in queue order.
struct Update {
  Binding destination;
  std::span<const std::byte> bytes;
};

// Bytes that move within the device's memory. Offsets and sizes are whole words of four bytes, as those
// of updates are.
struct Copy {
  Binding from;
  Binding to;
  uint64_t bytes = 0;
};

// Everything that the host says about a submission. What the spans point to is copied by `submit`.
struct Replay {
  uint32_t steps = 1;
  std::span<const Row> rows;    // empty: go on with the rows that are there
  std::span<const Span> spans;  // likewise
  std::span<const Update> updates;
  std::span<const Pass> passes;
  int32_t priority = 0;  // among models that share the device and wait for their turn
};

using Ticket = uint64_t;

struct Outcome {
  bool finished = false;    // false: the time-out came first
  uint32_t steps_done = 0;  // all of them run, whatever kernels record
  // Empty when all is well; else one for each row that the passes cover, by its number. The device's
  // own, until the ticket is forgotten.
  std::span<const Status> statuses;
};

// How long one command of a replay took with nothing beside it.
struct CommandTime {
  std::string_view label;
  double seconds = 0;
};

struct MemoryUse {
  std::string label;
  uint64_t bytes = 0;
  bool mapped = false;  // bytes of a mapped file, not memory of our own
};

// Sizes of the submissions that a device must be able to hold. They only grow: each model tells its
// own, before its first compile.
struct SubmissionLimits {
  uint32_t max_rows = 0;
  uint32_t max_updates = 0;
  uint64_t max_update_bytes = 0;
  uint32_t max_passes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view backend() const = 0;  // "cpu"
  virtual const ChipConfig& chip() const = 0;

  // Zeroed memory. Throws OutOfMemoryError.
  virtual Buffer allocate(uint64_t bytes, std::string_view label) = 0;
  virtual void release(const Buffer& buffer) = 0;
  // What may still be allocated, as far as the system tells. Any thread may ask.
  virtual MemoryLeft memory_left() const = 0;
  // Totals per label, mapped weights included.
  virtual std::vector<MemoryUse> memory_use() const = 0;
  // What a buffer counts as there.
  virtual MemoryUse use_of(const Buffer& buffer) const = 0;

  // Copies to a buffer that no submission in flight touches, and from bytes that none of them
  // writes: the log of a sequence may be read up to where the last finished submission came.
  virtual void write(const Binding& destination, std::span<const std::byte> bytes) = 0;
  virtual void read(const Binding& source, std::span<std::byte> bytes) const = 0;

  // Copies within the device's memory, one after the other, behind all submissions made before and
  // before the first step of the next one; with none in flight it is done when this returns. Until a
  // submission made later is done, the memory counts as used by one in flight. Throws ArgumentError,
  // before anything is copied, for what leaves its buffer, is not whole words, or overlaps itself.
  virtual void copy(std::span<const Copy> copies) = 0;

  // Whether its memory is its own, and not the host's. Weights that find no room there can stay in the
  // host's memory (WeightSource::in_host_memory); they are read over a bus.
  virtual bool has_own_memory() const { return false; }

  // Keeps the mapped bytes where layout and alignment allow, copies or repacks where they don't.
  virtual Weight import_weight(const WeightSource& source) = 0;
  virtual void release_weight(const Weight& weight) = 0;

  // How this device wants the input of a matmul with a weight in `format`, and how long a row is. `single`
  // and `few`, one arithmetic, have one kind.
  virtual ActivationKind activation_kind(Format format, RowClass row_class) const = 0;
  virtual uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const = 0;

  // The kernel, or an empty pipeline where the device has none for the request, its shape included:
  // one that is found can compute it.
  virtual Pipeline find_kernel(const KernelRequest& request) const = 0;
  // What of the request's shape is beyond every kernel of the device, for an error message: "head_dim
  // is 320, the most here is 256". Empty where the shape is not the reason.
  virtual std::string unsupported_shape(const KernelRequest&) const { return {}; }

  // Of a group of devices that compute one model together: how many there are, and where they put what others read
  // (all_reduce). What a model sees of a group is what each rank has.
  virtual uint32_t n_ranks() const { return 1; }
  virtual Binding exchange() const { return {}; }
  // Lets kernels here read and write the memory of another device of the same backend. Throws DeviceError.
  virtual void reach(const Device& other);

  virtual void set_limits(const SubmissionLimits& limits) = 0;
  virtual Program compile(DispatchTable table, const StepMemory& memory) = 0;
  virtual void release_program(Program program) = 0;

  // Neither allocates nor throws within the limits; a Replay outside them is the caller's mistake.
  virtual Ticket submit(const Replay& replay) = 0;
  // Waits for a ticket (and all before it). Throws DeviceError when the device itself failed, or
  // after a fork; what kernels recorded is in the outcome.
  virtual Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) = 0;
  // A share of the same device for one more who submits: it takes turns with this one and counts its own memory, and reads
  // what lies in this one's. Null where the device has one user alone.
  virtual std::shared_ptr<Device> share() const { return nullptr; }
  // Another model waits for its turn: submit nothing before what is in flight has ended.
  virtual bool is_wanted() const { return false; }
  // Whether another model uses the device or waits for it; idle work then waits.
  virtual bool is_used_by_others() const { return false; }

  // Runs a replay of one step command after command, each timed alone; in order, without commands
  // that had nothing to do. Throws as submit and wait, and DeviceError while a submission is in
  // flight.
  virtual std::vector<CommandTime> profile(const Replay& replay) = 0;

 protected:
  Device() = default;
};

// A buffer with an owner.
class OwnedBuffer {
 public:
  OwnedBuffer() = default;
  OwnedBuffer(std::shared_ptr<Device> device, uint64_t bytes, std::string_view label)
      : device_(std::move(device)), buffer_(device_->allocate(bytes, label)) {}
  OwnedBuffer(OwnedBuffer&& other) noexcept { swap(other); }
  OwnedBuffer& operator=(OwnedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedBuffer() {
    if (device_) device_->release(buffer_);
  }
  const Buffer& get() const { return buffer_; }
  Binding binding(uint64_t offset = 0) const { return {buffer_, offset}; }

 private:
  void swap(OwnedBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(buffer_, other.buffer_);
  }
  std::shared_ptr<Device> device_;
  Buffer buffer_;
};

// A weight with an owner.
class OwnedWeight {
 public:
  OwnedWeight(std::shared_ptr<Device> device, const WeightSource& source)
      : device_(std::move(device)), weight_(device_->import_weight(source)) {}
  OwnedWeight(OwnedWeight&& other) noexcept { swap(other); }
  OwnedWeight& operator=(OwnedWeight&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedWeight() {
    if (device_) device_->release_weight(weight_);
  }
  const Weight& get() const { return weight_; }

 private:
  void swap(OwnedWeight& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(weight_, other.weight_);
  }
  std::shared_ptr<Device> device_;
  Weight weight_;
};

// A program with an owner.
class OwnedProgram {
 public:
  OwnedProgram() = default;
  OwnedProgram(std::shared_ptr<Device> device, DispatchTable table, const StepMemory& memory)
      : device_(std::move(device)), program_(device_->compile(std::move(table), memory)) {}
  OwnedProgram(OwnedProgram&& other) noexcept { swap(other); }
  OwnedProgram& operator=(OwnedProgram&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedProgram() {
    if (device_) device_->release_program(program_);
  }
  Program get() const { return program_; }

 private:
  void swap(OwnedProgram& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(program_, other.program_);
  }
  std::shared_ptr<Device> device_;
  Program program_;
};

std::string_view name_of(ActivationKind kind);
std::string_view name_of(RowClass row_class);

}  // namespace akunu
