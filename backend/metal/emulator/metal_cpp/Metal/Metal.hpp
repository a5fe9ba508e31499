// The part of metal-cpp that backend/metal calls, over the emulator: the same classes, methods and
// enumerations, the same rules of ownership and order. What Metal leaves undefined or finds only
// with its validation layer (encoding after the end, committing with an encoder open, a resource
// that an indirect command buffer uses and nobody declared, copies of odd sizes, host memory that
// changes under a command buffer in flight) is an EmulatorError here.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "Foundation/Foundation.hpp"
#include "metal/emulator/executor.h"
#include "metal/emulator/metal_cpp/settings.h"

using CFTimeInterval = double;

namespace MTL {

namespace emulator = akunu::metal::emulator;

class Buffer;
class CommandBuffer;
class CommandQueue;
class ComputeCommandEncoder;
class Device;
class IndirectCommandBuffer;

struct Size {
  Size() = default;
  Size(NS::UInteger width_, NS::UInteger height_, NS::UInteger depth_)
      : width(width_), height(height_), depth(depth_) {}
  static Size Make(NS::UInteger width, NS::UInteger height, NS::UInteger depth) {
    return {width, height, depth};
  }
  NS::UInteger width;
  NS::UInteger height;
  NS::UInteger depth;
};

enum GPUFamily : NS::Integer {
  GPUFamilyApple7 = 1007,
  GPUFamilyApple8 = 1008,
  GPUFamilyApple9 = 1009,
  GPUFamilyApple10 = 1010,
  GPUFamilyMetal3 = 5001,
};

using ResourceOptions = NS::UInteger;
enum : ResourceOptions { ResourceStorageModeShared = 0 };

using ResourceUsage = NS::UInteger;
enum : ResourceUsage { ResourceUsageRead = 1, ResourceUsageWrite = 1 << 1 };

using BarrierScope = NS::UInteger;
enum : BarrierScope { BarrierScopeBuffers = 1 };

using PipelineOption = NS::UInteger;
enum : PipelineOption { PipelineOptionNone = 0 };

using IndirectCommandType = NS::UInteger;
enum : IndirectCommandType { IndirectCommandTypeConcurrentDispatch = 1 << 5 };

using CommandBufferErrorOption = NS::UInteger;
enum : CommandBufferErrorOption {
  CommandBufferErrorOptionNone = 0,
  CommandBufferErrorOptionEncoderExecutionStatus = 1,
};

enum DispatchType : NS::UInteger { DispatchTypeSerial = 0, DispatchTypeConcurrent = 1 };
enum DataType : NS::UInteger { DataTypeUInt = 33, DataTypeBool = 53 };

enum CommandBufferStatus : NS::UInteger {
  CommandBufferStatusNotEnqueued = 0,
  CommandBufferStatusEnqueued = 1,
  CommandBufferStatusCommitted = 2,
  CommandBufferStatusScheduled = 3,
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

enum CommandBufferError : NS::UInteger {
  CommandBufferErrorInternal = 1,
  CommandBufferErrorTimeout = 2,
  CommandBufferErrorNotPermitted = 7,
  CommandBufferErrorOutOfMemory = 8,
};

enum CommandEncoderErrorState : NS::Integer {
  CommandEncoderErrorStateUnknown = 0,
  CommandEncoderErrorStateCompleted = 1,
  CommandEncoderErrorStateAffected = 2,
  CommandEncoderErrorStatePending = 3,
  CommandEncoderErrorStateFaulted = 4,
};

extern const NS::ErrorUserInfoKey CommandBufferEncoderInfoErrorKey;

// Whatever a device made, with its label.
template <class Class, class Base = NS::Object>
class Made : public NS::Referencing<Class, Base> {
 public:
  void setLabel(const NS::String* label) { label_ = label->utf8String(); }
  const std::string& label_text() const { return label_; }

 protected:
  std::string label_;
};

class Resource : public Made<Resource> {};

class Buffer final : public NS::Referencing<Buffer, Resource> {
 public:
  void* contents();
  NS::UInteger length() const;

 private:
  friend class Device;
  friend class CommandBuffer;
  void dispose() override;
  Device* device_ = nullptr;
  std::byte* bytes_ = nullptr;
  NS::UInteger length_ = 0;
  bool is_view_ = false;  // of memory that somebody else owns
};

class FunctionConstantValues final : public NS::Copying<FunctionConstantValues> {
 public:
  static FunctionConstantValues* alloc();
  FunctionConstantValues* init();
  void setConstantValue(const void* value, DataType type, NS::UInteger index);

 private:
  friend class Library;
  struct Value {
    uint32_t value;
    DataType type;
  };
  std::map<NS::UInteger, Value> values_;
};

class Function final : public Made<Function> {
 private:
  friend class Library;
  friend class Device;
  friend class ComputePipelineDescriptor;
  const emulator::Function* function_ = nullptr;
  std::vector<emulator::ConstantValue> constants_;
};

class Library final : public Made<Library> {
 public:
  Function* newFunction(const NS::String* name, const FunctionConstantValues* constants,
                        NS::Error** error);

  Device* device_ = nullptr;
};

class ComputePipelineDescriptor final : public NS::Copying<ComputePipelineDescriptor> {
 public:
  static ComputePipelineDescriptor* alloc();
  ComputePipelineDescriptor* init();
  void setComputeFunction(const Function* function);
  void setLabel(const NS::String* label);
  void setSupportIndirectCommandBuffers(bool supported);

 private:
  friend class Device;
  std::string label_;
  const emulator::Function* function_ = nullptr;
  std::vector<emulator::ConstantValue> constants_;
  bool supports_indirect_ = false;
};

using AutoreleasedComputePipelineReflection = void*;

class ComputePipelineState final : public Made<ComputePipelineState> {
 public:
  NS::UInteger maxTotalThreadsPerThreadgroup() const;

 private:
  friend class Device;
  friend class ComputeCommandEncoder;
  friend class IndirectComputeCommand;
  friend class CommandBuffer;
  const emulator::Function* function_ = nullptr;
  std::vector<emulator::ConstantValue> constants_;
  bool supports_indirect_ = false;
};

class Event : public Made<Event> {};

class SharedEvent final : public NS::Referencing<SharedEvent, Event> {
 public:
  uint64_t signaledValue() const;
  void setSignaledValue(uint64_t value);
  bool waitUntilSignaledValue(uint64_t value, uint64_t milliseconds);

 private:
  friend class Device;
  friend class CommandBuffer;
  friend class CommandQueue;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
};

// One dispatch with all that it is bound to.
struct Dispatch {
  struct Binding {
    const Buffer* buffer = nullptr;
    NS::UInteger offset = 0;
  };
  const ComputePipelineState* pipeline = nullptr;
  std::string label;
  std::array<Binding, emulator::kBufferSlots> buffers = {};
  std::array<uint32_t, emulator::kThreadgroupSlots> threadgroup_bytes = {};
  Size threadgroups{0, 0, 0};
  Size threads{0, 0, 0};
  bool barrier_before = false;
};

class IndirectCommandBufferDescriptor final : public NS::Copying<IndirectCommandBufferDescriptor> {
 public:
  static IndirectCommandBufferDescriptor* alloc();
  IndirectCommandBufferDescriptor* init();
  void setCommandTypes(IndirectCommandType types);
  void setInheritBuffers(bool inherit);
  void setInheritPipelineState(bool inherit);
  void setMaxKernelBufferBindCount(NS::UInteger count);
  void setMaxKernelThreadgroupMemoryBindCount(NS::UInteger count);

 private:
  friend class Device;
  IndirectCommandType types_ = 0;
  bool inherits_buffers_ = true;
  bool inherits_pipeline_ = true;
  NS::UInteger max_buffers_ = 0;
  NS::UInteger max_threadgroup_ = 0;
};

class IndirectComputeCommand final : public NS::Referencing<IndirectComputeCommand> {
 public:
  void setComputePipelineState(const ComputePipelineState* pipeline);
  void setKernelBuffer(const Buffer* buffer, NS::UInteger offset, NS::UInteger index);
  void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index);
  void setBarrier();
  void concurrentDispatchThreadgroups(Size threadgroups, Size threads);

 private:
  friend class IndirectCommandBuffer;
  Dispatch& dispatch();
  IndirectCommandBuffer* commands_ = nullptr;
  NS::UInteger index_ = 0;
};

class IndirectCommandBuffer final : public NS::Referencing<IndirectCommandBuffer, Resource> {
 public:
  NS::UInteger size() const;
  IndirectComputeCommand* indirectComputeCommand(NS::UInteger index);

 private:
  friend class Device;
  friend class IndirectComputeCommand;
  friend class ComputeCommandEncoder;
  friend class CommandBuffer;
  NS::UInteger max_buffers_ = 0;
  NS::UInteger max_threadgroup_ = 0;
  std::vector<Dispatch> dispatches_;
};

// What a command buffer does, in order.
struct Operation {
  enum class Kind : uint8_t { dispatch, indirect, barrier, copy, fill, wait, signal };
  Kind kind = Kind::barrier;
  std::string encoder, signpost;  // labels of where it was encoded
  Dispatch dispatch = {};
  const Buffer* source = nullptr;
  const Buffer* destination = nullptr;
  NS::UInteger source_offset = 0, destination_offset = 0, length = 0;
  uint8_t fill = 0;
  // Of what a copy reads, when it was committed, where nothing but the host writes there.
  bool has_digest = false;
  uint64_t digest = 0;
  const IndirectCommandBuffer* indirect = nullptr;
  NS::UInteger first = 0, count = 0;  // of its commands
  SharedEvent* event = nullptr;
  uint64_t value = 0;
};

class CommandEncoder : public Made<CommandEncoder> {
 public:
  void endEncoding();
  void insertDebugSignpost(const NS::String* text);

 protected:
  friend class CommandBuffer;
  CommandBuffer& open(const char* method) const;
  void add(Operation operation);
  CommandBuffer* commands_ = nullptr;
  bool is_open_ = true;
  std::string signpost_;
};

class BlitCommandEncoder final : public NS::Referencing<BlitCommandEncoder, CommandEncoder> {
 public:
  void copyFromBuffer(const Buffer* source, NS::UInteger source_offset, const Buffer* destination,
                      NS::UInteger destination_offset, NS::UInteger size);
  void fillBuffer(const Buffer* buffer, NS::Range range, uint8_t value);

 private:
};

class ComputeCommandEncoder final : public NS::Referencing<ComputeCommandEncoder, CommandEncoder> {
 public:
  void setComputePipelineState(const ComputePipelineState* pipeline);
  void setBuffer(const Buffer* buffer, NS::UInteger offset, NS::UInteger index);
  void setBufferOffset(NS::UInteger offset, NS::UInteger index);
  void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index);
  void dispatchThreadgroups(Size threadgroups, Size threads);
  void memoryBarrier(BarrierScope scope);
  void useResource(const Resource* resource, ResourceUsage usage);
  void executeCommandsInBuffer(const IndirectCommandBuffer* commands, NS::Range range);

 private:
  friend class CommandBuffer;
  bool is_concurrent_ = false;
  Dispatch next_;
  std::vector<const Resource*> used_;
};

class CommandBufferEncoderInfo final : public NS::Referencing<CommandBufferEncoderInfo> {
 public:
  NS::String* label() const;
  CommandEncoderErrorState errorState() const;
  NS::Array* debugSignposts() const;

 private:
  friend class CommandBuffer;
  std::string label_, signpost_;
};

class CommandBufferDescriptor final : public NS::Copying<CommandBufferDescriptor> {
 public:
  static CommandBufferDescriptor* alloc();
  CommandBufferDescriptor* init();
  void setRetainedReferences(bool retained);
  void setErrorOptions(CommandBufferErrorOption options);

 private:
  friend class CommandQueue;
  bool retained_ = true;
  CommandBufferErrorOption options_ = CommandBufferErrorOptionNone;
};

class CommandBuffer final : public Made<CommandBuffer> {
 public:
  BlitCommandEncoder* blitCommandEncoder();
  ComputeCommandEncoder* computeCommandEncoder(DispatchType type);
  void encodeWait(const Event* event, uint64_t value);
  void encodeSignalEvent(const Event* event, uint64_t value);
  void commit();
  void waitUntilCompleted();
  CommandBufferStatus status() const;
  NS::Error* error() const;
  CFTimeInterval GPUStartTime() const;
  CFTimeInterval GPUEndTime() const;

 private:
  friend class CommandQueue;
  friend class CommandEncoder;
  friend class BlitCommandEncoder;
  friend class ComputeCommandEncoder;
  void dispose() override;
  void add(Operation operation);
  void check_recording(const char* method) const;
  void check_copies();
  void run(emulator::Executor& executor);
  void run_operation(emulator::Executor& executor, const Operation& operation);
  void run_stage(emulator::Executor& executor);
  static void run_dispatch(emulator::Executor& executor, const Dispatch& dispatch);
  void finish(CommandBufferStatus status);

  CommandQueue* queue_ = nullptr;
  CommandEncoder* encoder_ = nullptr;  // the open one
  bool tells_encoders_ = false;        // CommandBufferErrorOptionEncoderExecutionStatus
  std::deque<Operation> operations_;
  struct Staged {
    const Dispatch* dispatch;
    const Operation* operation;
  };
  std::vector<Staged> stage_;  // dispatches that nothing orders yet
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  CommandBufferStatus status_ = CommandBufferStatusNotEnqueued;
  std::string error_, failed_encoder_, failed_signpost_;
  CFTimeInterval start_ = 0, end_ = 0;
};

// A thread of its own, which runs what was committed, in order.
class CommandQueue final : public Made<CommandQueue> {
 public:
  CommandBuffer* commandBuffer(const CommandBufferDescriptor* descriptor);

 private:
  friend class CommandBuffer;
  friend class Device;
  void dispose() override;
  void push(CommandBuffer* commands);
  void work();
  Device* device_ = nullptr;
  std::unique_ptr<emulator::Executor> executor_;
  std::thread worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CommandBuffer*> committed_;
  bool ends_ = false;
};

class Device final : public NS::Referencing<Device> {
 public:
  NS::String* name() const;
  bool supportsFamily(GPUFamily family);
  NS::UInteger maxBufferLength() const;
  uint64_t recommendedMaxWorkingSetSize() const;
  NS::UInteger currentAllocatedSize() const;

  Buffer* newBuffer(NS::UInteger length, ResourceOptions options);
  // Over memory of the caller: whole pages.
  Buffer* newBuffer(const void* memory, NS::UInteger length, ResourceOptions options,
                    void (*deallocator)(void*, NS::UInteger));
  CommandQueue* newCommandQueue();
  Library* newLibrary(const NS::URL* url, NS::Error** error);
  ComputePipelineState* newComputePipelineState(
      const ComputePipelineDescriptor* descriptor, PipelineOption options,
      const AutoreleasedComputePipelineReflection* reflection, NS::Error** error);
  SharedEvent* newSharedEvent();
  IndirectCommandBuffer* newIndirectCommandBuffer(const IndirectCommandBufferDescriptor* descriptor,
                                                  NS::UInteger max_count, ResourceOptions options);

 private:
  friend Device* emulator_device(const emulator::Settings& settings);
  friend class Buffer;
  friend class CommandQueue;
  void dispose() override;
  Buffer* make_buffer(std::byte* bytes, NS::UInteger length, bool is_view);
  emulator::Settings settings_;
  std::atomic<NS::UInteger> allocated_ = 0;
  std::atomic<int> n_queues_ = 0;
};

// A GPU as the settings say.
Device* emulator_device(const emulator::Settings& settings);

}  // namespace MTL
