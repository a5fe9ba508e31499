// A CPU device that a test can pause, and an engine on it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "unit/engine.h"

namespace akunu::test {

// While it is held, `wait` does not return, so the scheduler sees all requests of the meantime at once in
// its next step. Records the number of rows and the priority of each submission.
class HeldDevice : public DeviceVariant {
 public:
  explicit HeldDevice(uint32_t max_prompt_rows = 512, uint32_t max_mixed_rows = 64,
                      uint32_t max_crowded_rows = 0)
      : DeviceVariant(create_device("cpu", {.threads = 2}), true, 1) {
    change_chip().max_prompt_rows = max_prompt_rows;
    change_chip().max_mixed_rows = max_mixed_rows;
    change_chip().max_crowded_rows = max_crowded_rows;
  }

  Ticket submit(const Replay& replay) override {
    {
      const std::lock_guard lock(mutex_);
      submissions_.push_back({replay.rows.size(), replay.priority});
      most_rows_ = std::max(most_rows_, replay.rows.size());
      most_passes_ = std::max(most_passes_, replay.passes.size());
    }
    return DeviceVariant::submit(replay);
  }
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    {
      std::unique_lock lock(mutex_);
      is_stopped_ = held_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_; });
      is_stopped_ = false;
    }
    return DeviceVariant::wait(ticket, timeout);
  }

  bool is_used_by_others() const override {
    ++n_asked_;
    return used_by_others;
  }

  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  // Returns once a step is under way whose end the device does not report.
  void wait_until_stopped() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_stopped_; });
  }
  struct Submission {
    size_t n_rows = 0;  // that were sent: 0 where those of the one before go on
    int32_t priority = 0;
  };
  std::vector<Submission> submissions() const {
    const std::lock_guard lock(mutex_);
    return submissions_;
  }
  // How often somebody asked whether others use the device, and what the answer is.
  uint32_t n_asked() const { return n_asked_; }
  std::atomic<bool> used_by_others{false};

  size_t most_rows() const {
    const std::lock_guard lock(mutex_);
    return most_rows_;
  }
  size_t most_passes() const {
    const std::lock_guard lock(mutex_);
    return most_passes_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, is_stopped_ = false;
  size_t most_rows_ = 0, most_passes_ = 0;
  std::vector<Submission> submissions_;
  mutable std::atomic<uint32_t> n_asked_{0};
};

struct Held {
  explicit Held(const std::string& path, uint32_t max_prompt_rows = 512,
                uint32_t max_mixed_rows = 64, uint64_t kv_memory = 1 << 30,
                const SchedulerOptions& options = {}, uint32_t max_crowded_rows = 0)
      : device(std::make_shared<HeldDevice>(max_prompt_rows, max_mixed_rows, max_crowded_rows)),
        model(Model::load(path, device, {.context = 1024, .kv_memory = kv_memory})),
        scheduler(*model, options) {}
  ~Held() { device->hold(false); }

  std::shared_ptr<Generation> ask(std::vector<uint32_t> prompt, uint32_t max_tokens,
                                  int32_t priority = 0) {
    return scheduler.generate({.prompt = std::move(prompt),
                               .max_tokens = max_tokens,
                               .stop_ids = {},
                               .sampling = {},
                               .priority = priority});
  }
  // Holds the device in a step of something short: who asks from now on is in the same next step.
  std::shared_ptr<Generation> begin() {
    device->hold(true);
    std::shared_ptr<Generation> first = ask({1, 2, 3}, 1);
    device->wait_until_stopped();
    return first;
  }

  std::shared_ptr<HeldDevice> device;
  std::unique_ptr<Model> model;
  Scheduler scheduler;
};

}  // namespace akunu::test
