// A loaded model and the scheduler that runs it, as the borders (Python, C) share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/home_process.h"
#include "core/process_limits.h"
#include "inference/model.h"
#include "inference/scheduler.h"

namespace akunu {

struct Engine {
  std::unique_ptr<Model> draft_model;  // null: none
  std::unique_ptr<Model> model;
  std::unique_ptr<Scheduler> scheduler;  // after the models: it dies first
  HomeProcess home;

  // `draft_path`: of the model that proposes tokens; empty: none. Throws what load_draft_model, Model::load and the
  // scheduler throw.
  static std::shared_ptr<Engine> load(const std::string& path, const std::string& draft_path,
                                      const std::shared_ptr<Device>& device,
                                      const LoadOptions& options,
                                      const SchedulerOptions& of_scheduler);
  // Another context over a model's weights, on a share of its device, with a copy of these adapters. The options of a
  // context count, no others.
  static std::shared_ptr<Engine> over(const std::shared_ptr<const Weights>& weights,
                                      std::vector<AdapterSlot> adapters, const LoadOptions& options,
                                      const SchedulerOptions& of_scheduler);

 private:
  // In a forked child it is never destroyed: what it would wait for is not there (core/home_process.h).
  static std::shared_ptr<Engine> make() {
    return {new Engine, [](Engine* engine) {
              if (engine->home.is_another()) return;
              delete engine;
              give_back_freed_memory();
            }};
  }
};

}  // namespace akunu
