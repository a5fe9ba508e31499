#include "inference/model.h"

#include <utility>

namespace akunu {
namespace {

std::vector<AdapterSlot> open_adapters(const Weights& weights, const LoadOptions& options) {
  if (options.observed && !options.adapters.empty())
    throw ArgumentError("a model that is observed takes no adapters");
  return blaming(weights, [&] {
    std::vector<AdapterSource> sources;
    for (const AdapterPath& each : options.adapters)
      sources.push_back(open_adapter(each, weights.config, weights.arch));
    return slots_of(std::move(sources));
  });
}

}  // namespace

std::unique_ptr<Model> Model::load(const std::string& path, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  const std::shared_ptr<const Weights> weights = load_weights(path, device, options);
  return over(weights, device, options, open_adapters(*weights, options));
}

std::unique_ptr<Model> Model::load(const ModelSource& source, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  const std::shared_ptr<const Weights> weights = load_weights(source, device, options);
  return over(weights, device, options, open_adapters(*weights, options));
}

std::unique_ptr<Model> Model::over(std::shared_ptr<const Weights> weights,
                                   std::shared_ptr<Device> device, const LoadOptions& options,
                                   std::vector<AdapterSlot> adapters) {
  return blaming(*weights, [&] {
    AdapterLayout layout(std::move(adapters), weights->tensors->map());
    return std::make_unique<Model>(weights, device, options,
                                   AdaptersOnDevice(device, std::move(layout)));
  });
}

std::vector<std::string> Model::notes() const {
  std::vector<std::string> notes = context.weights->notes;
  notes.insert(notes.end(), context.notes().begin(), context.notes().end());
  return notes;
}

}  // namespace akunu
