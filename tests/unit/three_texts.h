// Three texts side by side on a model, step by step and without a scheduler; and what every device
// does where one of their rows goes wrong.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "inference/step.h"
#include "unit/check.h"

namespace akunu::test {

class ThreeTexts {
 public:
  static constexpr uint32_t kTexts = 3;
  static constexpr uint32_t kPrompt = 5;

  ThreeTexts(const std::string& path, std::shared_ptr<Device> device)
      : model(Model::load(path, std::move(device), {.context = 1024, .kv_memory = std::nullopt})),
        step(model->context, model->programs) {
    check(model->context.cache.groups()[0].pages.n_pages() >= kTexts,
          "there is a page for each text");
    for (uint32_t text = 0; text < kTexts; ++text) {
      SequenceStore& store = model->context.sequences;
      check(store.take() == text, "slots are given out in order");
      store[text].tokens = {17, 4 + text, 99, 1200, 5};
      store[text].pages.assign(1, std::vector<uint32_t>{text});  // without any book-keeping
    }
  }

  // Reads the prompts, one after the other, and chooses a token behind each.
  void read_prompts() {
    for (uint32_t text = 0; text < kTexts; ++text) {
      step.clear();
      check(step.update_sequence(text, choosing[text]), "there is room for a text");
      step.update(model->context.sequences.page_table(0, text),
                  std::as_bytes(std::span(model->context.sequences[text].pages[0])));
      step.add_prompt(row_at(text, 0), kPrompt, Step::Logits::last, true);
      check(run(1).statuses.empty(), "a prompt is read");
    }
  }

  // A row for each text, which go on from `position` for so many steps.
  Outcome go_on(uint32_t position, uint32_t steps) {
    step.clear();
    add_rows(position);
    return run(steps);
  }

  // Texts that `is_masked` choose among the tokens of their masks, which are model->context.mask(text).
  void add_rows(uint32_t position) {
    for (uint32_t text = 0; text < kTexts; ++text) {
      Row row = row_at(text, position);
      if (is_masked[text]) row.flags |= kRowMasked;
      check(step.head_row(step.add_generated(row, 1, Step::Logits::last, true)) == text,
            "a row for each text has its logits in the texts' order");
    }
  }

  Outcome run(uint32_t steps) {
    return await(model->context, step.submit(*model->context.device, steps, false));
  }

  std::vector<uint32_t> read(const Binding& from, uint32_t n) const {
    std::vector<uint32_t> words(n);
    model->context.device->read(from, std::as_writable_bytes(std::span(words)));
    return words;
  }
  std::vector<uint32_t> log(uint32_t text, uint32_t position, uint32_t n) const {
    return read(model->context.sequences.log(text, position), n);
  }
  void write(const Binding& to, const std::vector<uint32_t>& words) {
    model->context.device->write(to, std::as_bytes(std::span(words)));
  }

  std::unique_ptr<Model> model;
  Step step;
  Choosing choosing[kTexts];
  bool is_masked[kTexts] = {};

 private:
  static Row row_at(uint32_t text, uint32_t position) {
    Row row{};
    row.sequence = text;
    row.position = position;
    row.kv_length = position + 1;
    row.draw = position + 1 - kPrompt;
    row.adapter = kNone;
    row.last_position = 60;
    return row;
  }
};

// A row that is wrong ends alone: the others' tokens are what they are without it.
inline void test_bad_rows(const std::string& path, const std::shared_ptr<Device>& device) {
  constexpr uint32_t kSteps = 6, kFirst = ThreeTexts::kPrompt, kUntouched = 123456;
  ThreeTexts good(path, device);
  good.read_prompts();
  check(good.go_on(kFirst, kSteps).statuses.empty(), "all is well to begin with");
  // All bits set: no token of any vocabulary, and not a number in any format of the cache.
  const auto spoil = [](ThreeTexts& texts, uint32_t code) {
    const Binding& keys = texts.model->context.cache.layers()[0].keys;
    const uint64_t page = keys.buffer.size / texts.model->context.cache.groups()[0].pages.n_pages();
    if (code == kStatusBadToken)
      texts.write(texts.model->context.sequences.log(1, kFirst), {kNone});
    else
      texts.write({keys.buffer, keys.offset + 1 * page}, std::vector<uint32_t>(page / 4, kNone));
  };
  for (const uint32_t code : {kStatusBadToken, kStatusNotANumber}) {
    ThreeTexts texts(path, device);
    texts.read_prompts();
    texts.write(texts.model->context.picked.binding(), {0, kUntouched, 0});
    spoil(texts, code);
    texts.write(texts.model->context.sequences.log(1, kFirst + 1), {kUntouched});
    const Outcome outcome = texts.go_on(kFirst, kSteps);
    const std::string what = code == kStatusBadToken ? " (bad token)" : " (not a number)";
    check(outcome.finished && outcome.steps_done == kSteps, "all steps run" + what);
    check(outcome.statuses.size() == ThreeTexts::kTexts && outcome.statuses[1].code == code &&
              outcome.statuses[1].position == kFirst && outcome.statuses[0].code == kStatusOk &&
              outcome.statuses[2].code == kStatusOk,
          "the row that is wrong says so, and where" + what);
    for (const uint32_t text : {0u, 2u})
      check(texts.log(text, kFirst, 1 + kSteps) == good.log(text, kFirst, 1 + kSteps),
            "the others go on as if it was not there" + what);
    check(texts.log(1, kFirst + 1, 1)[0] == kUntouched, "it logs nothing" + what);
    check(texts.read(texts.model->context.picked.binding(), 2)[1] == kUntouched,
          "and picks nothing" + what);
  }
}

// What the host says between logits and choice holds for that choice.
inline void test_masks_between(const std::string& path, const std::shared_ptr<Device>& device) {
  constexpr uint32_t kFirst = ThreeTexts::kPrompt;
  ThreeTexts texts(path, device), free(path, device);
  free.read_prompts();
  free.go_on(kFirst, 1);
  Model& model = *texts.model;
  const std::vector<uint32_t> all(model.context.sizes.mask_bytes / sizeof(uint32_t), kNone);
  texts.read_prompts();
  for (const uint32_t text : {1u, 2u}) texts.is_masked[text] = true;

  texts.step.clear();
  texts.add_rows(kFirst);
  const Ticket logits = texts.step.submit_logits(*model.context.device, false);
  constexpr uint32_t kWanted = 77;
  std::vector<uint32_t> one(all.size()), none(all.size());
  one[kWanted / 32] = 1u << kWanted % 32;
  texts.step.update(model.context.mask(1), std::as_bytes(std::span(one)));
  texts.step.update(model.context.mask(2), std::as_bytes(std::span(none)));
  const Ticket choice = texts.step.submit_choice(*model.context.device);
  check(await(model.context, logits).statuses.empty(), "logits need no mask");
  const Outcome outcome = await(model.context, choice);
  check(texts.log(0, kFirst + 1, 1) == free.log(0, kFirst + 1, 1), "a text without mask is free");
  check(texts.log(1, kFirst + 1, 1)[0] == kWanted, "the one token that a mask allows is chosen");
  check(outcome.statuses.size() == ThreeTexts::kTexts &&
            outcome.statuses[2].code == kStatusNoCandidate && outcome.statuses[1].code == kStatusOk,
        "a mask that allows none leaves none");
  texts.step.clear();
  texts.add_rows(kFirst + 1);
  texts.step.update(model.context.mask(1), std::as_bytes(std::span(all)));
  check(texts.run(2).statuses[2].code != kStatusOk, "masks stay until they are changed");
}

}  // namespace akunu::test
