// The engine driver: loads the packaged model and holds the engine to what it promises about
// allocation, row invariance and threads. Runs plain and under ASan, UBSan and TSan.
//   engine [--hidden-memory] MODEL.gguf
#include "unit/engine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "inference/step.h"
#include "unit/allocation_hook.h"
#include "unit/three_texts.h"

namespace akunu::test {
namespace {

std::vector<uint32_t> split(size_t n, std::initializer_list<uint32_t> pattern) {
  std::vector<uint32_t> chunks;
  for (size_t done = 0, i = 0; done < n; done += chunks.back(), ++i)
    chunks.push_back(
        static_cast<uint32_t>(std::min<size_t>(pattern.begin()[i % pattern.size()], n - done)));
  return chunks;
}

// A row's logits depend on its own history only: not on chunks, threads, or its neighbours.
void test_row_invariance(const std::string& path) {
  constexpr uint32_t kRows = kShort ? 100 : 300;
  std::vector<float> prompt, generated;
  std::vector<uint32_t> tokens;
  for (uint32_t threads = 1; threads <= 3; ++threads) {
    Engine engine(path, threads);
    tokens = make_tokens(kRows, engine.model->context.arch().vocab_size);
    if (threads == 1) {
      prompt = logits_of(engine, tokens, {}, false);
      generated = logits_of(engine, tokens, split(tokens.size(), {1}), true);
    }
    check(same_bits(prompt, logits_of(engine, tokens, {}, false)),
          "prompt rows do not depend on threads");
    check(same_bits(prompt, logits_of(engine, tokens, split(tokens.size(), {7, 1, 32, 3}), false)),
          "prompt rows do not depend on chunks");
    check(same_bits(generated, logits_of(engine, tokens, split(tokens.size(), {16, 2, 5}), true)),
          "single and few rows are one arithmetic");
    const uint32_t vocab_size = engine.model->context.arch().vocab_size;
    check(same_bits(last_rows(generated, kRows - 16, vocab_size),
                    logits_of(engine, tokens, split(tokens.size(), {16, 2, 5}), true, 16)),
          "logits from a chunk on are those of all chunks");
    check(same_bits(last_rows(prompt, kRows - 8, vocab_size),
                    logits_of(engine, tokens, split(tokens.size(), {7, 1, 32, 3}), false, 8)),
          "logits of a prompt from a chunk on are those of all chunks");
    try {
      engine.scheduler.logits(
          {.tokens = tokens, .first = 5, .chunks = split(tokens.size(), {16}), .generated = true});
      check(false, "logits from the middle of a chunk on are refused");
    } catch (const ArgumentError&) {
    }
  }
  for (const float value : prompt)
    if (!std::isfinite(value)) return check(false, "logits are finite");
}

// What `fuse` makes of the forward pass computes the same, bit for bit, in fewer commands.
void test_fusion(const std::string& path) {
  Engine fused(path, 2);
  Engine unfused(path, std::make_shared<DeviceVariant>(create_cpu(2), false, 1));
  const std::vector<uint32_t> tokens = make_tokens(40, fused.model->context.arch().vocab_size);
  check(same_bits(logits_of(fused, tokens, {}, false), logits_of(unfused, tokens, {}, false)),
        "fused and unfused prompt rows agree");
  check(same_bits(logits_of(fused, tokens, split(tokens.size(), {1, 3}), true),
                  logits_of(unfused, tokens, split(tokens.size(), {1, 3}), true)),
        "fused and unfused generated rows agree");
  const size_t n_layers = fused.model->context.arch().layers.size();
  check(fused.model->programs.labels(RowClass::single).size() == 8 * n_layers + 5,
        "a layer is 8 commands, and 5 stand around them");
  check(unfused.model->programs.labels(RowClass::single).size() >= 17 * n_layers,
        "unfused it is 17 or more");
}

// What the engine asks of memory, a device whose memory only it can see can do: texts are the same, also
// where they go on from pages of earlier ones, whole and copied.
void test_hidden_memory(const std::string& path) {
  Engine seen(path, create_device("cpu", {.threads = 2}));
  Engine hidden(path, std::make_shared<HiddenMemory>(create_device("cpu", {.threads = 2})));
  std::vector<uint32_t> prompt = make_tokens(300, seen.model->context.arch().vocab_size);
  for (uint32_t i = 0; i < 2; ++i) {
    std::array<std::vector<uint32_t>, 2> texts;
    for (Engine* engine : {&seen, &hidden}) {
      const auto generation = engine->scheduler.generate(
          {.prompt = prompt, .max_tokens = 20, .stop_ids = {}, .sampling = {.temperature = 1.0f}});
      texts[engine == &hidden] = collect(*generation);
      check((generation->n_cached() >= 280) == (i > 0), "the second one has a page and a half");
    }
    check(texts[0] == texts[1] && texts[0].size() == 20, "memory that the host sees or not");
    prompt.resize(280);
    prompt.insert(prompt.end(), texts[0].begin(), texts[0].end());
  }
}

// A chain of steps is single steps, also where rows stop within it, or within the chain before.
void test_chains(const std::string& path, uint32_t submissions_ahead) {
  Engine single(path, 2);
  const auto device = std::make_shared<DeviceVariant>(create_cpu(2), true, 8, submissions_ahead);
  Engine chained(path, device);
  const auto request = [&](uint32_t i) {
    return GenerateRequest{
        .prompt = make_tokens(20, single.model->context.arch().vocab_size, i + 1),
        .max_tokens = 20 + 7 * i,
        .stop_ids = {},
        .sampling = {.temperature = 2.0f, .repetition_penalty = 1.1f, .seed_low = i}};
  };
  std::vector<std::shared_ptr<Generation>> generations;
  for (Engine* engine : {&single, &chained})
    for (uint32_t i = 0; i < 3; ++i) generations.push_back(engine->scheduler.generate(request(i)));
  for (uint32_t i = 0; i < 3; ++i) {
    const std::vector<uint32_t> text = collect(*generations[i]);
    check(text == collect(*generations[3 + i]), "a chain of 8 steps is 8 steps");
    GenerateRequest stopping = request(i);
    stopping.max_tokens = 40;
    stopping.stop_ids = {text[10]};
    const auto once = single.scheduler.generate(stopping);
    const auto chain = chained.scheduler.generate(stopping);
    check(collect(*once) == collect(*chain) && chain->reason() == FinishReason::stop,
          "a row stops within a chain");
  }
  check(device->most_in_flight() == 1 + submissions_ahead, "as many submissions as the chip asks");
}

// Nor does a chain go on behind the last token that was asked for.
void test_the_last_chain_is_as_short_as_it_can_be(const std::string& path,
                                                  uint32_t submissions_ahead) {
  for (const uint32_t max_tokens : {2u, 12u}) {
    const auto device = std::make_shared<DeviceVariant>(create_cpu(2), true, 8, submissions_ahead);
    Engine engine(path, device, 1024, false);
    collect(*engine.scheduler.generate(
        {.prompt = {1, 2, 3}, .max_tokens = max_tokens, .stop_ids = {}, .sampling = {}}));
    check(device->n_steps() == max_tokens, std::to_string(device->n_steps()) + " steps");
  }
}

constexpr uint32_t kSteps = kShort ? 16 : 256;  // what grows seldom is seen after many

// So many steps of each row class, and tokens through the scheduler, allocate nothing.
void test_no_allocation(const std::string& path) {
  Engine engine(path, 2);
  Device& device = *engine.model->context.device;
  SequenceStore& store = engine.model->context.sequences;
  const std::vector<uint32_t> tokens = make_tokens(1024, engine.model->context.arch().vocab_size);
  SequenceCache cache(engine.model->context.cache, store, 20, true);
  const std::optional<uint32_t> sequence = cache.sequences.begin({.id = 1,
                                                                  .key = {},
                                                                  .tokens = tokens,
                                                                  .n_prompt = 1024,
                                                                  .n_positions = 1024,
                                                                  .most_reused = 0});
  SequenceRecord record{};
  device.write(store.record(*sequence), std::as_bytes(std::span(&record, 1)));
  device.write(store.log(*sequence, 0), std::as_bytes(std::span(tokens)));
  device.write(store.page_table(0, *sequence), std::as_bytes(std::span(store[*sequence].pages[0])));

  Step step(engine.model->context, engine.model->programs);
  bool all_well = true;
  const auto steps = [&](uint32_t n_rows, bool prompt) {
    for (uint32_t i = 0; i < kSteps; ++i) {
      Row row{};
      row.sequence = *sequence;
      row.position = i;
      row.adapter = kNone;
      row.last_position = kNone;
      step.clear();
      if (prompt)
        step.add_prompt(row, n_rows, Step::Logits::last, true);
      else
        step.add_generated(row, n_rows, Step::Logits::all, true);
      all_well &= device.wait(step.submit(device, 1, false), kWait).statuses.empty();
    }
  };
  check(count_allocations([&] { steps(1, false); }) == 0, "steps of single rows allocate nothing");
  check(count_allocations([&] { steps(4, false); }) == 0, "steps of few rows allocate nothing");
  check(count_allocations([&] { steps(20, true); }) == 0, "steps of many rows allocate nothing");
  check(all_well, "and report nothing");
  cache.sequences.discard(*sequence);

  const auto generation =
      engine.scheduler.generate({.prompt = make_tokens(10, 1000),
                                 .max_tokens = kSteps + 1,
                                 .stop_ids = {},
                                 .sampling = {.temperature = 0.7f, .top_k = 50, .top_p = 0.9f}});
  std::array<uint32_t, 16> some;
  size_t n = generation->next(some, kWait).value_or(0);
  check(count_allocations([&] {
          for (size_t more = n; more > 0; n += more)
            more = generation->next(some, kWait).value_or(0);
        }) == 0,
        "tokens through the scheduler allocate nothing");
  check(n == kSteps + 1, "all tokens arrive");
  check(count_allocations([] {
          void* volatile pointer = std::malloc(3);
          std::free(pointer);
        }) == 1,
        "the hook sees allocations");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  const std::string path = model_of(argc, argv);
  if (path.empty()) return 2;
  for (const uint32_t threads : {1u, 2u}) test_bad_rows(path, create_cpu(threads));
  test_masks_between(path, create_cpu(2));
  test_row_invariance(path);
  test_fusion(path);
  test_chains(path, 0);
  test_chains(path, 1);
  test_the_last_chain_is_as_short_as_it_can_be(path, 0);
  test_the_last_chain_is_as_short_as_it_can_be(path, 1);
  test_hidden_memory(path);
  test_no_allocation(path);
  return summary();
}
