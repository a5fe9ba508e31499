// The emulated metal-cpp reports wrong use of Metal: calls in the wrong order, invalid arguments, and
// memory that the CPU changes while the GPU uses it. (Objects used after their last release, or never
// released, are found by AddressSanitizer, under which the drivers of Metal run too.)
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>
#include <array>
#include <optional>

#include "metal/emulator/metal_cpp/settings.h"
#include "metal/kernel.h"
#include "metal/objects.h"
#include "unit/check.h"

// The kernels of the package are not linked here.
std::optional<akunu::metal::Kernel> akunu::metal::find_kernel(const KernelRequest&, GemmTiles) {
  return {};
}
akunu::metal::Grid akunu::metal::gemm_grid(Format, uint32_t, uint32_t) { return {}; }
std::string akunu::metal::unsupported_shape(const KernelRequest&) { return {}; }

namespace akunu::test {
namespace {

using metal::AutoreleasePool;
using metal::make_string;
using metal::emulator::EmulatorError;

template <class Run>
void check_refused(Run&& run, std::string_view part,
                   const std::source_location& where = std::source_location::current()) {
  const std::string message = message_of<EmulatorError>(run);
  check(contains(message, part), "\"" + message + "\" says: " + std::string(part), where);
}

NS::SharedPtr<MTL::Device> make_device() {
  metal::emulator::Settings settings;
  settings.working_set_bytes = settings.max_buffer_bytes = 1 << 20;
  return NS::TransferPtr(MTL::emulator_device(settings));
}

NS::SharedPtr<MTL::Buffer> make_buffer(MTL::Device* device, const char* label) {
  auto buffer = NS::TransferPtr(device->newBuffer(256, MTL::ResourceStorageModeShared));
  buffer->setLabel(make_string(label).get());
  return buffer;
}

NS::SharedPtr<MTL::CommandBuffer> make_commands(MTL::CommandQueue* queue) {
  const auto descriptor = NS::TransferPtr(MTL::CommandBufferDescriptor::alloc()->init());
  descriptor->setRetainedReferences(false);
  return NS::RetainPtr(queue->commandBuffer(descriptor.get()));
}

NS::SharedPtr<MTL::ComputePipelineState> make_pipeline(MTL::Device* device, bool for_indirect) {
  const auto path = make_string("nowhere");
  NS::Error* error = nullptr;
  const auto library =
      NS::TransferPtr(device->newLibrary(NS::URL::fileURLWithPath(path.get()), &error));
  const auto constants = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto function =
      NS::TransferPtr(library->newFunction(make_string("toy_copy").get(), constants.get(), &error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  descriptor->setComputeFunction(function.get());
  descriptor->setSupportIndirectCommandBuffers(for_indirect);
  return NS::TransferPtr(
      device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
}

std::string failure_of(const NS::SharedPtr<MTL::CommandBuffer>& commands) {
  commands->waitUntilCompleted();
  return metal::describe(commands->error());
}

void test_references() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  MTL::Buffer* buffer = device->newBuffer(64, MTL::ResourceStorageModeShared);
  check(buffer->retainCount() == 1 && buffer->retain()->retainCount() == 2, "references count");
  buffer->release();
  check(device->currentAllocatedSize() == 64, "its memory is there as long as somebody holds it");
  buffer->release();
  check(device->currentAllocatedSize() == 0, "its memory was given back at the right time");
}

void test_pools() {
  NS::AutoreleasePool* outer = NS::AutoreleasePool::alloc()->init();
  NS::AutoreleasePool* inner = NS::AutoreleasePool::alloc()->init();
  check_refused([&] { outer->release(); }, "not the innermost");
  inner->release();
}

void test_queues() {
  NS::SharedPtr<MTL::Device> device = make_device();
  device->newCommandQueue();
  check_refused([&] { device.reset(); }, "a command queue of it was never released");
}

void test_order_of_calls() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  const auto queue = NS::TransferPtr(device->newCommandQueue());
  const auto buffer = make_buffer(device.get(), "buffer");
  const auto pipeline = make_pipeline(device.get(), false);
  const NS::SharedPtr<MTL::CommandBuffer> commands = make_commands(queue.get());
  MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
  check_refused([&] { commands->commit(); }, "while an encoder is open");
  check_refused([&] { commands->computeCommandEncoder(MTL::DispatchTypeConcurrent); },
                "while an encoder is open");
  check_refused([&] { blit->copyFromBuffer(buffer.get(), 0, buffer.get(), 64, 6); }, "whole words");
  check_refused([&] { blit->copyFromBuffer(buffer.get(), 0, buffer.get(), 192, 128); },
                "which has 256");
  blit->endEncoding();
  check_refused([&] { blit->fillBuffer(buffer.get(), NS::Range::Make(0, 16), 0); },
                "after endEncoding");
  check_refused([&] { commands->waitUntilCompleted(); }, "was not committed");
  MTL::ComputeCommandEncoder* compute =
      commands->computeCommandEncoder(MTL::DispatchTypeConcurrent);
  const MTL::Size one = MTL::Size::Make(1, 1, 1);
  check_refused([&] { compute->dispatchThreadgroups(one, one); }, "without a pipeline");
  check_refused([&] { compute->setBuffer(buffer.get(), 0, 31); }, "there is no slot 31");
  check_refused([&] { compute->setBufferOffset(0, 3); }, "nothing is bound to slot 3");
  compute->endEncoding();
  commands->commit();
  check_refused([&] { commands->commit(); }, "was committed");
  commands->waitUntilCompleted();
}

void test_no_copy() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  alignas(65536) static std::array<std::byte, 65536> pages{};
  const auto view = [&](size_t offset, size_t length) {
    return NS::TransferPtr(
        device->newBuffer(pages.data() + offset, length, MTL::ResourceStorageModeShared, nullptr));
  };
  check(view(0, 65536)->contents() == pages.data(), "whole pages are seen where they are");
  check_refused([&] { view(16, 4096); }, "whole pages");
  check_refused([&] { view(0, 100); }, "whole pages");
}

void test_memory_in_flight() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  const auto queue = NS::TransferPtr(device->newCommandQueue());
  const auto to = make_buffer(device.get(), "to");
  const auto staging = make_buffer(device.get(), "staging");
  const NS::SharedPtr<MTL::CommandBuffer> changed = make_commands(queue.get());
  MTL::BlitCommandEncoder* blit = changed->blitCommandEncoder();
  blit->copyFromBuffer(staging.get(), 0, to.get(), 0, 64);
  blit->endEncoding();
  metal::emulator::open_gate(false);
  changed->commit();
  static_cast<char*>(staging->contents())[5] = 1;
  metal::emulator::open_gate(true);
  const std::string message = failure_of(changed);
  check(contains(message, "the host changed buffer staging"), message);
  check(changed->status() == MTL::CommandBufferStatusError, "that is an error of the buffer");
}

void test_indirect_commands() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  const auto queue = NS::TransferPtr(device->newCommandQueue());
  const auto to = make_buffer(device.get(), "to"), from = make_buffer(device.get(), "from");
  static_cast<uint32_t*>(from->contents())[3] = 7;
  const auto plain = make_pipeline(device.get(), false), good = make_pipeline(device.get(), true);
  const auto descriptor = NS::TransferPtr(MTL::IndirectCommandBufferDescriptor::alloc()->init());
  descriptor->setCommandTypes(MTL::IndirectCommandTypeConcurrentDispatch);
  descriptor->setInheritBuffers(false);
  descriptor->setInheritPipelineState(false);
  descriptor->setMaxKernelBufferBindCount(2);
  const auto recorded = NS::TransferPtr(
      device->newIndirectCommandBuffer(descriptor.get(), 1, MTL::ResourceStorageModeShared));
  MTL::IndirectComputeCommand* command = recorded->indirectComputeCommand(0);
  check_refused([&] { command->setComputePipelineState(plain.get()); },
                "without support of indirect command buffers");
  check_refused([&] { command->setKernelBuffer(to.get(), 0, 2); }, "out of range");
  command->setComputePipelineState(good.get());
  command->setKernelBuffer(to.get(), 0, 0);
  command->setKernelBuffer(from.get(), 0, 1);
  command->concurrentDispatchThreadgroups(MTL::Size::Make(2, 1, 1), MTL::Size::Make(32, 1, 1));
  const NS::SharedPtr<MTL::CommandBuffer> commands = make_commands(queue.get());
  MTL::ComputeCommandEncoder* encoder =
      commands->computeCommandEncoder(MTL::DispatchTypeConcurrent);
  encoder->useResource(to.get(), MTL::ResourceUsageRead | MTL::ResourceUsageWrite);
  check_refused([&] { encoder->executeCommandsInBuffer(recorded.get(), NS::Range::Make(0, 1)); },
                "no useResource for buffer from");
  encoder->useResource(from.get(), MTL::ResourceUsageRead);
  check_refused([&] { encoder->executeCommandsInBuffer(recorded.get(), NS::Range::Make(0, 2)); },
                "beyond the last");
  encoder->executeCommandsInBuffer(recorded.get(), NS::Range::Make(0, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  check(commands->status() == MTL::CommandBufferStatusCompleted &&
            static_cast<uint32_t*>(to->contents())[3] == 7,
        "with everything declared it runs");
}

void test_events() {
  const NS::SharedPtr<MTL::Device> device = make_device();
  const AutoreleasePool pool;
  const auto event = NS::TransferPtr(device->newSharedEvent());
  check(!event->waitUntilSignaledValue(1, 1), "an event that nobody signals times out");
  event->setSignaledValue(2);
  check(event->waitUntilSignaledValue(1, 0) && event->signaledValue() == 2,
        "one that is past, not");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_references();
  test_pools();
  test_queues();
  test_order_of_calls();
  test_no_copy();
  test_memory_in_flight();
  test_indirect_commands();
  test_events();
  return summary();
}
