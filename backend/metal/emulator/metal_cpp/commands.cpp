// Command buffers, their encoders, and the queue that runs them: what metal-cpp offers, for tests on Linux.
//
// 1. What it does. Encoders check each call and add operations to their command buffer; a thread of
//    the queue runs the buffers in order, dispatches on the Executor, and signals what waits.
// 2. What it finds. Calls that Metal would crash on or leave undefined: EmulatorError names the
//    method. Bytes that the host changes while a committed buffer may still copy them
//    (`check_copies`).
// 3. What bounds it. The kernels: it is for tests, and as slow as the Executor.
// 4. Where to change it. A call that the backend newly uses: its method here and in
//    Metal/Metal.hpp. How a kernel runs: executor.cpp.
#include <algorithm>
#include <chrono>

#include "Metal/Metal.hpp"

namespace akunu::metal::emulator {
namespace {

// Tests close the gate to hold the queue's thread before it runs the next command buffer.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = true;
};

Gate& gate() {
  static Gate gate;
  return gate;
}

}  // namespace

void open_gate(bool open) {
  {
    const std::lock_guard lock(gate().mutex);
    gate().is_open = open;
  }
  gate().changed.notify_all();
}

static void pass_gate() {
  std::unique_lock lock(gate().mutex);
  gate().changed.wait(lock, [] { return gate().is_open; });
}

}  // namespace akunu::metal::emulator

namespace MTL {
namespace {

using emulator::EmulatorError;

CFTimeInterval now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t digest_of(const std::byte* bytes, NS::UInteger length) {
  uint64_t digest = 1469598103934665603u;  // FNV-1a
  for (NS::UInteger i = 0; i < length; ++i)
    digest = (digest ^ static_cast<uint64_t>(bytes[i])) * 1099511628211u;
  return digest;
}

void check_range(const char* what, const Buffer* buffer, NS::UInteger offset, NS::UInteger length) {
  if (offset > buffer->length() || length > buffer->length() - offset)
    throw EmulatorError(std::string(what) + ": bytes " + std::to_string(offset) + " to " +
                        std::to_string(offset + length) + " of buffer " + buffer->label_text() +
                        ", which has " + std::to_string(buffer->length()));
  if (offset % 4 != 0 || length % 4 != 0 || length == 0)
    throw EmulatorError(std::string(what) + ": offsets and lengths must be whole words, not " +
                        std::to_string(offset) + " and " + std::to_string(length));
}

}  // namespace

const NS::ErrorUserInfoKey CommandBufferEncoderInfoErrorKey =
    NS::String::alloc()->init("MTLCommandBufferEncoderInfoErrorKey", NS::UTF8StringEncoding);

CommandBuffer& CommandEncoder::open(const char* method) const {
  if (!is_open_) throw EmulatorError(std::string(method) + " after endEncoding");
  return *commands_;
}

void CommandEncoder::endEncoding() {
  open("endEncoding").encoder_ = nullptr;
  is_open_ = false;
  commands_->add({});  // encoders of one command buffer run one after the other
}

void CommandEncoder::add(Operation operation) {
  operation.encoder = label_;
  operation.signpost = signpost_;
  commands_->add(std::move(operation));
}

void CommandEncoder::insertDebugSignpost(const NS::String* text) {
  open("insertDebugSignpost");
  signpost_ = text->utf8String();
}

void BlitCommandEncoder::copyFromBuffer(const Buffer* source, NS::UInteger source_offset,
                                        const Buffer* destination, NS::UInteger destination_offset,
                                        NS::UInteger size) {
  open("copyFromBuffer");
  check_range("copyFromBuffer, source", source, source_offset, size);
  check_range("copyFromBuffer, destination", destination, destination_offset, size);
  Operation copy;
  copy.kind = Operation::Kind::copy;
  copy.source = source;
  copy.destination = destination;
  copy.source_offset = source_offset;
  copy.destination_offset = destination_offset;
  copy.length = size;
  add(std::move(copy));
}

void BlitCommandEncoder::fillBuffer(const Buffer* buffer, NS::Range range, uint8_t value) {
  open("fillBuffer");
  check_range("fillBuffer", buffer, range.location, range.length);
  Operation fill;
  fill.kind = Operation::Kind::fill;
  fill.destination = buffer;
  fill.destination_offset = range.location;
  fill.length = range.length;
  fill.fill = value;
  add(std::move(fill));
}

void ComputeCommandEncoder::setComputePipelineState(const ComputePipelineState* pipeline) {
  open("setComputePipelineState");
  next_.pipeline = pipeline;
}

void ComputeCommandEncoder::setBuffer(const Buffer* buffer, NS::UInteger offset,
                                      NS::UInteger index) {
  open("setBuffer");
  if (index >= emulator::kBufferSlots)
    throw EmulatorError("setBuffer: there is no slot " + std::to_string(index));
  if (buffer != nullptr && offset > buffer->length())
    throw EmulatorError("setBuffer: byte " + std::to_string(offset) + " of buffer " +
                        buffer->label_text() + ", which has " + std::to_string(buffer->length()));
  next_.buffers[index] = {buffer, offset};
}

void ComputeCommandEncoder::setBufferOffset(NS::UInteger offset, NS::UInteger index) {
  open("setBufferOffset");
  if (index >= emulator::kBufferSlots || next_.buffers[index].buffer == nullptr)
    throw EmulatorError("setBufferOffset: nothing is bound to slot " + std::to_string(index));
  setBuffer(next_.buffers[index].buffer, offset, index);
}

void ComputeCommandEncoder::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  open("setThreadgroupMemoryLength");
  if (index >= emulator::kThreadgroupSlots || length % 16 != 0)
    throw EmulatorError("setThreadgroupMemoryLength: " + std::to_string(length) +
                        " bytes at index " + std::to_string(index));
  next_.threadgroup_bytes[index] = static_cast<uint32_t>(length);
}

void ComputeCommandEncoder::dispatchThreadgroups(Size threadgroups, Size threads) {
  open("dispatchThreadgroups");
  if (next_.pipeline == nullptr) throw EmulatorError("dispatchThreadgroups without a pipeline");
  Operation operation;
  operation.kind = Operation::Kind::dispatch;
  operation.dispatch = next_;
  operation.dispatch.label = signpost_.empty() ? next_.pipeline->label_text() : signpost_;
  operation.dispatch.threadgroups = threadgroups;
  operation.dispatch.threads = threads;
  add(std::move(operation));
  if (!is_concurrent_) add({});
}

void ComputeCommandEncoder::memoryBarrier(BarrierScope scope) {
  open("memoryBarrier");
  if (scope != BarrierScopeBuffers)
    throw EmulatorError("memoryBarrier: only the scope of buffers is emulated");
  add({});
}

void ComputeCommandEncoder::useResource(const Resource* resource, ResourceUsage) {
  open("useResource");
  // Nothing else reads a resource that no command uses: so a released one is found here too.
  if (resource->retainCount() == 0) throw EmulatorError("useResource of what was released");
  used_.push_back(resource);
}

void ComputeCommandEncoder::executeCommandsInBuffer(const IndirectCommandBuffer* commands,
                                                    NS::Range range) {
  open("executeCommandsInBuffer");
  if (range.location + range.length > commands->size())
    throw EmulatorError("executeCommandsInBuffer: commands beyond the last");
  for (NS::UInteger i = range.location; i < range.location + range.length; ++i) {
    const Dispatch& dispatch = commands->dispatches_[i];
    if (dispatch.pipeline == nullptr)
      throw EmulatorError("executeCommandsInBuffer: command " + std::to_string(i) + " is empty");
    for (const Dispatch::Binding& binding : dispatch.buffers)
      if (binding.buffer != nullptr &&
          std::find(used_.begin(), used_.end(), binding.buffer) == used_.end())
        throw EmulatorError("executeCommandsInBuffer: no useResource for buffer " +
                            binding.buffer->label_text() + ", which " + dispatch.label + " uses");
  }
  Operation operation;
  operation.kind = Operation::Kind::indirect;
  operation.indirect = commands;
  operation.first = range.location;
  operation.count = range.length;
  add(std::move(operation));
  if (!is_concurrent_) add({});
}

NS::String* CommandBufferEncoderInfo::label() const {
  return NS::String::string(label_.c_str(), NS::UTF8StringEncoding);
}

CommandEncoderErrorState CommandBufferEncoderInfo::errorState() const {
  return CommandEncoderErrorStateFaulted;
}

NS::Array* CommandBufferEncoderInfo::debugSignposts() const {
  const NS::Object* const signpost = NS::String::string(signpost_.c_str(), NS::UTF8StringEncoding);
  return NS::Array::array(&signpost, signpost_.empty() ? 0 : 1);
}

CommandBufferDescriptor* CommandBufferDescriptor::alloc() { return new CommandBufferDescriptor; }
CommandBufferDescriptor* CommandBufferDescriptor::init() { return this; }

void CommandBufferDescriptor::setRetainedReferences(bool retained) { retained_ = retained; }

void CommandBufferDescriptor::setErrorOptions(CommandBufferErrorOption options) {
  options_ = options;
}

CommandBuffer* CommandQueue::commandBuffer(const CommandBufferDescriptor* descriptor) {
  if (descriptor->retained_)
    throw EmulatorError("commandBuffer: only unretained references are emulated");
  auto* commands = new CommandBuffer;
  commands->queue_ = this;
  commands->tells_encoders_ =
      descriptor->options_ == CommandBufferErrorOptionEncoderExecutionStatus;
  return commands->autorelease();
}

void CommandBuffer::dispose() {
  // Thrown away without commit, as a real one may be; but not in the middle of an encoder.
  if (encoder_ != nullptr)
    throw EmulatorError("command buffer " + label_text() + " ends with an encoder open");
}

void CommandBuffer::check_recording(const char* method) const {
  if (status_ != CommandBufferStatusNotEnqueued)
    throw EmulatorError(std::string(method) + " of a command buffer that was committed");
  if (encoder_ != nullptr) throw EmulatorError(std::string(method) + " while an encoder is open");
}

void CommandBuffer::add(Operation operation) { operations_.push_back(std::move(operation)); }

BlitCommandEncoder* CommandBuffer::blitCommandEncoder() {
  check_recording("blitCommandEncoder");
  auto* encoder = new BlitCommandEncoder;
  encoder->commands_ = this;
  encoder_ = encoder;
  return encoder->autorelease();
}

ComputeCommandEncoder* CommandBuffer::computeCommandEncoder(DispatchType type) {
  check_recording("computeCommandEncoder");
  auto* encoder = new ComputeCommandEncoder;
  encoder->commands_ = this;
  encoder->is_concurrent_ = type == DispatchTypeConcurrent;
  encoder_ = encoder;
  return encoder->autorelease();
}

void CommandBuffer::encodeWait(const Event* event, uint64_t value) {
  check_recording("encodeWait");
  Operation wait;
  wait.kind = Operation::Kind::wait;
  wait.event = dynamic_cast<SharedEvent*>(const_cast<Event*>(event));
  wait.value = value;
  add(std::move(wait));
}

void CommandBuffer::encodeSignalEvent(const Event* event, uint64_t value) {
  check_recording("encodeSignalEvent");
  Operation signal;
  signal.kind = Operation::Kind::signal;
  signal.event = dynamic_cast<SharedEvent*>(const_cast<Event*>(event));
  signal.value = value;
  add(std::move(signal));
}

// Remembers a digest of the bytes that each copy reads, unless this command buffer writes the source
// itself: `run_operation` checks that the host has not changed them.
void CommandBuffer::check_copies() {
  const auto is_written = [&](const Buffer* buffer) {
    return std::any_of(operations_.begin(), operations_.end(), [&](const Operation& operation) {
      const auto binds = [&](const Dispatch& dispatch) {
        return std::any_of(dispatch.buffers.begin(), dispatch.buffers.end(),
                           [&](const auto& binding) { return binding.buffer == buffer; });
      };
      bool written = operation.destination == buffer || binds(operation.dispatch);
      for (NS::UInteger i = 0; i < operation.count; ++i)
        written = written || binds(operation.indirect->dispatches_[operation.first + i]);
      return written;
    });
  };
  const Buffer* asked = nullptr;
  bool written = false;
  for (Operation& operation : operations_) {
    if (operation.kind != Operation::Kind::copy) continue;
    if (operation.source != asked) written = is_written(operation.source);
    asked = operation.source;
    operation.has_digest = !written;
    if (!written)
      operation.digest =
          digest_of(operation.source->bytes_ + operation.source_offset, operation.length);
  }
}

void CommandBuffer::commit() {
  check_recording("commit");
  check_copies();
  status_ = CommandBufferStatusCommitted;
  queue_->push(this->retain());
}

void CommandBuffer::waitUntilCompleted() {
  std::unique_lock lock(mutex_);
  if (status_ == CommandBufferStatusNotEnqueued)
    throw EmulatorError("waitUntilCompleted of a command buffer that was not committed");
  changed_.wait(lock, [&] { return status_ >= CommandBufferStatusCompleted; });
}

CommandBufferStatus CommandBuffer::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

NS::Error* CommandBuffer::error() const {
  const std::lock_guard lock(mutex_);
  if (status_ != CommandBufferStatusError) return nullptr;
  const auto string = [](const std::string& text) {
    return NS::String::string(text.c_str(), NS::UTF8StringEncoding);
  };
  auto* info = new CommandBufferEncoderInfo;
  info->autorelease();
  info->label_ = failed_encoder_;
  info->signpost_ = failed_signpost_;
  const NS::Object* const infos = info;
  const std::array<const NS::Object*, 2> objects{string(error_), NS::Array::array(&infos, 1)};
  const std::array<const NS::Object*, 2> keys{NS::LocalizedDescriptionKey,
                                              CommandBufferEncoderInfoErrorKey};
  return NS::Error::error(
      nullptr, CommandBufferErrorInternal,
      NS::Dictionary::dictionary(objects.data(), keys.data(), tells_encoders_ ? 2 : 1));
}

CFTimeInterval CommandBuffer::GPUStartTime() const { return start_; }
CFTimeInterval CommandBuffer::GPUEndTime() const { return end_; }

void CommandBuffer::run_dispatch(emulator::Executor& executor, const Dispatch& dispatch) {
  emulator::Launch launch;
  launch.function = dispatch.pipeline->function_;
  launch.label = dispatch.label;
  launch.constants = dispatch.pipeline->constants_;
  launch.threadgroup_bytes = dispatch.threadgroup_bytes;
  for (uint32_t slot = 0; slot < emulator::kBufferSlots; ++slot) {
    const Dispatch::Binding& binding = dispatch.buffers[slot];
    if (binding.buffer == nullptr) continue;
    launch.buffers[slot] = {binding.buffer->bytes_, binding.buffer->length_, binding.offset,
                            binding.buffer->label_text()};
  }
  const auto as_array = [](const Size& size) {
    return std::array{static_cast<uint32_t>(size.width), static_cast<uint32_t>(size.height),
                      static_cast<uint32_t>(size.depth)};
  };
  launch.threadgroups = as_array(dispatch.threadgroups);
  launch.threads = as_array(dispatch.threads);
  executor.run(launch);
}

// The dispatches between two barriers may run in any order. They run in reverse here, so that a missing
// barrier shows.
void CommandBuffer::run_stage(emulator::Executor& executor) {
  if (stage_.empty()) return;
  for (auto staged = stage_.rbegin(); staged != stage_.rend(); ++staged) {
    failed_encoder_ = staged->operation->encoder;
    failed_signpost_ = staged->operation->signpost;
    run_dispatch(executor, *staged->dispatch);
  }
  executor.end_stage();
  stage_.clear();
}

void CommandBuffer::run_operation(emulator::Executor& executor, const Operation& operation) {
  using enum Operation::Kind;
  if (operation.kind != dispatch && operation.kind != indirect) run_stage(executor);
  switch (operation.kind) {
    case barrier:
      break;
    case dispatch:
      stage_.push_back({&operation.dispatch, &operation});
      break;
    case indirect:
      for (NS::UInteger i = 0; i < operation.count; ++i) {
        const Dispatch& command = operation.indirect->dispatches_[operation.first + i];
        if (command.barrier_before) run_stage(executor);
        stage_.push_back({&command, &operation});
      }
      break;
    case copy: {
      const std::byte* from = operation.source->bytes_ + operation.source_offset;
      if (operation.has_digest && digest_of(from, operation.length) != operation.digest)
        throw EmulatorError("the host changed buffer " + operation.source->label_text() +
                            " while a command buffer in flight copies from it");
      std::copy_n(from, operation.length,
                  operation.destination->bytes_ + operation.destination_offset);
      break;
    }
    case fill:
      std::fill_n(operation.destination->bytes_ + operation.destination_offset, operation.length,
                  static_cast<std::byte>(operation.fill));
      break;
    case wait:
      while (!operation.event->waitUntilSignaledValue(operation.value, 1000)) {
      }
      break;
    case signal:
      operation.event->setSignaledValue(operation.value);
      break;
  }
}

void CommandBuffer::run(emulator::Executor& executor) {
  start_ = now();
  CommandBufferStatus result = CommandBufferStatusCompleted;
  try {
    for (const Operation& operation : operations_) run_operation(executor, operation);
    run_stage(executor);
  } catch (const EmulatorError& error) {
    // As on a real one, what comes after the fault is not run, and signals nothing.
    error_ = error.what();
    executor.end_stage();
    result = CommandBufferStatusError;
  }
  end_ = now();
  finish(result);
}

void CommandBuffer::finish(CommandBufferStatus status) {
  {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  changed_.notify_all();
}

void CommandQueue::push(CommandBuffer* commands) {
  {
    const std::lock_guard lock(mutex_);
    committed_.push_back(commands);
  }
  changed_.notify_all();
}

void CommandQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !committed_.empty(); });
    if (committed_.empty()) return;
    CommandBuffer* commands = committed_.front();
    committed_.pop_front();
    lock.unlock();
    emulator::pass_gate();
    commands->run(*executor_);
    commands->release();
    lock.lock();
  }
}

void CommandQueue::dispose() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  worker_.join();
  --device_->n_queues_;
}

}  // namespace MTL
