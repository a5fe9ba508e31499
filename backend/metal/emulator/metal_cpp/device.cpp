// Devices and what they make: buffers, libraries, pipelines, events, indirect command buffers. Each
// call is checked as Metal's validation would, and a device that ends names what was never
// released.
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

void Device::forget(const NS::Object* object, NS::UInteger bytes) {
  const std::lock_guard lock(mutex_);
  made_.erase(object);
  allocated_ -= bytes;
}

void Device::dispose() {
  if (made_.empty()) return;
  std::string text = "the device ends, and never released are:";
  for (const NS::Object* object : made_) text.append(" ").append(object->describe()).append(";");
  throw EmulatorError(text);
}

NS::String* Device::name() const {
  check_alive("name");
  return NS::String::string("Emulated Apple GPU", NS::UTF8StringEncoding);
}

bool Device::supportsFamily(GPUFamily family) {
  check_alive("supportsFamily");
  return family == GPUFamilyMetal3 || family <= 1000 + static_cast<NS::Integer>(settings_.family);
}

NS::UInteger Device::maxBufferLength() const {
  check_alive("maxBufferLength");
  return settings_.max_buffer_bytes;
}

uint64_t Device::recommendedMaxWorkingSetSize() const {
  check_alive("recommendedMaxWorkingSetSize");
  return settings_.working_set_bytes;
}

NS::UInteger Device::currentAllocatedSize() const {
  check_alive("currentAllocatedSize");
  const std::lock_guard lock(mutex_);
  return allocated_;
}

Buffer* Device::newBuffer(NS::UInteger length, ResourceOptions options) {
  check_alive("newBuffer");
  if (options != ResourceStorageModeShared)
    throw EmulatorError("newBuffer: only shared storage is emulated");
  if (length == 0) throw EmulatorError("newBuffer: a buffer of no bytes");
  if (length > settings_.max_buffer_bytes) return nullptr;
  void* memory = mmap(nullptr, whole_pages(length), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* buffer = make<Buffer>();
  buffer->bytes_ = static_cast<std::byte*>(memory);
  buffer->length_ = length;
  const std::lock_guard lock(mutex_);
  allocated_ += length;
  return buffer;
}

Buffer* Device::newBuffer(const void* memory, NS::UInteger length, ResourceOptions options,
                          void (*deallocator)(void*, NS::UInteger)) {
  check_alive("newBuffer");
  if (options != ResourceStorageModeShared || deallocator != nullptr)
    throw EmulatorError("newBuffer: only shared storage without a deallocator is emulated");
  if (reinterpret_cast<uintptr_t>(memory) % page_bytes() != 0 || length % page_bytes() != 0 ||
      length == 0)
    throw EmulatorError("newBuffer without a copy: address and length must be whole pages");
  if (length > settings_.max_buffer_bytes) return nullptr;
  auto* buffer = make<Buffer>();
  buffer->bytes_ = static_cast<std::byte*>(const_cast<void*>(memory));
  buffer->length_ = length;
  buffer->is_view_ = true;
  const std::lock_guard lock(mutex_);
  allocated_ += length;
  return buffer;
}

void* Buffer::contents() {
  check_alive("contents");
  return bytes_;
}

NS::UInteger Buffer::length() const {
  check_alive("length");
  return length_;
}

void Buffer::dispose() {
  if (!is_view_) munmap(bytes_, whole_pages(length_));
  bytes_ = nullptr;
  device_->forget(this, length_);
}

CommandQueue* Device::newCommandQueue() {
  auto* queue = make<CommandQueue>();
  queue->executor_ = std::make_unique<emulator::Executor>(settings_.level, settings_.seed);
  queue->worker_ = std::thread([queue] { queue->work(); });
  return queue;
}

// The library is what was linked into the emulator, wherever the file would be.
Library* Device::newLibrary(const NS::URL* url, NS::Error**) {
  static_cast<void>(url->fileSystemRepresentation());
  return make<Library>();
}

void Library::dispose() { device_->forget(this); }

Function* Library::newFunction(const NS::String* name, const FunctionConstantValues* constants,
                               NS::Error** error) {
  check_alive("newFunction");
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
  check_alive("setConstantValue");
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
  check_alive("setComputeFunction");
  function->check_alive("setComputeFunction");
  function_ = function->function_;
  constants_ = function->constants_;
}

void ComputePipelineDescriptor::setLabel(const NS::String* label) {
  check_alive("setLabel");
  label_ = label->utf8String();
}

void ComputePipelineDescriptor::setSupportIndirectCommandBuffers(bool supported) {
  check_alive("setSupportIndirectCommandBuffers");
  supports_indirect_ = supported;
}

ComputePipelineState* Device::newComputePipelineState(const ComputePipelineDescriptor* descriptor,
                                                      PipelineOption,
                                                      const AutoreleasedComputePipelineReflection*,
                                                      NS::Error** error) {
  descriptor->check_alive("newComputePipelineState");
  if (descriptor->function_ == nullptr) {
    *error = make_error("a pipeline without a function");
    return nullptr;
  }
  auto* pipeline = make<ComputePipelineState>();
  pipeline->label_ = descriptor->label_;
  pipeline->function_ = descriptor->function_;
  pipeline->constants_ = descriptor->constants_;
  pipeline->supports_indirect_ = descriptor->supports_indirect_;
  return pipeline;
}

NS::UInteger ComputePipelineState::maxTotalThreadsPerThreadgroup() const {
  check_alive("maxTotalThreadsPerThreadgroup");
  return emulator::kMaxThreads;
}

void ComputePipelineState::dispose() { device_->forget(this); }

SharedEvent* Device::newSharedEvent() { return make<SharedEvent>(); }

uint64_t SharedEvent::signaledValue() const {
  check_alive("signaledValue");
  const std::lock_guard lock(mutex_);
  return value_;
}

void SharedEvent::setSignaledValue(uint64_t value) {
  check_alive("setSignaledValue");
  {
    const std::lock_guard lock(mutex_);
    value_ = value;
  }
  changed_.notify_all();
}

bool SharedEvent::waitUntilSignaledValue(uint64_t value, uint64_t milliseconds) {
  check_alive("waitUntilSignaledValue");
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                           [&] { return value_ >= value; });
}

void SharedEvent::dispose() { device_->forget(this); }

IndirectCommandBufferDescriptor* IndirectCommandBufferDescriptor::alloc() {
  return new IndirectCommandBufferDescriptor;
}
IndirectCommandBufferDescriptor* IndirectCommandBufferDescriptor::init() { return this; }

void IndirectCommandBufferDescriptor::setCommandTypes(IndirectCommandType types) {
  check_alive("setCommandTypes");
  types_ = types;
}

void IndirectCommandBufferDescriptor::setInheritBuffers(bool inherit) {
  check_alive("setInheritBuffers");
  inherits_buffers_ = inherit;
}

void IndirectCommandBufferDescriptor::setInheritPipelineState(bool inherit) {
  check_alive("setInheritPipelineState");
  inherits_pipeline_ = inherit;
}

void IndirectCommandBufferDescriptor::setMaxKernelBufferBindCount(NS::UInteger count) {
  check_alive("setMaxKernelBufferBindCount");
  max_buffers_ = count;
}

void IndirectCommandBufferDescriptor::setMaxKernelThreadgroupMemoryBindCount(NS::UInteger count) {
  check_alive("setMaxKernelThreadgroupMemoryBindCount");
  max_threadgroup_ = count;
}

IndirectCommandBuffer* Device::newIndirectCommandBuffer(
    const IndirectCommandBufferDescriptor* descriptor, NS::UInteger max_count, ResourceOptions) {
  descriptor->check_alive("newIndirectCommandBuffer");
  if (descriptor->types_ != IndirectCommandTypeConcurrentDispatch ||
      descriptor->inherits_buffers_ || descriptor->inherits_pipeline_ ||
      descriptor->max_buffers_ > emulator::kBufferSlots || max_count == 0 || max_count > 16384)
    throw EmulatorError(
        "newIndirectCommandBuffer: emulated are 1 to 16384 concurrent dispatches that inherit "
        "nothing, with 31 buffers at most");
  auto* commands = make<IndirectCommandBuffer>();
  commands->max_buffers_ = descriptor->max_buffers_;
  commands->max_threadgroup_ = descriptor->max_threadgroup_;
  commands->dispatches_.resize(max_count);
  return commands;
}

NS::UInteger IndirectCommandBuffer::size() const {
  check_alive("size");
  return dispatches_.size();
}

IndirectComputeCommand* IndirectCommandBuffer::indirectComputeCommand(NS::UInteger index) {
  check_alive("indirectComputeCommand");
  if (index >= dispatches_.size())
    throw EmulatorError(describe() + " has no command " + std::to_string(index));
  auto* command = new IndirectComputeCommand;
  command->commands_ = this;
  command->index_ = index;
  return command->autorelease();
}

void IndirectCommandBuffer::dispose() { device_->forget(this); }

Dispatch& IndirectComputeCommand::dispatch(const char* method) {
  check_alive(method);
  commands_->check_alive(method);
  return commands_->dispatches_[index_];
}

void IndirectComputeCommand::setComputePipelineState(const ComputePipelineState* pipeline) {
  pipeline->check_alive("setComputePipelineState");
  if (!pipeline->supports_indirect_)
    throw EmulatorError("pipeline " + pipeline->label_text() +
                        " was made without support of indirect command buffers");
  dispatch("setComputePipelineState").pipeline = pipeline;
}

void IndirectComputeCommand::setKernelBuffer(const Buffer* buffer, NS::UInteger offset,
                                             NS::UInteger index) {
  buffer->check_alive("setKernelBuffer");
  if (index >= commands_->max_buffers_ || offset > buffer->length())
    throw EmulatorError("setKernelBuffer: slot " + std::to_string(index) + " or byte " +
                        std::to_string(offset) + " is out of range");
  dispatch("setKernelBuffer").buffers[index] = {buffer, offset};
}

void IndirectComputeCommand::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  if (index >= commands_->max_threadgroup_ || length % 16 != 0)
    throw EmulatorError("setThreadgroupMemoryLength: " + std::to_string(length) +
                        " bytes at index " + std::to_string(index));
  dispatch("setThreadgroupMemoryLength").threadgroup_bytes[index] = static_cast<uint32_t>(length);
}

void IndirectComputeCommand::setBarrier() { dispatch("setBarrier").barrier_before = true; }

void IndirectComputeCommand::concurrentDispatchThreadgroups(Size threadgroups, Size threads) {
  Dispatch& set = dispatch("concurrentDispatchThreadgroups");
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
