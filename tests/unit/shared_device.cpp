// The driver of a device that models share: whose turn it is, that texts of two models at once are
// those alone, that one may come and go while another generates, and whose memory is whose. Runs
// plain and under ASan, UBSan and TSan.
//   shared_device MODEL.gguf
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "core/device_share.h"
#include "core/turns.h"
#include "unit/engine.h"

namespace akunu::test {
namespace {

// Three that wait, in this order, while a fourth has the turn.
void test_turns_go_by_priority_and_then_by_arrival() {
  Turns turns;
  const std::array<int, 4> owners{};
  check(!turns.is_used(&owners[1]), "nobody has the turn");
  turns.take(&owners[0], 0);
  check(!turns.is_wanted(&owners[0]) && !turns.is_used(&owners[0]), "nobody waits");
  check(turns.is_used(&owners[1]), "to the others it is taken");
  std::vector<int> order;
  std::vector<std::thread> threads;
  const std::array<int32_t, 4> priority{0, 0, 5, 0};
  for (int i = 1; i < 4; ++i) {
    threads.emplace_back([&, i] {
      turns.take(&owners[static_cast<size_t>(i)], priority[static_cast<size_t>(i)]);
      order.push_back(i);  // one at a time has it
      turns.give_back(&owners[static_cast<size_t>(i)]);
    });
    while (turns.n_waiting() < static_cast<uint32_t>(i)) std::this_thread::yield();
  }
  check(turns.is_wanted(&owners[0]) && turns.is_used(&owners[0]), "they do now");
  turns.take(&owners[0], 0);  // does not wait for those that wait for it
  turns.give_back(&owners[0]);
  check(order.empty(), "whose turn it is keeps it until it was given back as often as taken");
  turns.give_back(&owners[0]);
  for (std::thread& thread : threads) thread.join();
  check(order == std::vector<int>{2, 1, 3}, "the more important one, then as they came");
}

struct Shared {
  explicit Shared(uint32_t threads = 2)
      : device(std::make_shared<SharedDevice>(create_device("cpu", {.threads = threads}))) {}
  std::unique_ptr<Engine> load(const std::string& path) const {
    return std::make_unique<Engine>(path, std::make_shared<DeviceShare>(device));
  }
  std::shared_ptr<SharedDevice> device;
};

GenerateRequest request(uint32_t i, uint32_t max_tokens = 40) {
  return {.prompt = make_tokens(20 + 90 * (i % 3), 1000, i + 1),
          .max_tokens = max_tokens,
          .stop_ids = {},
          .sampling = {.temperature = 2.0f, .seed_low = i}};
}

uint64_t bytes_of(const Device& device, bool mapped) {
  uint64_t bytes = 0;
  for (const MemoryUse& use : device.memory_use())
    if (use.mapped == mapped) bytes += use.bytes;
  return bytes;
}

void test_two_models_at_once_give_the_texts_that_they_give_alone(const std::string& path) {
  std::vector<std::vector<uint32_t>> alone;
  {
    Engine engine(path, 2);
    for (uint32_t i = 0; i < 6; ++i)
      alone.push_back(collect(*engine.scheduler.generate(request(i))));
  }
  const Shared shared;
  const auto one = shared.load(path), two = shared.load(path);
  std::vector<std::shared_ptr<Generation>> texts;
  for (uint32_t i = 0; i < 6; ++i)
    texts.push_back((i % 2 ? two : one)->scheduler.generate(request(i)));
  for (uint32_t i = 0; i < 6; ++i) check(collect(*texts[i]) == alone[i], "a text is the one alone");
}

// One generates all the time; others come, generate and go.
void test_models_come_and_go_beside_one_that_generates(const std::string& path) {
  const Shared shared;
  const auto stays = shared.load(path);
  const std::vector<uint32_t> expected = collect(*stays->scheduler.generate(request(1)));
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> n_wrong{0}, n_texts{0};
  std::thread caller([&] {
    while (!stop) {
      n_wrong += collect(*stays->scheduler.generate(request(1))) != expected;
      ++n_texts;
    }
  });
  constexpr uint32_t kGuests = kShort ? 3 : 8;
  for (uint32_t i = 0; i < kGuests; ++i) {
    const auto guest = shared.load(path);
    const auto text = guest->scheduler.generate(request(1, i % 2 ? 40 : 1000));
    if (i % 2) check(collect(*text) == expected, "a guest's text is the one alone");
  }  // else it is closed in the middle
  while (n_texts == 0) std::this_thread::yield();
  stop = true;
  caller.join();
  check(n_wrong == 0, "the one that stays goes on as if it were alone");
}

void test_each_counts_its_own_memory(const std::string& path) {
  const Shared shared;
  const auto one = shared.load(path);
  const uint64_t own = bytes_of(*one->model->context.device, false),
                 weights = bytes_of(*one->model->context.device, true);
  const uint64_t left = one->model->context.device->memory_left().memory.value_or(0);
  auto two = shared.load(path);
  check(bytes_of(*one->model->context.device, false) == own &&
            bytes_of(*two->model->context.device, false) == own,
        "each has as much as one alone");
  check(bytes_of(*two->model->context.device, true) == weights, "and as many weights");
  check(bytes_of(*shared.device->device, true) == 2 * weights &&
            bytes_of(*shared.device->device, false) < 2 * own,
        "the device has both, and what is for all of them once");
  check(left > two->model->context.device->memory_left().memory.value_or(left),
        "what the second has taken, though not touched yet, is not there for a third");
  two.reset();
  check(bytes_of(*shared.device->device, true) == weights, "what is closed is given back");
  check(collect(*one->scheduler.generate(request(0))).size() == 40, "and the other one is well");
}

void test_models_that_ask_for_the_same_device_share_it() {
  const auto one = share_device("cpu", {.threads = 2}), two = share_device("cpu", {.threads = 2}),
             other = share_device("cpu", {.threads = 1}),
             level = share_device("cpu", {.threads = 2, .isa = "generic"});
  const Buffer buffer = one->allocate(1000, "a thing of one");
  check(bytes_of(*one, false) == 1000 && bytes_of(*two, false) == 0, "memory is its owner's");
  one->release(buffer);
  check(&one->chip() == &two->chip(), "the same name and threads are the same device");
  check(&one->chip() != &other->chip() && one->chip().workers != other->chip().workers,
        "another number of threads is another one");
  check((&one->chip() != &level->chip()) == (one->chip().level != "generic"),
        "and so is another level of kernels");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: shared_device MODEL.gguf\n");
    return 2;
  }
  const std::string path = argv[1];
  test_turns_go_by_priority_and_then_by_arrival();
  test_two_models_at_once_give_the_texts_that_they_give_alone(path);
  test_models_come_and_go_beside_one_that_generates(path);
  test_each_counts_its_own_memory(path);
  test_models_that_ask_for_the_same_device_share_it();
  return summary();
}
