// The pass of an encoder in pieces: it has the bits of the whole pass, other texts have tokens between two pieces, and the
// pass of a text that was cancelled ends.
#include <unistd.h>

#include <algorithm>

#include "unit/held_device.h"
#include "unit/image_model.h"

namespace akunu::test {
namespace {

constexpr uint32_t kPatchesPerSide = 16;

// Writes down which submissions were pieces of an encoder's pass, and is held in one of them.
class PieceDevice final : public HeldDevice {
 public:
  Ticket submit(const Replay& replay) override {
    const std::lock_guard lock(mutex_);
    const void* const program = replay.passes.empty() ? nullptr : replay.passes[0].program.handle;
    const bool is_piece = std::ranges::find(programs_, program) != programs_.end();
    is_piece_.push_back(is_piece);
    if (is_piece) most_rows_ = std::max(most_rows_, replay.passes[0].n_rows);
    if (is_piece && n_before_hold_ > 0 && --n_before_hold_ == 0) {
      hold(true);
      changed_.notify_all();
    }
    return HeldDevice::submit(replay);
  }

  void find_pieces_of(const EncoderPrograms& encoder) {
    const std::lock_guard lock(mutex_);
    for (const EncoderPart& part : encoder.parts) programs_.push_back(part.program.handle);
  }
  void hold_in_piece(uint32_t number) {
    const std::lock_guard lock(mutex_);
    n_before_hold_ = number;
  }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_before_hold_ == 0; });
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    is_piece_.clear();
  }
  size_t n_pieces() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count(is_piece_, true));
  }
  // Pieces after which another one was submitted at once.
  size_t n_without_step_after() const {
    const std::lock_guard lock(mutex_);
    size_t n = 0;
    for (size_t i = 1; i < is_piece_.size(); ++i) n += is_piece_[i - 1] && is_piece_[i];
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
  std::vector<bool> is_piece_;
  uint32_t most_rows_ = 0;  // of a piece's first pass
  uint32_t n_before_hold_ = 0;
};

struct PieceEngine : Engine {
  PieceEngine(const std::string& path, std::shared_ptr<PieceDevice> pieces)
      : Engine(path, pieces), device(std::move(pieces)) {
    device->find_pieces_of(model->programs.encoder);
  }
  std::shared_ptr<PieceDevice> device;
};

struct ImageText {
  std::vector<uint32_t> tokens = make_tokens(12, 60, 7);
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

void test_pieces_have_the_bits_of_the_whole(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  const auto [beside, task] = begin_both(engine, text);
  const std::vector<float> found = text.logits(engine, *task);
  check(engine.device->n_pieces() > engine.model->programs.encoder.parts.size(), "parts are cut");
  check(engine.device->n_without_step_after() == 0, "a step runs between any two pieces");
  Engine whole(path, 1);
  check(same_bits(found, text.logits(whole, *text.ask(whole))),
        "an image that is read in pieces has the bits of the whole");
  check(collect(*beside) == collect(*text_beside(whole)),
        "the other text has the tokens that it has alone");
}

void test_alone_it_is_read_in_large_pieces(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  text.logits(engine, *text.ask(engine));
  check(engine.device->most_rows() == kPatchesPerSide * kPatchesPerSide, "parts are not cut");
  check(engine.device->n_pieces() == engine.model->programs.encoder.parts.size(),
        "until their time is measured, each is a piece");
}

void test_the_pass_of_a_cancelled_text_ends(const std::string& path) {
  PieceEngine engine(path, std::make_shared<PieceDevice>());
  const ImageText text(engine.model->context.arch());
  engine.device->hold_in_piece(3);
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
  ImageModelWriter{folder, kPatchesPerSide, 2};
  test_pieces_have_the_bits_of_the_whole(folder.string());
  test_alone_it_is_read_in_large_pieces(folder.string());
  test_the_pass_of_a_cancelled_text_ends(folder.string());
  std::filesystem::remove_all(folder);
  return summary();
}
