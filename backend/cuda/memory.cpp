#include "cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/memory_left.h"
#include "cpu/memory.h"

namespace akunu::cuda {
namespace {

constexpr std::string_view kWeightsLabel = "weights (on the GPU)";
constexpr std::string_view kHostWeightsLabel = "weights (in the host's memory, read by the GPU)";
// Buffers are as long as whole pieces of so many bytes: kernels read pieces (load_words of kernels/language.cuh), and there
// is no buffer of no bytes.
constexpr uint64_t kPieceBytes = 16;
constexpr uint64_t kPassing = 8 << 20;        // bytes that pass at a time
constexpr uint64_t kKeptFree = 256ull << 20;  // for the driver: modules, graphs, local memory

// No copy of a block takes so long, unless the GPU is gone.
constexpr std::chrono::seconds kLongestCopy(60);

uint64_t whole_pieces(uint64_t bytes) {
  return std::max((bytes + kPieceBytes - 1) / kPieceBytes, uint64_t{1}) * kPieceBytes;
}

}  // namespace

PinnedBlock::PinnedBlock(const Gpu& gpu, uint64_t bytes) : gpu_(&gpu), bytes_(bytes) {
  void* contents = nullptr;
  const Result result = gpu.driver().host_allocate(&contents, whole_pieces(bytes));
  if (result == kOutOfMemory)
    throw OutOfMemoryError("the system gives no " + mebibytes(bytes) +
                           " of memory that the GPU can copy from (pinned memory); end other "
                           "programs");
  gpu.driver().check(result, "asking for pinned memory");
  contents_ = static_cast<std::byte*>(contents);
}

PinnedBlock::~PinnedBlock() {
  if (contents_ != nullptr) static_cast<void>(gpu_->driver().host_free(contents_));
}

Memory::Memory(const Gpu& gpu) : gpu_(gpu), pinned_(gpu, kPassing) {
  gpu_.driver().check(gpu_.driver().event_create(&passed_, kNoTiming), "an event of the GPU");
}

Memory::~Memory() {
  if (passed_ != nullptr) static_cast<void>(gpu_.driver().event_destroy(passed_));
}

uint64_t Memory::available() const {
  size_t free = 0, total = 0;
  if (gpu_.driver().memory_info(&free, &total) != kSuccess) return 0;
  return free - std::min<uint64_t>(free, kKeptFree);
}

Buffer Memory::allocate_unset(uint64_t bytes, std::string_view label) {
  if (bytes > available())
    throw OutOfMemoryError(std::string(label) + " needs " + mebibytes(bytes) + " of the GPU, " +
                           mebibytes(available()) + " are available of " +
                           mebibytes(gpu_.memory_bytes()));
  auto owned = std::make_unique<Owned>();
  const Result result = gpu_.driver().memory_allocate(&owned->at, whole_pieces(bytes));
  if (result == kOutOfMemory)
    throw OutOfMemoryError(std::string(label) + " needs " + mebibytes(bytes) +
                           " of the GPU, and the driver refused them; " + mebibytes(available()) +
                           " should be available");
  gpu_.driver().check(result, "asking for memory of the GPU");
  return add(std::move(owned), bytes, label);
}

Buffer Memory::add(std::unique_ptr<Owned> owned, uint64_t bytes, std::string_view label) {
  owned->label = label;
  owned->bytes = bytes;
  const Buffer buffer{static_cast<Allocation*>(owned.get()), bytes, nullptr};
  ledger_.add(owned->label, false, bytes);
  owned_.emplace(buffer.handle, std::move(owned));
  return buffer;
}

Buffer Memory::allocate(uint64_t bytes, std::string_view label) {
  const Buffer buffer = allocate_unset(bytes, label);
  const std::lock_guard lock(passing_);
  gpu_.driver().check(gpu_.driver().fill(address_of(buffer), 0, whole_pieces(bytes), gpu_.copies()),
                      "clearing memory of the GPU");
  finish("clearing memory of the GPU");
  return buffer;
}

Buffer Memory::import(const WeightPart& part) {
  const uint64_t bytes = part.bytes.size();
  const Buffer buffer = allocate_unset(bytes, kWeightsLabel);
  try {
    if (bytes < whole_pieces(bytes)) {  // what is behind them is read too, and used for nothing
      const std::lock_guard lock(passing_);
      gpu_.driver().check(gpu_.driver().fill(address_of(buffer) + whole_pieces(bytes) - kPieceBytes,
                                             0, kPieceBytes, gpu_.copies()),
                          "clearing memory of the GPU");
    }
    write(buffer, 0, part.bytes);
  } catch (...) {
    release(buffer);
    throw;
  }
  return buffer;
}

// Pinned memory cannot be swapped out: more of it than there is would end other programs, not this one.
Buffer Memory::import_to_host(const WeightPart& part) {
  const uint64_t bytes = part.bytes.size();
  const std::optional<uint64_t> left = cpu::available_memory();
  if (left && bytes > *left)
    throw OutOfMemoryError("weights need " + mebibytes(bytes) + " of the host's memory, " +
                           mebibytes(*left) + " are available");
  auto owned = std::make_unique<Owned>();
  owned->block = PinnedBlock(gpu_, bytes);
  std::byte* contents = owned->block.contents();
  std::ranges::copy(part.bytes, contents);
  std::fill(contents + bytes, contents + whole_pieces(bytes), std::byte{0});
  owned->at = reinterpret_cast<DevicePointer>(contents);
  owned->in_host_memory = true;
  return add(std::move(owned), bytes, kHostWeightsLabel);
}

void Memory::release(const Buffer& buffer) {
  const auto found = owned_.find(buffer.handle);
  if (found == owned_.end()) return;
  if (!found->second->in_host_memory)
    static_cast<void>(gpu_.driver().memory_free(found->second->at));
  ledger_.remove(found->second->label, false, found->second->bytes);
  owned_.erase(found);
}

MemoryUse Memory::use_of(const Buffer& buffer) const {
  const auto& owned = static_cast<const Owned&>(*static_cast<const Allocation*>(buffer.handle));
  return {owned.label, owned.bytes, false};
}

// Two halves of the block: the host fills one while the other is under way.
void Memory::write(const Buffer& to, uint64_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(passing_);
  constexpr uint64_t kHalf = kPassing / 2;
  bool is_second = false;
  for (uint64_t at = 0; at < bytes.size(); at += kHalf) {
    const uint64_t n = std::min(kHalf, bytes.size() - at);
    std::byte* half = pinned_.contents() + (is_second ? kHalf : 0);
    // Before the last copy began, the one that this half was for had ended.
    std::memcpy(half, bytes.data() + at, n);
    if (at > 0) finish("a copy to the GPU");
    gpu_.driver().check(
        gpu_.driver().copy_to_device(address_of(to) + offset + at, half, n, gpu_.copies()),
        "a copy to the GPU");
    gpu_.driver().check(gpu_.driver().event_record(passed_, gpu_.copies()), "a copy to the GPU");
    is_second = !is_second;
  }
  finish("a copy to the GPU");
}

void Memory::read(const Buffer& from, uint64_t offset, std::span<std::byte> bytes) {
  if (in_host_memory(from)) {
    std::memcpy(bytes.data(), reinterpret_cast<const std::byte*>(address_of(from)) + offset,
                bytes.size());
    return;
  }
  const std::lock_guard lock(passing_);
  for (uint64_t at = 0; at < bytes.size(); at += kPassing) {
    const uint64_t n = std::min(kPassing, bytes.size() - at);
    gpu_.driver().check(gpu_.driver().copy_to_host(
                            pinned_.contents(), address_of(from) + offset + at, n, gpu_.copies()),
                        "a copy from the GPU");
    finish("a copy from the GPU");
    std::memcpy(bytes.data() + at, pinned_.contents(), n);
  }
}

// Waits for what is under way in the stream of copies.
void Memory::finish(std::string_view what) {
  gpu_.driver().check(gpu_.driver().event_record(passed_, gpu_.copies()), what);
  const Result result =
      wait_for(gpu_.driver(), passed_, std::chrono::steady_clock::now() + kLongestCopy);
  if (result == kNotReady)
    throw DeviceError(std::string(what) + " has not ended for " +
                      std::to_string(kLongestCopy.count()) +
                      " seconds: the GPU does not answer; see `nvidia-smi`");
  gpu_.driver().check(result, what);
}

}  // namespace akunu::cuda
