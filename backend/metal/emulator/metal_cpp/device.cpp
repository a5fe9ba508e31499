// Devices and what they make: buffers, libraries, pipelines, events, indirect command buffers. Each
// call is checked as Metal's validation would.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "Metal/Metal.hpp"

namespace MTL {
namespace {

using emulator::EmulatorError;

NS::UInteger page_bytes() { return static_cast<NS::UInteger>(sysconf(_SC_PAGESIZE)); }

NS::UInteger whole_pages(NS::UInteger bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

NS::Error* make_error(const std::string& text) {
  const NS::Object* const object = NS::String::string(text.c_str(), NS::UTF8StringEncoding);
  const NS::Object* const key = NS::LocalizedDescriptionKey;
  return NS::Error::error(nullptr, 1, NS::Dictionary::dictionary(&object, &key, 1));
}

}  // namespace

// A queue has a thread, which holds it: AddressSanitizer does not miss it. Of other objects it says that they leak.
void Device::dispose() {
  if (n_queues_ > 0)
    throw EmulatorError("the device ends, and a command queue of it was never released");
}

NS::String* Device::name() const {
  return NS::String::string("Emulated Apple GPU", NS::UTF8StringEncoding);
}

bool Device::supportsFamily(GPUFamily family) {
  return family == GPUFamilyMetal3 || family <= 1000 + static_cast<NS::Integer>(settings_.family);
}

NS::UInteger Device::maxBufferLength() const { return settings_.max_buffer_bytes; }

uint64_t Device::recommendedMaxWorkingSetSize() const { return settings_.working_set_bytes; }

NS::UInteger Device::currentAllocatedSize() const { return allocated_; }

Buffer* Device::make_buffer(std::byte* bytes, NS::UInteger length, bool is_view) {
  auto* buffer = new Buffer;
  buffer->device_ = this;
  buffer->bytes_ = bytes;
  buffer->length_ = length;
  buffer->is_view_ = is_view;
  allocated_ += length;
  return buffer;
}

Buffer* Device::newBuffer(NS::UInteger length, ResourceOptions options) {
  if (options != ResourceStorageModeShared)
    throw EmulatorError("newBuffer: only shared storage is emulated");
  if (length == 0) throw EmulatorError("newBuffer: a buffer of no bytes");
  if (length > settings_.max_buffer_bytes) return nullptr;
  void* memory = mmap(nullptr, whole_pages(length), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return make_buffer(static_cast<std::byte*>(memory), length, false);
}

Buffer* Device::newBuffer(const void* memory, NS::UInteger length, ResourceOptions options,
                          void (*deallocator)(void*, NS::UInteger)) {
  if (options != ResourceStorageModeShared || deallocator != nullptr)
    throw EmulatorError("newBuffer: only shared storage without a deallocator is emulated");
  if (reinterpret_cast<uintptr_t>(memory) % page_bytes() != 0 || length % page_bytes() != 0 ||
      length == 0)
    throw EmulatorError("newBuffer without a copy: address and length must be whole pages");
  if (length > settings_.max_buffer_bytes) return nullptr;
  return make_buffer(static_cast<std::byte*>(const_cast<void*>(memory)), length, true);
}

void* Buffer::contents() { return bytes_; }

NS::UInteger Buffer::length() const { return length_; }

void Buffer::dispose() {
  if (!is_view_) munmap(bytes_, whole_pages(length_));
  device_->allocated_ -= length_;
}

CommandQueue* Device::newCommandQueue() {
  auto* queue = new CommandQueue;
  queue->device_ = this;
  ++n_queues_;
  queue->executor_ = std::make_unique<emulator::Executor>(settings_.level, settings_.seed);
  queue->worker_ = std::thread([queue] { queue->work(); });
  return queue;
}

// The library is what was linked into the emulator, wherever the file would be.
Library* Device::newLibrary(const NS::URL* url, NS::Error**) {
  static_cast<void>(url->fileSystemRepresentation());
  return new Library;
}

Function* Library::newFunction(const NS::String* name, const FunctionConstantValues* constants,
                               NS::Error** error) {
  const std::string text = name->utf8String();
  const emulator::Function* found = emulator::find_function(text);
  if (found == nullptr) {
    *error = make_error("there is no function " + text + " in the library");
    return nullptr;
  }
  auto* function = new Function;
  function->label_ = text;
  function->function_ = found;
  for (const emulator::FunctionConstantInfo& info : emulator::constants_of(*found)) {
    const auto value = constants->values_.find(info.index);
    if (value == constants->values_.end()) {
      *error = make_error("function constant " + std::string(info.name) + " of " + text +
                          " has no value");
      function->release();
      return nullptr;
    }
    if ((value->second.type == DataTypeBool) != info.is_bool)
      throw EmulatorError("function constant " + std::string(info.name) + " of " + text +
                          " is set with another type than it has");
    function->constants_.push_back({info.index, value->second.value});
  }
  return function;
}

FunctionConstantValues* FunctionConstantValues::alloc() { return new FunctionConstantValues; }
FunctionConstantValues* FunctionConstantValues::init() { return this; }

void FunctionConstantValues::setConstantValue(const void* value, DataType type,
                                              NS::UInteger index) {
  Value& set = values_[index];
  set.type = type;
  set.value = 0;
  if (type == DataTypeBool) {
    bool truth = false;
    std::memcpy(&truth, value, sizeof truth);
    set.value = truth ? 1 : 0;
  } else {
    std::memcpy(&set.value, value, sizeof set.value);
  }
}

ComputePipelineDescriptor* ComputePipelineDescriptor::alloc() {
  return new ComputePipelineDescriptor;
}
ComputePipelineDescriptor* ComputePipelineDescriptor::init() { return this; }

void ComputePipelineDescriptor::setComputeFunction(const Function* function) {
  function_ = function->function_;
  constants_ = function->constants_;
}

void ComputePipelineDescriptor::setLabel(const NS::String* label) { label_ = label->utf8String(); }

void ComputePipelineDescriptor::setSupportIndirectCommandBuffers(bool supported) {
  supports_indirect_ = supported;
}

ComputePipelineState* Device::newComputePipelineState(const ComputePipelineDescriptor* descriptor,
                                                      PipelineOption,
                                                      const AutoreleasedComputePipelineReflection*,
                                                      NS::Error** error) {
  if (descriptor->function_ == nullptr) {
    *error = make_error("a pipeline without a function");
    return nullptr;
  }
  auto* pipeline = new ComputePipelineState;
  pipeline->label_ = descriptor->label_;
  pipeline->function_ = descriptor->function_;
  pipeline->constants_ = descriptor->constants_;
  pipeline->supports_indirect_ = descriptor->supports_indirect_;
  return pipeline;
}

NS::UInteger ComputePipelineState::maxTotalThreadsPerThreadgroup() const {
  return emulator::kMaxThreads;
}

SharedEvent* Device::newSharedEvent() { return new SharedEvent; }

uint64_t SharedEvent::signaledValue() const {
  const std::lock_guard lock(mutex_);
  return value_;
}

void SharedEvent::setSignaledValue(uint64_t value) {
  {
    const std::lock_guard lock(mutex_);
    value_ = value;
  }
  changed_.notify_all();
}

bool SharedEvent::waitUntilSignaledValue(uint64_t value, uint64_t milliseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                           [&] { return value_ >= value; });
}

IndirectCommandBufferDescriptor* IndirectCommandBufferDescriptor::alloc() {
  return new IndirectCommandBufferDescriptor;
}
IndirectCommandBufferDescriptor* IndirectCommandBufferDescriptor::init() { return this; }

void IndirectCommandBufferDescriptor::setCommandTypes(IndirectCommandType types) { types_ = types; }

void IndirectCommandBufferDescriptor::setInheritBuffers(bool inherit) {
  inherits_buffers_ = inherit;
}

void IndirectCommandBufferDescriptor::setInheritPipelineState(bool inherit) {
  inherits_pipeline_ = inherit;
}

void IndirectCommandBufferDescriptor::setMaxKernelBufferBindCount(NS::UInteger count) {
  max_buffers_ = count;
}

void IndirectCommandBufferDescriptor::setMaxKernelThreadgroupMemoryBindCount(NS::UInteger count) {
  max_threadgroup_ = count;
}

IndirectCommandBuffer* Device::newIndirectCommandBuffer(
    const IndirectCommandBufferDescriptor* descriptor, NS::UInteger max_count, ResourceOptions) {
  if (descriptor->types_ != IndirectCommandTypeConcurrentDispatch ||
      descriptor->inherits_buffers_ || descriptor->inherits_pipeline_ ||
      descriptor->max_buffers_ > emulator::kBufferSlots || max_count == 0 || max_count > 16384)
    throw EmulatorError(
        "newIndirectCommandBuffer: emulated are 1 to 16384 concurrent dispatches that inherit "
        "nothing, with 31 buffers at most");
  auto* commands = new IndirectCommandBuffer;
  commands->max_buffers_ = descriptor->max_buffers_;
  commands->max_threadgroup_ = descriptor->max_threadgroup_;
  commands->dispatches_.resize(max_count);
  return commands;
}

NS::UInteger IndirectCommandBuffer::size() const { return dispatches_.size(); }

IndirectComputeCommand* IndirectCommandBuffer::indirectComputeCommand(NS::UInteger index) {
  if (index >= dispatches_.size())
    throw EmulatorError("indirect command buffer " + label_text() + " has no command " +
                        std::to_string(index));
  auto* command = new IndirectComputeCommand;
  command->commands_ = this;
  command->index_ = index;
  return command->autorelease();
}

Dispatch& IndirectComputeCommand::dispatch() { return commands_->dispatches_[index_]; }

void IndirectComputeCommand::setComputePipelineState(const ComputePipelineState* pipeline) {
  if (!pipeline->supports_indirect_)
    throw EmulatorError("pipeline " + pipeline->label_text() +
                        " was made without support of indirect command buffers");
  dispatch().pipeline = pipeline;
}

void IndirectComputeCommand::setKernelBuffer(const Buffer* buffer, NS::UInteger offset,
                                             NS::UInteger index) {
  if (index >= commands_->max_buffers_ || offset > buffer->length())
    throw EmulatorError("setKernelBuffer: slot " + std::to_string(index) + " or byte " +
                        std::to_string(offset) + " is out of range");
  dispatch().buffers[index] = {buffer, offset};
}

void IndirectComputeCommand::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  if (index >= commands_->max_threadgroup_ || length % 16 != 0)
    throw EmulatorError("setThreadgroupMemoryLength: " + std::to_string(length) +
                        " bytes at index " + std::to_string(index));
  dispatch().threadgroup_bytes[index] = static_cast<uint32_t>(length);
}

void IndirectComputeCommand::setBarrier() { dispatch().barrier_before = true; }

void IndirectComputeCommand::concurrentDispatchThreadgroups(Size threadgroups, Size threads) {
  Dispatch& set = dispatch();
  if (set.pipeline == nullptr) throw EmulatorError("an indirect command without a pipeline");
  set.label = set.pipeline->label_text();
  set.threadgroups = threadgroups;
  set.threads = threads;
}

Device* emulator_device(const emulator::Settings& settings) {
  auto* device = new Device;
  device->settings_ = settings;
  return device;
}

}  // namespace MTL
