#include "inference/engine.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "inference/draft_model.h"

namespace akunu {
namespace {

// Whether the draft model is the model itself, so that both can share the weights. Weights that were loaded with adapters, an
// image encoder or a prediction head are not shared: a draft has none of these.
bool is_its_own_draft(const std::string& path, const std::string& draft_path,
                      const LoadOptions& options) {
  std::error_code error;
  return options.adapters.empty() && options.mmproj.empty() && !options.prediction_head &&
         std::filesystem::equivalent(path, draft_path, error);
}

}  // namespace

std::shared_ptr<Engine> Engine::load(const std::string& path, const std::string& draft_path,
                                     const std::shared_ptr<Device>& device,
                                     const LoadOptions& options,
                                     const SchedulerOptions& of_scheduler) {
  const std::shared_ptr<Engine> engine = make();
  // A draft model first, so that the model takes what is left.
  if (!draft_path.empty() && is_its_own_draft(path, draft_path, options)) {
    const std::shared_ptr<const Weights> weights = load_weights(path, device, options);
    engine->draft_model = Model::over(weights, device, draft_options(weights->config, options));
    engine->model = Model::over(weights, device, options);
  } else {
    if (!draft_path.empty()) engine->draft_model = load_draft_model(draft_path, device, options);
    engine->model = Model::load(path, device, options);
  }
  engine->scheduler =
      std::make_unique<Scheduler>(*engine->model, of_scheduler, engine->draft_model.get());
  return engine;
}

std::shared_ptr<Engine> Engine::over(const std::shared_ptr<const Weights>& weights,
                                     std::vector<AdapterSlot> adapters, const LoadOptions& options,
                                     const SchedulerOptions& of_scheduler) {
  const std::shared_ptr<Engine> engine = make();
  engine->model = Model::over(weights, weights->device->share(), options, std::move(adapters));
  engine->scheduler = std::make_unique<Scheduler>(*engine->model, of_scheduler);
  return engine;
}

}  // namespace akunu
