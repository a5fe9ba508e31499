// A stand-in for libcuda.so.1: the functions of the driver that the backend calls, over memory of this
// process. Streams run what is put into them at once, in order, or once the gate is open. With it the
// host code of the device is tested where there is no GPU; kernels are functions of the test.
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "unit/cuda_stub.h"

// Handles of the driver are pointers to these.
namespace akunu::cuda {
struct ContextOfDriver {};
struct ModuleOfDriver {
  const akunu::test::StubKernel* kernels;
};
struct FunctionOfDriver {
  uint32_t shared_bytes = 49'152;  // what a launch may ask for
  const akunu::test::StubKernel* kernel;
};
struct GraphOfDriver {
  std::deque<std::function<void()>> work;
};
struct GraphExecOfDriver {
  std::deque<std::function<void()>> work;
};
struct StreamOfDriver {
  std::deque<std::function<void()>> waiting;
  GraphOfDriver* captured = nullptr;
};
struct EventOfDriver {
  uint64_t recorded = 0, reached = 0;
};
}  // namespace akunu::cuda

namespace {

using namespace akunu::cuda;
using akunu::test::StubCounts;
using akunu::test::StubKernel;

constexpr uint64_t kTotal = 1ull << 30;
// Launches that a stream takes while none of them runs; who launches one more waits for room, as with the real driver.
constexpr size_t kMostWaiting = 1024;

struct Stub {
  std::recursive_mutex mutex;
  std::condition_variable_any has_room;
  std::map<std::string, std::pair<Result, uint32_t>> failures;
  bool is_open = true;
  int32_t capability = 90;
  StubCounts counts;
  std::map<uint64_t, size_t> blocks;
  std::set<Stream> streams;
  std::map<std::pair<Module, std::string>, FunctionOfDriver> functions;
  std::array<ContextOfDriver, 8> contexts;  // of each GPU
  int32_t n_gpus = 1;
  bool are_linked = true;
  std::set<std::pair<Context, Context>> peers;

  void wait_for_room(Stream stream) {
    std::unique_lock lock(mutex);
    const auto is_room = [&] {
      return stream->captured != nullptr || stream->waiting.size() < kMostWaiting;
    };
    if (is_room()) return;
    ++counts.blocked;
    has_room.wait(lock, is_room);
    --counts.blocked;
  }
  // The result that a call of `function` is to give.
  Result result_of(const char* function) {
    const auto found = failures.find(function);
    if (found == failures.end()) return kSuccess;
    if (found->second.second > 0) {
      --found->second.second;
      return kSuccess;
    }
    return found->second.first;
  }
  void put(Stream stream, std::function<void()> work) {
    if (stream->captured != nullptr) return stream->captured->work.push_back(std::move(work));
    stream->waiting.push_back(std::move(work));
    if (is_open) run(stream);
  }
  static void run(Stream stream) {
    while (!stream->waiting.empty()) {
      stream->waiting.front()();
      stream->waiting.pop_front();
    }
  }
};

Stub& stub() {
  static Stub it;
  return it;
}

void fail(const char* function, int32_t result, uint32_t after) {
  const std::lock_guard lock(stub().mutex);
  stub().failures[function] = {result, after};
}
void mend() {
  const std::lock_guard lock(stub().mutex);
  stub().failures.clear();
}
void open_gate(bool is_open) {
  const std::lock_guard lock(stub().mutex);
  stub().is_open = is_open;
  if (is_open)
    for (Stream stream : stub().streams) Stub::run(stream);
  stub().has_room.notify_all();
}
void set_capability(int32_t capability) { stub().capability = capability; }
void set_gpus(int32_t n) { stub().n_gpus = n; }
void link_gpus(bool are_linked) { stub().are_linked = are_linked; }
StubCounts counts() {
  const std::lock_guard lock(stub().mutex);
  return stub().counts;
}

// Of the calling thread, the last one is in use.
thread_local std::vector<Context> current;

std::byte* at(DevicePointer pointer) { return reinterpret_cast<std::byte*>(pointer); }

}  // namespace

// Every function of the driver is asked first whether it is to fail.
#define STUB(name)                          \
  const std::lock_guard lock(stub().mutex); \
  if (const Result result = stub().result_of(name)) return result

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const akunu::test::StubControls* akunu_stub_controls() {
  static const akunu::test::StubControls controls{fail,     mend,      open_gate, set_capability,
                                                  set_gpus, link_gpus, counts};
  return &controls;
}

EXPORT Result cuInit(uint32_t) {
  STUB("cuInit");
  return kSuccess;
}
EXPORT Result cuDriverGetVersion(int32_t* version) {
  STUB("cuDriverGetVersion");
  *version = 13000;
  return kSuccess;
}
EXPORT Result cuGetErrorName(Result, const char** name) {
  *name = "CUDA_ERROR_OF_THE_STUB";
  return kSuccess;
}
EXPORT Result cuGetErrorString(Result, const char** text) {
  *text = "an error that a test asked for";
  return kSuccess;
}
EXPORT Result cuDeviceGetCount(int32_t* count) {
  STUB("cuDeviceGetCount");
  *count = stub().n_gpus;
  return kSuccess;
}
EXPORT Result cuDeviceGet(DeviceNumber* device, int32_t ordinal) {
  STUB("cuDeviceGet");
  *device = ordinal;
  return kSuccess;
}
EXPORT Result cuDeviceGetName(char* name, int32_t length, DeviceNumber) {
  STUB("cuDeviceGetName");
  std::strncpy(name, "Stub GPU", static_cast<size_t>(length));
  return kSuccess;
}
EXPORT Result cuDeviceGetAttribute(int32_t* value, Attribute attribute, DeviceNumber) {
  STUB("cuDeviceGetAttribute");
  switch (attribute) {
    case Attribute::multiprocessors:
      *value = 132;
      break;
    case Attribute::clock_kilohertz:
      *value = 1'980'000;
      break;
    case Attribute::memory_clock_kilohertz:
      *value = 2'619'000;
      break;
    case Attribute::memory_bus_bits:
      *value = 5120;
      break;
    case Attribute::capability_major:
      *value = stub().capability / 10;
      break;
    case Attribute::capability_minor:
      *value = stub().capability % 10;
      break;
    case Attribute::shared_bytes_of_block:
      *value = 232'448;
      break;
  }
  return kSuccess;
}
EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, DeviceNumber) {
  STUB("cuDeviceTotalMem_v2");
  *bytes = kTotal;
  return kSuccess;
}
EXPORT Result cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  STUB("cuDevicePrimaryCtxRetain");
  *context = &stub().contexts[static_cast<size_t>(device)];
  return kSuccess;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(DeviceNumber) { return kSuccess; }
EXPORT Result cuCtxPushCurrent_v2(Context context) {
  STUB("cuCtxPushCurrent_v2");
  current.push_back(context);
  return kSuccess;
}
EXPORT Result cuCtxPopCurrent_v2(Context* context) {
  *context = current.empty() ? nullptr : current.back();
  if (!current.empty()) current.pop_back();
  return kSuccess;
}
EXPORT Result cuDeviceCanAccessPeer(int32_t* can, DeviceNumber device, DeviceNumber other) {
  STUB("cuDeviceCanAccessPeer");
  *can = stub().are_linked && device != other;
  return kSuccess;
}
EXPORT Result cuCtxEnablePeerAccess(Context other, uint32_t) {
  STUB("cuCtxEnablePeerAccess");
  if (current.empty() || current.back() == other) return 1;
  if (!stub().peers.insert({current.back(), other}).second) return kPeerAccessEnabled;
  ++stub().counts.peers;
  return kSuccess;
}
EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  STUB("cuMemGetInfo_v2");
  *free = kTotal - stub().counts.allocated;
  *total = kTotal;
  return kSuccess;
}
EXPORT Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  STUB("cuMemAlloc_v2");
  void* block = std::malloc(bytes);
  std::memset(block, 0xa5, bytes);  // what new memory holds is anybody's guess
  *pointer = reinterpret_cast<DevicePointer>(block);
  stub().blocks[*pointer] = bytes;
  stub().counts.allocated += bytes;
  return kSuccess;
}
EXPORT Result cuMemFree_v2(DevicePointer pointer) {
  STUB("cuMemFree_v2");
  const auto found = stub().blocks.find(pointer);
  if (found == stub().blocks.end()) return 1;
  stub().counts.allocated -= found->second;
  stub().blocks.erase(found);
  std::free(at(pointer));
  return kSuccess;
}
EXPORT Result cuMemAllocHost_v2(void** pointer, size_t bytes) {
  STUB("cuMemAllocHost_v2");
  *pointer = std::malloc(bytes);
  return kSuccess;
}
EXPORT Result cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return kSuccess;
}
EXPORT Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes,
                                   Stream stream) {
  STUB("cuMemcpyHtoDAsync_v2");
  stub().put(stream, [=] { std::memcpy(at(to), from, bytes); });
  return kSuccess;
}
EXPORT Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream stream) {
  STUB("cuMemcpyDtoHAsync_v2");
  stub().put(stream, [=] { std::memcpy(to, at(from), bytes); });
  return kSuccess;
}
EXPORT Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                                   Stream stream) {
  STUB("cuMemcpyDtoDAsync_v2");
  stub().put(stream, [=] { std::memcpy(at(to), at(from), bytes); });
  return kSuccess;
}
EXPORT Result cuMemsetD8Async(DevicePointer to, uint8_t value, size_t bytes, Stream stream) {
  STUB("cuMemsetD8Async");
  stub().put(stream, [=] { std::memset(at(to), value, bytes); });
  return kSuccess;
}
EXPORT Result cuModuleLoadData(Module* module, const void* image) {
  STUB("cuModuleLoadData");
  *module = new ModuleOfDriver{static_cast<const StubKernel*>(image)};
  return kSuccess;
}
EXPORT Result cuModuleUnload(Module module) {
  delete module;
  return kSuccess;
}
EXPORT Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  STUB("cuModuleGetFunction");
  for (const StubKernel* kernel = module->kernels; kernel->name != nullptr; ++kernel)
    if (std::strcmp(kernel->name, name) == 0) {
      FunctionOfDriver& known = stub().functions[{module, name}];
      known.kernel = kernel;
      *function = &known;
      return kSuccess;
    }
  return 500;
}
EXPORT Result cuFuncGetAttribute(int32_t* value, FunctionAttribute attribute, Function) {
  STUB("cuFuncGetAttribute");
  if (attribute != FunctionAttribute::static_shared_bytes) return 1;
  *value = 32;
  return kSuccess;
}
EXPORT Result cuFuncSetAttribute(Function function, FunctionAttribute attribute, int32_t value) {
  STUB("cuFuncSetAttribute");
  if (attribute != FunctionAttribute::dynamic_shared_bytes || value + 32 > 232'448) return 1;
  function->shared_bytes = static_cast<uint32_t>(value);
  return kSuccess;
}
EXPORT Result cuLaunchKernelEx(const LaunchConfig* config, Function function, void** parameters,
                               void**) {
  stub().wait_for_room(config->stream);
  STUB("cuLaunchKernelEx");
  const auto& grid = config->grid;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || config->block[0] > 1024 ||
      config->shared_bytes > function->shared_bytes)
    return 1;
  const Arguments arguments = *static_cast<const Arguments*>(parameters[0]);
  const uint32_t blocks = grid[0] * grid[1] * grid[2];
  const StubKernel* kernel = function->kernel;
  stub().put(config->stream, [=] {
    kernel->run(arguments, blocks);
    ++stub().counts.launches;
  });
  return kSuccess;
}
EXPORT Result cuStreamCreate(Stream* stream, uint32_t) {
  STUB("cuStreamCreate");
  *stream = new StreamOfDriver;
  stub().streams.insert(*stream);
  return kSuccess;
}
EXPORT Result cuStreamDestroy_v2(Stream stream) {
  STUB("cuStreamDestroy_v2");
  stub().streams.erase(stream);
  delete stream;
  return kSuccess;
}
EXPORT Result cuStreamBeginCapture_v2(Stream stream, uint32_t) {
  STUB("cuStreamBeginCapture_v2");
  stream->captured = new GraphOfDriver;
  ++stub().counts.captures;
  return kSuccess;
}
EXPORT Result cuStreamEndCapture(Stream stream, Graph* graph) {
  *graph = stream->captured;
  stream->captured = nullptr;
  STUB("cuStreamEndCapture");
  return kSuccess;
}
EXPORT Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  STUB("cuGraphInstantiateWithFlags");
  *exec = new GraphExecOfDriver{graph->work};
  ++stub().counts.graphs;
  return kSuccess;
}
EXPORT Result cuGraphLaunch(GraphExec exec, Stream stream) {
  STUB("cuGraphLaunch");
  ++stub().counts.graph_launches;
  for (const auto& work : exec->work) stub().put(stream, work);
  return kSuccess;
}
EXPORT Result cuGraphExecDestroy(GraphExec exec) {
  delete exec;
  --stub().counts.graphs;
  return kSuccess;
}
EXPORT Result cuGraphDestroy(Graph graph) {
  delete graph;
  return kSuccess;
}
EXPORT Result cuEventCreate(Event* event, uint32_t) {
  STUB("cuEventCreate");
  *event = new EventOfDriver;
  return kSuccess;
}
EXPORT Result cuEventRecord(Event event, Stream stream) {
  STUB("cuEventRecord");
  const uint64_t number = ++event->recorded;
  stub().put(stream, [=] { event->reached = number; });
  return kSuccess;
}
EXPORT Result cuEventQuery(Event event) {
  STUB("cuEventQuery");
  return event->reached == event->recorded ? kSuccess : kNotReady;
}
EXPORT Result cuEventElapsedTime(float* milliseconds, Event, Event) {
  STUB("cuEventElapsedTime");
  *milliseconds = 0.25f;
  return kSuccess;
}
EXPORT Result cuEventDestroy_v2(Event event) {
  delete event;
  return kSuccess;
}
