// The masks driver: texts under constraints whose masks take as long as a test likes. What is there in time changes no
// text, and nobody else waits. Runs plain and under ASan, UBSan and TSan.
//   masks MODEL.gguf
#include <algorithm>
#include <array>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "unit/held_device.h"

namespace akunu::test {
namespace {

// Where masks wait while it is closed.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    if (++n_came_ % closes_every_ == 0) is_open_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  // Closes it before every third mask, and opens it a little later each time, until the end.
  void flap() {
    std::unique_lock lock(mutex_);
    closes_every_ = 3;
    while (!is_at_end_) {
      changed_.wait(lock, [&] { return !is_open_ || is_at_end_; });
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      is_open_ = true;
      changed_.notify_all();
    }
  }
  void end_flapping() {
    const std::lock_guard lock(mutex_);
    is_at_end_ = true;
    changed_.notify_all();
  }
  uint32_t n_came() {
    const std::lock_guard lock(mutex_);
    return n_came_;
  }
  // Until the n-th mask has come here, the first being 1.
  void wait_for(uint32_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_came_ >= n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  bool is_at_end_ = false;
  uint32_t n_came_ = 0;
  uint32_t closes_every_ = UINT32_MAX;
};

// A constraint for tests: at each position it allows one of five classes of token ids; at some positions it
// forces a token.
class Places final : public Constraint {
 public:
  // `closes_at`: closes the gate before the masks at this place. `forces`: the drafted tokens are told.
  Places(std::shared_ptr<Gate> gate, uint32_t vocab_size, bool forces = true,
         uint32_t closes_at = UINT32_MAX)
      : gate_(std::move(gate)), vocab_size_(vocab_size), forces_(forces), closes_at_(closes_at) {}

  static std::optional<uint32_t> only(uint32_t place) {
    return place % 8 >= 3 && place % 8 < 7 ? std::optional(place * 13 + 5) : std::nullopt;
  }
  static bool allows(uint32_t place, uint32_t token) {
    const std::optional<uint32_t> one = only(place);
    return one ? token == *one : (token + place) % 5 == 0;
  }

  bool is_free() const override { return false; }
  bool accept(uint32_t token) override { return allows(place_++, token); }
  bool is_over() const override { return false; }
  uint32_t forced(std::span<uint32_t> out) override {
    uint32_t n = 0;
    while (forces_ && n < out.size() && only(place_ + n)) {
      out[n] = *only(place_ + n);
      ++n;
    }
    return n;
  }
  bool fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) override {
    if (place_ == closes_at_) gate_->set(false), closes_at_ = UINT32_MAX;
    gate_->pass();
    const size_t n_words = masks.size() / (drafted.size() + 1);
    std::ranges::fill(masks, 0u);
    for (uint32_t i = 0; i <= drafted.size(); ++i)
      for (uint32_t token = 0; token < vocab_size_; ++token)
        if (allows(place_ + i, token)) masks[i * n_words + token / 32] |= 1u << token % 32;
    return true;
  }
  uint32_t n_allowed(std::span<const uint32_t> tokens) override {
    uint32_t n = 0;
    while (n < tokens.size() && allows(place_ + n, tokens[n])) ++n;
    return n;
  }
  std::string error() const override { return {}; }
  void cancel() override { gate_->set(true); }
  bool accept_bytes(std::string_view) override { return false; }

 private:
  const std::shared_ptr<Gate> gate_;
  const uint32_t vocab_size_;
  const bool forces_;
  uint32_t closes_at_;
  uint32_t place_ = 0;
};

GenerateRequest request_of(std::vector<uint32_t> prompt, uint32_t max_tokens) {
  return {.prompt = std::move(prompt),
          .max_tokens = max_tokens,
          .stop_ids = {},
          .sampling = {.temperature = 1.0f, .seed_low = 3}};
}

struct Texts {
  explicit Texts(const std::string& path, bool prefix_cache = true)
      : engine(std::make_unique<Engine>(path, 2, 1024, prefix_cache)),
        vocab_size(engine->model->context.arch().vocab_size) {}

  std::shared_ptr<Generation> slow(const GenerateRequest& request, bool forces = true,
                                   uint32_t closes_at = UINT32_MAX) {
    return engine->scheduler.generate(
        request, std::make_unique<Places>(gate, vocab_size, forces, closes_at));
  }

  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::unique_ptr<Engine> engine;
  uint32_t vocab_size;
};

void test_drafted_tokens_change_no_text(const std::string& path) {
  Texts texts(path);
  const GenerateRequest request = request_of(make_tokens(30, 1000), 40);
  const std::vector<uint32_t> single = collect(*texts.slow(request, false));
  bool follows = single.size() == 40;
  for (uint32_t i = 0; i < single.size(); ++i) follows &= Places::allows(i, single[i]);
  check(follows, "every token is one that the mask of its place allows");
  check(collect(*texts.slow(request)) == single, "tokens that are certain change no text");
}

// A mask that does not come before its text's first token, and one that does not come in its middle: a
// neighbour comes to its end meanwhile, also one with the same prompt.
void test_a_neighbour_does_not_wait(const std::string& path, bool prefix_cache) {
  for (const uint32_t n_prompt : {1u, 30u, 300u})
    for (const uint32_t closes_at : {0u, 2u, 3u, 10u}) {
      if (kShort && (n_prompt == 300 || closes_at == 2)) continue;
      const std::string what =
          " (prompt of " + std::to_string(n_prompt) + ", place " + std::to_string(closes_at) + ")";
      Texts texts(path, prefix_cache);
      const GenerateRequest request = request_of(make_tokens(n_prompt, 1000), 20);
      const std::vector<uint32_t> alone = collect(*texts.slow(request));
      const std::vector<uint32_t> free = collect(*texts.engine->scheduler.generate(request));
      const auto slow = texts.slow(request, true, closes_at);
      std::vector<uint32_t> before(closes_at);
      for (size_t n = 0; n < before.size();) n += *slow->next(std::span(before).subspan(n), kWait);
      check(collect(*texts.engine->scheduler.generate(request)) == free,
            "a neighbour comes to its end beside a mask that does not come" + what);
      check(slow->completion_tokens() == closes_at, "whose text has stopped there" + what);
      texts.gate->set(true);
      before.resize(closes_at);
      const std::vector<uint32_t> rest = collect(*slow);
      before.insert(before.end(), rest.begin(), rest.end());
      check(before == alone, "and goes on with the tokens that it has alone" + what);
    }
}

// What is asked while the device computes is answered then: the mask waits for the device to begin.
class Begins final : public DeviceVariant {
 public:
  explicit Begins(std::shared_ptr<Device> device) : DeviceVariant(std::move(device), true, 1) {}
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    if (gate) gate->set(true);
    return DeviceVariant::wait(ticket, timeout);
  }
  std::shared_ptr<Gate> gate;
};

void test_masks_are_computed_while_the_device_computes(const std::string& path) {
  const auto device = std::make_shared<Begins>(create_cpu(2));
  Engine engine(path, device);
  const auto gate = std::make_shared<Gate>();
  const uint32_t vocab_size = engine.model->context.arch().vocab_size;
  const GenerateRequest request = request_of(make_tokens(30, 1000), 12);
  const auto text = [&](uint32_t closes_at) {
    return collect(*engine.scheduler.generate(
        request, std::make_unique<Places>(gate, vocab_size, true, closes_at)));
  };
  const std::vector<uint32_t> alone = text(UINT32_MAX);
  device->gate = gate;
  for (uint32_t place = 0; place < 12; ++place)
    check(text(place) == alone, "a mask that waits for the device to begin comes");
}

void test_cancelling_waits_for_no_mask(const std::string& path) {
  Texts texts(path);
  const GenerateRequest request = request_of(make_tokens(30, 1000), 20);
  const std::vector<uint32_t> alone = collect(*texts.slow(request));
  for (const bool is_cut : {false, true}) {
    const uint32_t n_before = texts.gate->n_came();
    const auto slow = texts.slow(request, false, 2);
    std::array<uint32_t, 2> some;
    for (size_t n = 0; n < 2;) n += *slow->next(std::span(some).subspan(n), kWait);
    texts.gate->wait_for(n_before + 3);       // at the third of its masks
    const auto behind = texts.slow(request);  // its masks wait for that one
    if (is_cut)
      texts.engine->scheduler.cut(slow, 1);
    else
      slow->cancel();
    collect(*slow);
    check(slow->reason() == (is_cut ? FinishReason::stop : FinishReason::cancelled),
          "a text whose mask does not come can be ended");
    check(collect(*behind) == alone, "which ends the mask, and those behind it come");
  }
}

void test_closing_fails_what_waits(const std::string& path) {
  Texts texts(path);
  texts.gate->set(false);
  const auto slow = texts.slow(request_of(make_tokens(30, 1000), 20));
  const auto behind = texts.slow(request_of(make_tokens(30, 1000), 20));
  texts.gate->wait_for(1);
  std::thread closing([&] { texts.engine.reset(); });
  for (const auto& each : {slow, behind})
    check(contains(message_of<Error>([&] { collect(*each); }), "the model was closed"),
          "closing ends a text whose mask does not come");
  closing.join();  // and the mask
}

// Every mask takes 30 ms of the processor, of which 10 count for nothing.
class Dear final : public Constraint {
 public:
  bool is_free() const override { return false; }
  bool accept(uint32_t) override { return true; }
  bool is_over() const override { return false; }
  uint32_t forced(std::span<uint32_t>) override { return 0; }
  bool fill(std::span<const uint32_t>, std::span<uint32_t> masks) override {
    const double end = seconds_of_thread() + 0.03;
    while (seconds_of_thread() < end) continue;
    std::ranges::fill(masks, UINT32_MAX);
    return true;
  }
  uint32_t n_allowed(std::span<const uint32_t> tokens) override {
    return static_cast<uint32_t>(tokens.size());
  }
  std::string error() const override { return {}; }
  bool accept_bytes(std::string_view) override { return false; }

 private:
  static double seconds_of_thread() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
};

void test_masks_have_their_time(const std::string& path) {
  const auto model = Model::load(path, create_cpu(1), {.context = 1024, .kv_memory = std::nullopt});
  Scheduler scheduler(*model, {.mask_time = std::chrono::milliseconds(100)});
  const auto dear =
      scheduler.generate(request_of(make_tokens(30, 1000), 900), std::make_unique<Dear>());
  const std::string why = message_of<GrammarLimitError>([&] { collect(*dear); });
  check(contains(why, "more work than a text may have") && contains(why, "repetitions smaller"),
        "a text whose masks take too long ends with a reason, and what to do");
  check(dear->completion_tokens() > 0, "after some tokens");
  check(collect(*scheduler.generate(request_of(make_tokens(30, 1000), 5))).size() == 5,
        "and others go on");
}

// Many texts whose masks come now and then, with others that come and go.
void test_many_at_once(const std::string& path) {
  Texts texts(path);
  constexpr uint32_t kTexts = kShort ? 3 : 12;
  const auto request = [](uint32_t i) { return request_of(make_tokens(3 + 40 * i, 1000, i), 30); };
  std::vector<std::vector<uint32_t>> alone;
  for (uint32_t i = 0; i < kTexts; ++i) alone.push_back(collect(*texts.slow(request(i))));
  std::thread flapping([&] { texts.gate->flap(); });
  std::vector<std::shared_ptr<Generation>> together, cancelled;
  for (uint32_t i = 0; i < kTexts; ++i) {
    together.push_back(texts.slow(request(i), i % 2 == 0));
    cancelled.push_back(texts.slow(request(i)));
  }
  for (const auto& each : cancelled) each->cancel();
  for (uint32_t i = 0; i < kTexts; ++i)
    check(collect(*together[i]) == alone[i], "each of many texts is the one alone");
  for (const auto& each : cancelled) collect(*each);
  texts.gate->end_flapping();
  flapping.join();
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  const std::string path = model_of(argc, argv);
  if (path.empty()) return 2;
  test_drafted_tokens_change_no_text(path);
  for (const bool prefix_cache : {true, false}) test_a_neighbour_does_not_wait(path, prefix_cache);
  test_masks_are_computed_while_the_device_computes(path);
  test_cancelling_waits_for_no_mask(path);
  test_closing_fails_what_waits(path);
  test_masks_have_their_time(path);
  test_many_at_once(path);
  return summary();
}
