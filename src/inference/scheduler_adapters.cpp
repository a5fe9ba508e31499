// Adapters that come and go while texts are generated.
//
// 1. What it does. The caller's thread reads the adapter's files. Between two steps the scheduler's thread makes a set of
//    adapters with or without it (adapters.h), compiles the bodies that read this set (adapted_programs.h), and
//    swaps both. All other programs stay.
// 2. What bounds it. The copy of all adapters' matrices, and the compilation: texts wait for both.
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

void Scheduler::use_adapters(std::shared_ptr<const Adapters> adapters) {
  model_.programs.adapted = adapted_programs(model_.context, model_.programs.passes, adapters);
  model_.context.adapters.set(std::move(adapters));
  recompose_ = true;
}

uint32_t Scheduler::load_adapter(const AdapterPath& adapter, std::vector<uint32_t> digest) {
  check_process();
  const Context& context = model_.context;
  if (const uint32_t n_ranks = context.device->n_ranks(); n_ranks > 1)
    throw UnsupportedModelError("the model is computed by " + std::to_string(n_ranks) +
                                " GPUs; a model with adapters is computed by one");
  AdapterSource source = open_adapter(adapter, context.weights->config, context.weights->arch);
  uint32_t number = 0;
  between_steps([&] {
    if (disk() != nullptr && digest.empty())
      throw ArgumentError("prefixes are kept in a folder, so an adapter needs a digest");
    const std::shared_ptr<const Adapters> adapters = context.adapters.get()->with(
        context.device, std::move(source), context.weights->tensors->map());
    number = *adapters->number_of(adapter.name);
    adapter_digests_.resize(adapters->slots().size());
    use_adapters(adapters);
    adapter_digests_[number] = std::move(digest);
  });
  return number;
}

void Scheduler::unload_adapter(uint32_t number) {
  between_steps([&] {
    const Context& context = model_.context;
    const std::shared_ptr<const Adapters> now = context.adapters.get();
    const std::shared_ptr<const Adapters> later =
        now->without(context.device, number, context.weights->tensors->map());
    const AdapterSlot& slot = now->slots()[number];
    refuse_in_use(slot.load, slot.source->name);
    use_adapters(later);
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
