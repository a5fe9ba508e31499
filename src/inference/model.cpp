#include "inference/model.h"

#include <utility>

namespace akunu {

std::unique_ptr<Model> Model::load(const std::string& path, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  return over(load_weights(path, device, options), device, options);
}

std::unique_ptr<Model> Model::load(const ModelSource& source, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  return over(load_weights(source, device, options), device, options);
}

std::unique_ptr<Model> Model::over(std::shared_ptr<const Weights> weights,
                                   std::shared_ptr<Device> device, const LoadOptions& options) {
  return blaming(*weights, [&] { return std::make_unique<Model>(weights, device, options); });
}

std::vector<std::string> Model::notes() const {
  std::vector<std::string> notes = context.weights->notes;
  notes.insert(notes.end(), context.notes().begin(), context.notes().end());
  return notes;
}

}  // namespace akunu
