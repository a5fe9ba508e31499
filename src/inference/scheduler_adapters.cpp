// Adapters that come and go while texts are generated.
//
// 1. What it does. The caller's thread reads the adapter's files and lays out a set of adapters with or without it
//    (adapters.h). Between two steps the scheduler's thread copies the set to the device, compiles the bodies that read
//    it (adapted_programs.h), and swaps both. All other programs stay.
// 2. What bounds it. Texts wait for that copy, of all adapters' matrices, and for the compilation.
// 3. Why nothing is mixed. A text names the load of its adapter (TextAdapter), which no later adapter has. An adapter in
//    use is not unloaded. A text that was checked before an unload and comes after it is refused (`admit`).
#include <algorithm>
#include <future>
#include <utility>

#include "core/error.h"
#include "files/printable.h"
#include "inference/scheduler.h"

namespace akunu {

// Waits until the scheduler's thread has done it, and throws what it threw.
void Scheduler::between_steps(std::function<void()> work) {
  check_process();
  auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  std::future<void> done = task->get_future();
  queue_.hand_over([task = std::move(task)] { (*task)(); });
  try {
    done.get();
  } catch (const std::future_error&) {  // the queue dropped it
    throw Error("the model was closed");
  }
}

void Scheduler::use_adapters(AdaptersOnDevice set) {
  model_.programs.adapted = adapted_programs(model_.context, model_.programs.passes, *set.adapters);
  model_.context.adapters.set(std::move(set));
  recompose_ = true;
}

uint32_t Scheduler::load_adapter(const AdapterPath& adapter, std::vector<uint32_t> digest) {
  check_process();
  const Context& context = model_.context;
  if (const uint32_t n_ranks = context.device->n_ranks(); n_ranks > 1)
    throw UnsupportedModelError("the model is computed by " + std::to_string(n_ranks) +
                                " GPUs; a model with adapters is computed by one");
  AdapterSource source = open_adapter(adapter, context.weights->config, context.weights->arch);
  const std::lock_guard lock(changing_adapters_);
  AdapterLayout layout =
      context.adapters.get()->with(std::move(source), context.weights->tensors->map());
  uint32_t number = 0;
  between_steps([&] {
    if (disk() != nullptr && digest.empty())
      throw ArgumentError("prefixes are kept in a folder, so an adapter needs a digest");
    AdaptersOnDevice set(context.device, std::move(layout));
    number = *set.adapters->number_of(adapter.name);
    adapter_digests_.resize(set.adapters->slots().size());
    use_adapters(std::move(set));
    adapter_digests_[number] = std::move(digest);
  });
  return number;
}

void Scheduler::unload_adapter(uint32_t number) {
  check_process();
  const Context& context = model_.context;
  const std::lock_guard lock(changing_adapters_);
  const std::shared_ptr<const Adapters> now = context.adapters.get();
  AdapterLayout layout = now->without(number, context.weights->tensors->map());
  const AdapterSlot& slot = now->slots()[number];
  between_steps([&] {
    refuse_in_use(slot.load, slot.source->name);
    use_adapters(AdaptersOnDevice(context.device, std::move(layout)));
    cache_.prefixes.forget(slot.load);
  });
}

void Scheduler::refuse_in_use(uint64_t load, const std::string& name) const {
  const auto uses = [&](const std::shared_ptr<Task>& task) {
    return std::ranges::any_of(task->rows().adapters,
                               [&](const TextAdapter& each) { return each.load == load; });
  };
  if (std::ranges::any_of(active_, uses, &Active::task) || std::ranges::any_of(queue_.line(), uses))
    throw ArgumentError("the adapter " + printable(name) +
                        " is in use by a text that is not over; unload it later");
}

}  // namespace akunu
