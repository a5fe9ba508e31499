// Model: a context over some weights and its programs, ready to compute. What runs on it is the scheduler's business.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inference/context.h"
#include "inference/programs.h"
#include "inference/weights.h"

namespace akunu {

struct Model {
  // Throws what load_weights and Context throw.
  static std::unique_ptr<Model> load(const std::string& path, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  // Likewise, of what a reader has read.
  static std::unique_ptr<Model> load(const ModelSource& source, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  // A model over weights that are already loaded, with a copy of these adapters. `device`: see Context.
  static std::unique_ptr<Model> over(std::shared_ptr<const Weights> weights,
                                     std::shared_ptr<Device> device, const LoadOptions& options,
                                     std::vector<AdapterSlot> adapters = {});
  Model(std::shared_ptr<const Weights> weights, std::shared_ptr<Device> device,
        const LoadOptions& options, AdaptersOnDevice adapters)
      : context(std::move(weights), std::move(device), options, std::move(adapters)),
        programs(context) {}

  // What was decided that the caller might not expect, in one line each.
  std::vector<std::string> notes() const;

  Context context;
  Programs programs;
};

}  // namespace akunu
