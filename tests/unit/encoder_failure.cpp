// If an encoder, or the pass over an image's rows, fails, only the text with the image ends. Other texts, at the same time and later, are the same as
// when they run alone.
#include <unistd.h>

#include <atomic>

#include "core/error.h"
#include "unit/engine.h"
#include "unit/image_model.h"

namespace akunu::test {
namespace {

// The CPU, whose passes of one program fail when they are told to.
class FailingProgram final : public DeviceVariant {
 public:
  explicit FailingProgram(std::shared_ptr<Device> device)
      : DeviceVariant(device, true, device->chip().chain_steps) {}

  Ticket submit(const Replay& replay) override {
    const void* const which = fails;  // the scheduler's thread submits, the test says what fails
    if (which != nullptr && !replay.passes.empty() && replay.passes[0].program.handle == which)
      throw DeviceError("no memory is left for the image");
    return DeviceVariant::submit(replay);
  }

  std::atomic<const void*> fails = nullptr;
};

GenerateRequest request(std::vector<uint32_t> prompt, uint32_t max_tokens,
                        std::vector<PlacedImage> images = {}) {
  return {.prompt = std::move(prompt),
          .max_tokens = max_tokens,
          .stop_ids = {},
          .sampling = {},
          .images = std::move(images)};
}

void test_a_failed_image_ends_its_own_text(const std::string& path) {
  const auto device = std::make_shared<FailingProgram>(create_cpu(2));
  Engine engine(path, device);
  const ImageEncoder& encoder = *engine.model->context.arch().images;
  const std::vector<uint32_t> prompt = make_tokens(40, 60);
  const uint32_t n_tokens = kShort ? 200 : 900;
  const std::vector<uint32_t> alone =
      collect(*engine.scheduler.generate(request(prompt, n_tokens)));

  std::vector<uint32_t> with_image = make_tokens(8 + kImageTokens, 60, 7);
  std::fill_n(with_image.begin() + 3, kImageTokens, kImageToken);
  const std::vector<float> patches(size_t{encoder.n_patches()} * encoder.patch_numbers(), 0.5f);
  const auto shown = [&](float number) {
    std::vector<float> numbers = patches;
    numbers[0] = number;
    return request(with_image, 8, {{.first = 3, .image = engine.scheduler.image(numbers)}});
  };
  std::vector<Program> programs;
  for (const PassPart& part : engine.model->programs.encoder.parts)
    programs.push_back(part.program);
  // The encoder's work is kept for these.
  for (const Program& program : engine.model->programs.image_rows) programs.push_back(program);
  for (const Program& program : programs) {
    const auto beside = engine.scheduler.generate(request(prompt, n_tokens));
    std::array<uint32_t, 1> first{};
    check(beside->next(first, kWait) == 1, "the text beside has begun");
    device->fails = program.handle;
    const auto failed = engine.scheduler.generate(shown(0.25f));
    check(contains(message_of<DeviceError>([&] { collect(*failed); }), "no memory is left"),
          "the text with the image ends with what failed");
    device->fails = nullptr;
    std::vector<uint32_t> text = collect(*beside);
    text.insert(text.begin(), first[0]);
    check(text == alone, "the text beside comes to its end, with the bits that it has alone");
  }
  // The same image once more: what failed left nothing behind.
  const std::vector<uint32_t> again = collect(*engine.scheduler.generate(shown(0.25f)));
  Engine fresh(path, create_cpu(2));
  std::vector<float> numbers = patches;
  numbers[0] = 0.25f;
  const std::vector<uint32_t> unfailed = collect(*fresh.scheduler.generate(
      request(with_image, 8, {{.first = 3, .image = fresh.scheduler.image(numbers)}})));
  check(again.size() == 8 && again == unfailed, "the image is read when the device is well again");
  check(collect(*engine.scheduler.generate(request(prompt, n_tokens))) == alone,
        "and texts are what they were");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("akunu-image-model-" + std::to_string(getpid()));
  ImageModelWriter{folder, 8, 1, 2};
  test_a_failed_image_ends_its_own_text(folder.string());
  std::filesystem::remove_all(folder);
  return summary();
}
