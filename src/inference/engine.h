// A loaded model and the scheduler that runs it, as the borders (Python, C) share them.
#pragma once

#include <memory>

#include "core/home_process.h"
#include "inference/model.h"
#include "inference/scheduler.h"

namespace akunu {

struct Engine {
  std::unique_ptr<Model> draft_model;  // null: none
  std::unique_ptr<Model> model;
  std::unique_ptr<Scheduler> scheduler;  // after the models: it dies first
  HomeProcess home;

  // In a forked child it is never destroyed: what it would wait for is not there (core/home_process.h).
  static std::shared_ptr<Engine> make() {
    return {new Engine, [](Engine* engine) {
              if (!engine->home.is_another()) delete engine;
            }};
  }
};

}  // namespace akunu
