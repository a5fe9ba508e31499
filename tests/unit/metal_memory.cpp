// The memory of the Metal device: what it allocates, refuses and counts, and weights that stay where
// their file is mapped.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"
#include "metal/memory.h"
#include "unit/check.h"
#include "unit/metal_toys.h"

// The kernels of the package are not linked here.
std::optional<akunu::metal::Kernel> akunu::metal::find_kernel(const KernelRequest&, GemmTiles) {
  return {};
}
akunu::metal::Grid akunu::metal::gemm_grid(Format, uint32_t, uint32_t) { return {}; }
std::string akunu::metal::unsupported_shape(const KernelRequest&) { return {}; }

namespace akunu::test {
namespace {

const Kernel kReadWeight = toy("toy_read_weight", one_simdgroup);

void test_memory() {
  const Environment memory("AKUNU_METAL_EMULATED_MEMORY", "1000000");
  const Environment length("AKUNU_METAL_EMULATED_BUFFER_LENGTH", "600000");
  const auto device = create_metal_device({});
  check(device->chip().memory_bytes == 1'000'000, "the working set is the memory");
  const Buffer first = device->allocate(500'000, "first");
  check(std::all_of(first.contents, first.contents + first.size,
                    [](std::byte byte) { return byte == std::byte{}; }),
        "memory is zero");
  check(device->memory_left().memory == 500'000, "what is allocated is not available");
  const std::string full =
      message_of<OutOfMemoryError>([&] { device->allocate(500'001, "second"); });
  check(contains(full, "second needs 500001 bytes, 500000 are available of the 1000000"), full);
  device->release(first);
  const std::string longer =
      message_of<OutOfMemoryError>([&] { device->allocate(600'001, "third"); });
  check(contains(longer, "a buffer of the GPU has 600000 at most"), longer);
  const Buffer small = device->allocate(0, "nothing");
  check(small.contents != nullptr && small.size == 0, "nothing is a buffer too");
  const Buffer again = device->allocate(100, "first");
  const std::vector<MemoryUse> uses = device->memory_use();
  check(uses.size() == 1 && uses[0].label == "first" && uses[0].bytes == 100 && !uses[0].mapped,
        "memory is counted by label");
  device->release(again);
  device->release(small);
}

// Pages with words that say where they are.
struct Mapping {
  explicit Mapping(uint64_t n_pages)
      : page(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))), size(n_pages * page) {
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bytes = {static_cast<std::byte*>(mapped), size};
    for (uint64_t i = 0; i < size / 4; ++i)
      reinterpret_cast<uint32_t*>(mapped)[i] = static_cast<uint32_t>(i);
    mprotect(mapped, size, PROT_READ);
    owner = std::shared_ptr<const void>(
        mapped, [n = size](const void* address) { munmap(const_cast<void*>(address), n); });
  }
  WeightSource weight(uint64_t first, uint64_t n_bytes) const {
    return {.name = "w",
            .format = Format::f32,
            .rows = 1,
            .k = n_bytes / 4,
            .parts = {part(first, n_bytes)}};
  }
  WeightPart part(uint64_t first, uint64_t n_bytes) const {
    // A file rarely ends where a page does.
    return {bytes.subspan(first, n_bytes), owner, bytes.first(size - 100)};
  }
  uint64_t page, size;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

const void* buffer_of(const Weight& weight) {
  return metal::allocation_of(weight.planes[0].buffer).buffer;
}

uint64_t bytes_of(const Device& device, std::string_view label, bool mapped) {
  for (const MemoryUse& use : device.memory_use())
    if (use.label == label && use.mapped == mapped) return use.bytes;
  return 0;
}

void test_import() {
  ToyMachine machine;
  Device& device = *machine.device;
  auto mapping = std::make_unique<Mapping>(4);
  const Weight first = device.import_weight(mapping->weight(64, 400)),
               second = device.import_weight(mapping->weight(2 * mapping->page + 16, 1200)),
               odd = device.import_weight(mapping->weight(2 * mapping->page + 8, 1200));
  const std::byte* begin = mapping->bytes.data();
  check(first.planes[0].buffer.contents == begin + 64, "a weight stays where the file is mapped");
  check(buffer_of(first) == buffer_of(second), "weights of a mapping share a buffer");
  check(buffer_of(odd) != buffer_of(first) &&
            odd.planes[0].buffer.contents != begin + 2 * mapping->page + 8,
        "a weight at an odd place is copied");
  check(bytes_of(device, "weights", true) == 1600 &&
            bytes_of(device, "weights (copied)", false) == 1200,
        "and both are counted");
  const uint32_t page_words = static_cast<uint32_t>(mapping->page / 4);
  mapping.reset();  // the device keeps the mapping
  const auto word_of = [&](const Weight& weight, uint32_t index) {
    const Program program =
        machine.compile({{&kReadWeight, {1, 0, index}, -1, Extent::rows, weight.planes[0]}});
    machine.run(program);
    machine.device->release_program(program);
    return machine.words()[0];
  };
  check(word_of(first, 5) == 16 + 5 && word_of(second, 7) == 2 * page_words + 4 + 7 &&
            word_of(odd, 9) == 2 * page_words + 2 + 9,
        "kernels read all of them");
  std::array<std::byte, 4> out{};
  device.read(first.planes[0], out);
  check(std::to_integer<uint32_t>(out[0]) == 16, "and so does the host");
  check(contains(message_of<ArgumentError>([&] { device.write(first.planes[0], out); }),
                 "cannot be written"),
        "which cannot write one");
  std::weak_ptr<const void> owner;
  {
    Mapping other(1);
    owner = other.owner;
    const Weight weight = device.import_weight(other.weight(0, 64));
    device.release_weight(weight);
  }
  check(owner.expired(), "a mapping ends with its last weight");
  for (const Weight& weight : {first, second, odd}) device.release_weight(weight);
  check(bytes_of(device, "weights", true) == 0, "released weights are not counted");

  WeightSource loose = Mapping(1).weight(0, 64);
  const std::vector<uint32_t> words(16, 5);
  loose.parts[0].bytes = std::as_bytes(std::span(words));
  loose.parts[0].mapping = {};
  const Weight copied = device.import_weight(loose);
  check(copied.planes[0].buffer.contents != loose.parts[0].bytes.data(),
        "what is not mapped is copied");
  device.release_weight(copied);
  loose.k = 3;
  check(contains(message_of<ArgumentError>([&] { device.import_weight(loose); }), "expected rows"),
        "bytes must be what the format says");
}

// A file longer than a buffer may be.
void test_views() {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const Environment length("AKUNU_METAL_EMULATED_BUFFER_LENGTH", std::to_string(8 * page + 1000));
  ToyMachine machine;
  const Mapping mapping(20);
  Device& device = *machine.device;
  const uint64_t piece = 3 * page + 64;
  std::vector<Weight> weights;
  for (uint64_t at = 0; at + piece <= mapping.size; at += piece)
    weights.push_back(device.import_weight(mapping.weight(at, piece)));
  check(weights.size() == 6 && bytes_of(device, "weights", true) == 6 * piece,
        "weights of a long file stay in it");
  std::vector<const void*> buffers;
  for (const Weight& weight : weights)
    if (std::find(buffers.begin(), buffers.end(), buffer_of(weight)) == buffers.end())
      buffers.push_back(buffer_of(weight));
  check(buffers.size() == 3, "two of them fit into each of three views");
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    machine.run(
        machine.compile({{&kReadWeight, {1, 0, 100}, -1, Extent::rows, weights[i].planes[0]}}));
    wrong += machine.words()[0] != i * piece / 4 + 100;
  }
  check(wrong == 0, "kernels read through every view");
  const Weight whole = device.import_weight(mapping.weight(16, 4 * page));
  device.release_weight(whole);
  const std::string message =
      message_of<OutOfMemoryError>([&] { device.import_weight(mapping.weight(0, 9 * page)); });
  check(contains(message, "a buffer of the GPU has"), "a weight longer than a buffer: " + message);
  for (const Weight& weight : weights) device.release_weight(weight);
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_memory();
  test_import();
  test_views();
  return summary();
}
