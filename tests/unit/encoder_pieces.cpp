// The passes of an image in pieces, that of the encoder and that of its rows in the text: they have the bits of whole
// passes, other texts have tokens between two pieces, and the pass of a text that was cancelled ends.
#include <unistd.h>

#include <algorithm>

#include "unit/held_device.h"
#include "unit/image_model.h"

namespace akunu::test {
namespace {

constexpr uint32_t kPatchesPerSide = 16;

// Writes down which submissions were pieces of a pass, and is held in one of them.
class PieceDevice final : public HeldDevice {
 public:
  Ticket submit(const Replay& replay) override {
    const std::lock_guard lock(mutex_);
    const void* const program = replay.passes.empty() ? nullptr : replay.passes[0].program.handle;
    const auto part =
        static_cast<size_t>(std::ranges::find(programs_, program) - programs_.begin());
    const bool is_piece = part < programs_.size();
    parts_.push_back(part);
    if (is_piece) most_rows_ = std::max(most_rows_, replay.passes[0].n_rows);
    if (is_piece && part >= first_to_hold_ && n_before_hold_ > 0 && --n_before_hold_ == 0) {
      hold(true);
      changed_.notify_all();
    }
    return HeldDevice::submit(replay);
  }

  void find_pieces_of(const Programs& programs) {
    const std::lock_guard lock(mutex_);
    for (const PassPart& part : programs.encoder.parts) programs_.push_back(part.program.handle);
    for (const Program& program : programs.image_rows) programs_.push_back(program.handle);
  }
  // Counts pieces of the parts after the first `first_part`.
  void hold_in_piece(uint32_t number, size_t first_part = 0) {
    const std::lock_guard lock(mutex_);
    n_before_hold_ = number;
    first_to_hold_ = first_part;
  }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_before_hold_ == 0; });
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    parts_.clear();
  }
  size_t n_pieces(size_t first_part = 0) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(
        parts_, [&](size_t part) { return part >= first_part && part < programs_.size(); }));
  }
  // Pieces after which another one was submitted at once.
  size_t n_without_step_after() const {
    const std::lock_guard lock(mutex_);
    size_t n = 0;
    for (size_t i = 1; i < parts_.size(); ++i)
      n += parts_[i - 1] < programs_.size() && parts_[i] < programs_.size();
    return n;
  }
  uint32_t most_rows() const {
    const std::lock_guard lock(mutex_);
    return most_rows_;
  }

 private:
  mutable std::mutex mutex_;  // the scheduler's thread submits, a test asks
  std::condition_variable changed_;
  std::vector<const void*> programs_;
  std::vector<size_t>
      parts_;               // of each submission: whose program it is; programs_.size(): a step's
  uint32_t most_rows_ = 0;  // of a piece's first pass
  uint32_t n_before_hold_ = 0;
  size_t first_to_hold_ = 0;
};

struct PieceEngine : Engine {
  PieceEngine(const std::string& path, std::shared_ptr<PieceDevice> pieces)
      : Engine(path, pieces), device(std::move(pieces)) {
    device->find_pieces_of(model->programs);
  }
  std::shared_ptr<PieceDevice> device;
};

struct ImageText {
  std::vector<uint32_t> tokens = make_tokens(8 + kImageTokens, 60, 7);
  std::vector<float> patches;

  explicit ImageText(const ArchDescriptor& arch) {
    std::fill_n(tokens.begin() + 3, kImageTokens, kImageToken);
    const size_t n = size_t{arch.images->n_patches()} * arch.images->patch_numbers();
    for (const uint32_t number : make_tokens(n, 2000, 3))
      patches.push_back(static_cast<float>(number) * 1e-3f - 1);
  }
  std::shared_ptr<LogitsTask> ask(Engine& engine) const {
    return engine.scheduler.logits(
        {.tokens = tokens,
         .first = 3 + kImageTokens,
         .chunks = {},
         .images = {{.first = 3, .image = engine.scheduler.image(patches)}}});
  }
  std::vector<float> logits(Engine& engine, LogitsTask& task) const {
    check(task.wait(kWait), "logits arrive");
    const std::unique_ptr<float[]> found = task.take();
    const size_t n = tokens.size() - 3 - kImageTokens;
    return {found.get(), found.get() + n * engine.model->context.arch().vocab_size};
  }
};

constexpr uint32_t kTokensBeside = 900;  // more than an image has pieces

std::shared_ptr<Generation> text_beside(Engine& engine) {
  return engine.scheduler.generate(
      {.prompt = make_tokens(40, 60), .max_tokens = kTokensBeside, .stop_ids = {}, .sampling = {}});
}

// The other text is in its prompt's step when the image comes.
std::pair<std::shared_ptr<Generation>, std::shared_ptr<LogitsTask>> begin_both(
    PieceEngine& engine, const ImageText& text) {
  engine.device->hold(true);
  const auto beside = text_beside(engine);
  engine.device->wait_until_stopped();
  const auto task = text.ask(engine);
  engine.device->hold(false);
  return {beside, task};
}

size_t n_parts_of(const Engine& engine) {
  const Programs& programs = engine.model->programs;
  return programs.encoder.parts.size() + programs.image_rows.size();
}

void test_pieces_have_the_bits_of_the_whole(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  const auto [beside, task] = begin_both(engine, text);
  const std::vector<float> found = text.logits(engine, *task);
  const Programs& programs = engine.model->programs;
  const size_t n_of_encoder = programs.encoder.parts.size();
  check(engine.device->n_pieces(n_of_encoder) > programs.image_rows.size(),
        "parts over the image's rows are cut");
  check(engine.device->n_pieces() - engine.device->n_pieces(n_of_encoder) > n_of_encoder,
        "parts of the encoder are cut");
  check(engine.device->n_without_step_after() == 0, "a step runs between any two pieces");
  Engine whole(path, 1);
  check(same_bits(found, text.logits(whole, *text.ask(whole))),
        "an image that is read in pieces has the bits of the whole");
  check(collect(*beside) == collect(*text_beside(whole)),
        "the other text has the tokens that it has alone");
}

// Its last row has logits, in a step, and all of its rows have where the caller asks for them.
void test_a_prompt_that_ends_with_an_image(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  ImageText text(engine.model->context.arch());
  text.tokens.resize(3 + kImageTokens);
  const auto ask = [&](Engine& of) {
    return of.scheduler.generate(
        {.prompt = text.tokens,
         .max_tokens = 8,
         .stop_ids = {},
         .sampling = {},
         .images = {{.first = 3, .image = of.scheduler.image(text.patches)}}});
  };
  engine.device->hold(true);
  const auto beside = text_beside(engine);
  engine.device->wait_until_stopped();
  const auto shown = ask(engine);
  engine.device->hold(false);
  const std::vector<uint32_t> found = collect(*shown);
  Engine whole(path, 1);
  check(found.size() == 8 && found == collect(*ask(whole)), "it continues as it does alone");
  check(collect(*beside) == collect(*text_beside(whole)), "and so does the other text");
}

void test_alone_it_is_read_in_large_pieces(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  text.logits(engine, *text.ask(engine));
  check(engine.device->most_rows() == kPatchesPerSide * kPatchesPerSide, "parts are not cut");
  // The projection, whose outputs are head rows, is cut where there are more than fit.
  const uint32_t most = engine.model->context.device->chip().max_head_rows;
  const size_t n_of_projection = (kImageTokens + most - 1) / most;
  check(engine.device->n_pieces() == n_parts_of(engine) - 1 + n_of_projection,
        "until their time is measured, each is a piece");
}

void test_the_pass_of_a_cancelled_text_ends(const std::string& path, bool is_of_rows) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  engine.device->hold_in_piece(3, is_of_rows ? engine.model->programs.encoder.parts.size() : 0);
  const auto [beside, cancelled] = begin_both(engine, text);
  engine.device->wait_until_held();
  cancelled->cancel();
  engine.device->forget();
  engine.device->hold(false);
  check(collect(*beside).size() == kTokensBeside, "the other text comes to its end");
  check(engine.device->n_pieces() == 0, "no piece comes after the one under way");
  Engine whole(path, 1);
  check(same_bits(text.logits(engine, *text.ask(engine)), text.logits(whole, *text.ask(whole))),
        "the next text with this image has it read from the beginning");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("akunu-image-pieces-" + std::to_string(getpid()));
  ImageModelWriter{folder, kPatchesPerSide, 2, 3};
  test_pieces_have_the_bits_of_the_whole(folder.string());
  test_alone_it_is_read_in_large_pieces(folder.string());
  test_a_prompt_that_ends_with_an_image(folder.string());
  for (const bool is_of_rows : {false, true})
    test_the_pass_of_a_cancelled_text_ends(folder.string(), is_of_rows);
  std::filesystem::remove_all(folder);
  return summary();
}
