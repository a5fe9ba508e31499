// NVIDIA's driver, as far as this backend calls it. The library is opened when a device is asked for:
// a program without a GPU neither needs it nor knows of it, and nothing of the CUDA toolkit is linked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace akunu::cuda {

using Result = int32_t;
using DevicePointer = uint64_t;
using DeviceNumber = int32_t;
// Handles of the driver's own.
using Context = struct ContextOfDriver*;
using Module = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
using Stream = struct StreamOfDriver*;
using Event = struct EventOfDriver*;
using Graph = struct GraphOfDriver*;
using GraphExec = struct GraphExecOfDriver*;

// Values of enumerations of the driver that are used here.
constexpr Result kSuccess = 0, kOutOfMemory = 2, kNotReady = 600, kPeerAccessEnabled = 704;
constexpr uint32_t kNonBlocking = 1;  // of a stream
constexpr uint32_t kNoTiming = 2;     // of an event
constexpr uint32_t kCaptureOfThread =
    1;  // a capture of this thread alone; other threads are not affected
enum class Attribute : int32_t {
  multiprocessors = 16,
  clock_kilohertz = 13,
  memory_clock_kilohertz = 36,
  memory_bus_bits = 37,
  capability_major = 75,
  capability_minor = 76,
  shared_bytes_of_block = 97,  // that a function may be allowed
};
enum class FunctionAttribute : int32_t {
  static_shared_bytes = 1,
  dynamic_shared_bytes = 8,  // that a launch may ask for
};

// A launch, laid out as the driver has it.
enum class LaunchAttributeId : int32_t {
  cluster = 4,  // blocks of a cluster in x, y and z
  early =
      6,  // programmatic stream serialisation: 1 where it may begin before the launch before it has ended
};
struct LaunchAttribute {
  LaunchAttributeId id;
  uint32_t padding = 0;
  std::array<uint32_t, 16> value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  std::array<uint32_t, 3> grid = {};
  std::array<uint32_t, 3> block = {};
  uint32_t shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  uint32_t n_attributes = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

// X(name here, symbol, parameters)
#define AKUNU_CUDA_FUNCTIONS(X)                                                                   \
  X(init, cuInit, (uint32_t flags))                                                               \
  X(driver_version, cuDriverGetVersion, (int32_t* version))                                       \
  X(error_name, cuGetErrorName, (Result result, const char** name))                               \
  X(error_string, cuGetErrorString, (Result result, const char** text))                           \
  X(device_count, cuDeviceGetCount, (int32_t* count))                                             \
  X(device_get, cuDeviceGet, (DeviceNumber * device, int32_t ordinal))                            \
  X(device_name, cuDeviceGetName, (char* name, int32_t length, DeviceNumber device))              \
  X(device_attribute, cuDeviceGetAttribute,                                                       \
    (int32_t* value, Attribute attribute, DeviceNumber device))                                   \
  X(device_memory, cuDeviceTotalMem_v2, (size_t* bytes, DeviceNumber device))                     \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context * context, DeviceNumber device))           \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                         \
  X(context_push, cuCtxPushCurrent_v2, (Context context))                                         \
  X(context_pop, cuCtxPopCurrent_v2, (Context * context))                                         \
  X(peer_access, cuCtxEnablePeerAccess, (Context context, uint32_t flags))                        \
  X(can_access, cuDeviceCanAccessPeer, (int32_t* can, DeviceNumber device, DeviceNumber other))   \
  X(memory_info, cuMemGetInfo_v2, (size_t* free, size_t* total))                                  \
  X(memory_allocate, cuMemAlloc_v2, (DevicePointer * pointer, size_t bytes))                      \
  X(memory_free, cuMemFree_v2, (DevicePointer pointer))                                           \
  X(host_allocate, cuMemAllocHost_v2, (void** pointer, size_t bytes))                             \
  X(host_free, cuMemFreeHost, (void* pointer))                                                    \
  X(copy_to_device, cuMemcpyHtoDAsync_v2,                                                         \
    (DevicePointer to, const void* from, size_t bytes, Stream stream))                            \
  X(copy_to_host, cuMemcpyDtoHAsync_v2,                                                           \
    (void* to, DevicePointer from, size_t bytes, Stream stream))                                  \
  X(copy_within, cuMemcpyDtoDAsync_v2,                                                            \
    (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))                          \
  X(fill, cuMemsetD8Async, (DevicePointer at, uint8_t value, size_t bytes, Stream stream))        \
  X(module_load, cuModuleLoadData, (Module * module, const void* image))                          \
  X(module_unload, cuModuleUnload, (Module module))                                               \
  X(module_function, cuModuleGetFunction, (Function * function, Module module, const char* name)) \
  X(function_attribute, cuFuncGetAttribute,                                                       \
    (int32_t* value, FunctionAttribute attribute, Function function))                             \
  X(set_function_attribute, cuFuncSetAttribute,                                                   \
    (Function function, FunctionAttribute attribute, int32_t value))                              \
  X(launch, cuLaunchKernelEx,                                                                     \
    (const LaunchConfig* config, Function function, void** parameters, void** extra))             \
  X(stream_create, cuStreamCreate, (Stream * stream, uint32_t flags))                             \
  X(stream_destroy, cuStreamDestroy_v2, (Stream stream))                                          \
  X(capture_begin, cuStreamBeginCapture_v2, (Stream stream, uint32_t mode))                       \
  X(capture_end, cuStreamEndCapture, (Stream stream, Graph * graph))                              \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                               \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                    \
  X(graph_launch, cuGraphLaunch, (GraphExec exec, Stream stream))                                 \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec exec))                                     \
  X(graph_destroy, cuGraphDestroy, (Graph graph))                                                 \
  X(event_create, cuEventCreate, (Event * event, uint32_t flags))                                 \
  X(event_record, cuEventRecord, (Event event, Stream stream))                                    \
  X(event_query, cuEventQuery, (Event event))                                                     \
  X(event_elapsed, cuEventElapsedTime, (float* milliseconds, Event begin, Event end))             \
  X(event_destroy, cuEventDestroy_v2, (Event event))

class Driver {
 public:
  // The driver of this process, opened by the first call that finds it. Throws DeviceError where
  // there is none, or one that is too old.
  static const Driver& get();

#define AKUNU_CUDA_DECLARE(name, symbol, parameters) Result(*name) parameters = nullptr;
  AKUNU_CUDA_FUNCTIONS(AKUNU_CUDA_DECLARE)
#undef AKUNU_CUDA_DECLARE

  // Throws DeviceError where the result is an error: what was to be done, what the driver says, and
  // what to do about it.
  void check(Result result, std::string_view what) const {
    if (result != kSuccess) fail(result, what);
  }
  std::string describe(Result result, std::string_view what) const;

 private:
  [[noreturn]] void fail(Result result, std::string_view what) const;
};

}  // namespace akunu::cuda
