#include "cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "core/system_file.h"
#include "cpu/cgroup.h"

namespace akunu::cpu {
namespace {

constexpr uint64_t kAlignment = 64;  // a cache line, and the widest vector register

// From here on blocks come straight from the system, page by page as they are touched.
constexpr uint64_t kMapFrom = 256 * 1024;

// Rows of activations lie kilobytes apart: with small pages each of them costs the processor a search
// for its address. A block as long as a huge page begins where one can; its end keeps small pages, so
// nothing is rounded up.
constexpr uint64_t kHugePage = 2 * 1024 * 1024;

std::byte* map_pages(uint64_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

std::byte* map_memory(uint64_t bytes) {
  if (bytes < kHugePage) return map_pages(bytes);
  const uint64_t room = bytes + kHugePage;
  std::byte* const first = map_pages(room);
  if (first == nullptr) return map_pages(bytes);  // there may just be room for what is needed
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = -reinterpret_cast<uintptr_t>(first) % kHugePage;
  const uint64_t used = (bytes + page - 1) / page * page;
  if (before > 0) munmap(first, before);
  if (room > before + used) munmap(first + before + used, room - before - used);
#if defined(MADV_HUGEPAGE)
  madvise(first + before, used, MADV_HUGEPAGE);
#endif
  return first + before;
}

#if defined(__APPLE__)
using Residence = char;  // of a page, as mincore tells it
#else
using Residence = unsigned char;
#endif

// A line of /proc/meminfo: "MemTotal:       1000 kB". 0 is nonsense, and means that nothing is known.
std::optional<uint64_t> meminfo(const std::string& root, std::string_view name) {
  const std::string text = read_system_file(root + "/proc/meminfo").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.substr(0, colon) != name) continue;
    const std::optional<uint64_t> kibibytes = leading_number(line.substr(colon + 1));
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max() / 1024;
    if (!kibibytes || *kibibytes == 0 || *kibibytes > kMost) return std::nullopt;
    return *kibibytes * 1024;
  }
  return std::nullopt;
}

// What systems without /proc/meminfo tell.
std::optional<uint64_t> physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::nullopt;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

std::optional<uint64_t> smaller(const std::optional<uint64_t>& a,
                                const std::optional<uint64_t>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

std::optional<uint64_t> available_memory(const std::string& root) {
  const std::optional<uint64_t> available = meminfo(root, "MemAvailable");
  return smaller(available ? available : physical_memory(), group_memory_left(root));
}

std::optional<uint64_t> total_memory(const std::string& root) {
  const std::optional<uint64_t> total = meminfo(root, "MemTotal");
  return smaller(total ? total : physical_memory(), group_memory_limit(root));
}

MemoryBlock::MemoryBlock(uint64_t bytes) {
  if (bytes > std::numeric_limits<uint64_t>::max() / 2) return;
  if (bytes >= kMapFrom) {
    data_ = map_memory(bytes);
  } else {
    const uint64_t rounded =
        std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (data_ != nullptr) std::memset(data_, 0, rounded);
  }
  if (data_ != nullptr) bytes_ = bytes;
}

bool MemoryBlock::is_mapped() const { return bytes_ >= kMapFrom; }

uint64_t MemoryBlock::untouched_bytes() const {
  if (!is_mapped()) return 0;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::array<Residence, 4096> resident;
  uint64_t touched = 0;
  for (uint64_t first = 0; first < bytes_; first += resident.size() * page) {
    const uint64_t n_bytes = std::min(bytes_ - first, resident.size() * page);
    const uint64_t n_pages = (n_bytes + page - 1) / page;
    if (mincore(data_ + first, n_bytes, resident.data()) != 0) return 0;
    for (uint64_t i = 0; i < n_pages; ++i) touched += resident[i] & 1;
  }
  return bytes_ - std::min(bytes_, touched * page);
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryBlock::~MemoryBlock() {
  if (data_ == nullptr) return;
  if (is_mapped())
    munmap(data_, bytes_);
  else
    std::free(data_);
}

}  // namespace akunu::cpu
