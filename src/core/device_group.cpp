// Several devices as one. device_group.h says what it promises.
//
// 1. What it does. A buffer, a weight or a program of the group is one of each rank. What names them is
//    translated rank by rank: bindings of a table, updates and passes of a submission. Of all_reduce it
//    binds the exchanges of all ranks, and says which one the rank is.
// 2. What bounds it. The host tells the ranks one after the other, which takes each of them some microseconds. Steps that
//    are many launches it tells them with a thread for each.
// 3. What it must not do. Run a submission on some ranks only: the others would wait for its sums. Where that
//    happens the group is of no use any more, and says so; kernels that wait give up after some seconds.
#include "core/device_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "core/device_checks.h"
#include "core/error.h"
#include "core/kernel_params.h"

namespace akunu {
namespace {

// How long one rank is waited for before the others are looked at: one that failed is why another waits.
constexpr std::chrono::milliseconds kLook(100);
constexpr std::chrono::seconds kLongest(60);

// Bytes of rows, or of parts of them, copied to lie one after the other.
WeightPart gathered(std::span<const std::byte> bytes, uint64_t n_runs, uint64_t stride,
                    uint64_t first, uint64_t length) {
  auto copy = std::make_shared<std::vector<std::byte>>(n_runs * length);
  for (uint64_t run = 0; run < n_runs; ++run)
    std::memcpy(copy->data() + run * length, bytes.data() + run * stride + first, length);
  const std::span<const std::byte> all = *copy;
  return {.bytes = all, .owner = std::move(copy), .mapping = {}};
}

// A rank's share of a weight.
WeightSource share_of(const WeightSource& source, uint64_t rank, uint64_t n_ranks) {
  WeightSource share = source;
  share.split = Split::none;
  share.n_matrices = 1;
  if (source.split == Split::none) return share;
  const FormatInfo& info = format_info(source.format);
  const bool by_rows = source.split == Split::rows;
  const uint64_t n = by_rows ? source.rows / source.n_matrices : source.k / info.block_size;
  if (n % n_ranks != 0)
    throw UnsupportedModelError("weight " + std::string(source.name) + " has " + std::to_string(n) +
                                (by_rows ? " rows" : " blocks in a row") +
                                ", which do not divide among " + std::to_string(n_ranks) + " GPUs");
  (by_rows ? share.rows : share.k) /= n_ranks;
  for (uint32_t plane = 0; plane < info.n_planes; ++plane) {
    const WeightPart& whole = source.parts[plane];
    const uint64_t row = plane_row_bytes(source.format, plane, source.k);
    const uint64_t stride = by_rows ? source.rows / source.n_matrices * row : row;
    const uint64_t length = stride / n_ranks;
    if (by_rows && source.n_matrices == 1) {
      share.parts[plane].bytes = whole.bytes.subspan(rank * length, length);
      continue;
    }
    share.parts[plane] = gathered(whole.bytes, by_rows ? source.n_matrices : source.rows, stride,
                                  rank * length, length);
  }
  return share;
}

}  // namespace

DeviceGroup::DeviceGroup(std::vector<std::shared_ptr<Device>> ranks) : ranks_(std::move(ranks)) {
  if (ranks_.size() < 2 || ranks_.size() > kMaxRanks)
    throw ArgumentError("gpus must be 1 to " + std::to_string(kMaxRanks) + ", got " +
                        std::to_string(ranks_.size()));
  chip_ = first().chip();
  for (const std::shared_ptr<Device>& rank : ranks_)
    if (rank->chip().name != chip_.name || rank->chip().workers != chip_.workers)
      throw ArgumentError("GPUs that compute a model together must be alike, and these are " +
                          chip_.name + " and " + rank->chip().name +
                          "; CUDA_VISIBLE_DEVICES says which GPUs this process has");
  chip_.name = std::to_string(ranks_.size()) + " x " + chip_.name;
  for (const std::shared_ptr<Device>& rank : ranks_)
    for (const std::shared_ptr<Device>& other : ranks_)
      if (rank != other) rank->reach(*other);
  exchange_ = allocate(exchange_bytes(n_ranks()), "exchange between GPUs");
}

DeviceGroup::~DeviceGroup() {
  // What runs on one rank writes to the memory of the others.
  if (failure_.empty() && last_ticket_ > 0) {
    try {
      static_cast<void>(wait(last_ticket_, kLongest));
    } catch (const Error&) {  // who waited for it was told, or nobody did
    }
  }
  release(exchange_);
  programs_.clear();
  while (!ranks_.empty()) ranks_.pop_back();  // kernels that were found are the first one's
}

Buffer DeviceGroup::part(const Buffer& buffer, size_t rank) {
  return buffer.handle == nullptr ? Buffer{}
                                  : static_cast<const Parts*>(buffer.handle)->buffers[rank];
}

Binding DeviceGroup::part(const Binding& binding, size_t rank) {
  return {part(binding.buffer, rank), binding.offset};
}

Buffer DeviceGroup::add(std::vector<Buffer> buffers) {
  const uint64_t size = buffers.front().size;
  auto made = std::make_unique<Parts>(std::move(buffers));
  void* const handle = made.get();
  parts_.emplace(handle, std::move(made));
  return {handle, size, nullptr};
}

Buffer DeviceGroup::allocate(uint64_t bytes, std::string_view label) {
  std::vector<Buffer> buffers;
  try {
    for (const std::shared_ptr<Device>& rank : ranks_)
      buffers.push_back(rank->allocate(bytes, label));
    return add(buffers);
  } catch (...) {
    for (size_t rank = 0; rank < buffers.size(); ++rank) ranks_[rank]->release(buffers[rank]);
    throw;
  }
}

void DeviceGroup::release(const Buffer& buffer) {
  const auto found = parts_.find(buffer.handle);
  if (found == parts_.end()) return;
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank]->release(found->second->buffers[rank]);
  parts_.erase(found);
}

MemoryLeft DeviceGroup::memory_left() const {
  MemoryLeft least = first().memory_left();
  for (const std::shared_ptr<Device>& rank : ranks_)
    if (const MemoryLeft left = rank->memory_left();
        left.memory && left.memory < least.memory.value_or(UINT64_MAX))
      least = left;
  return least;
}

MemoryUse DeviceGroup::labelled(MemoryUse use) const {
  use.label += ", on each of " + std::to_string(n_ranks());
  return use;
}

std::vector<MemoryUse> DeviceGroup::memory_use() const {
  std::vector<MemoryUse> uses = first().memory_use();
  for (MemoryUse& use : uses) use = labelled(std::move(use));
  return uses;
}

MemoryUse DeviceGroup::use_of(const Buffer& buffer) const {
  return labelled(first().use_of(part(buffer, 0)));
}

void DeviceGroup::write(const Binding& destination, std::span<const std::byte> bytes) {
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank]->write(part(destination, rank), bytes);
}

void DeviceGroup::read(const Binding& source, std::span<std::byte> bytes) const {
  first().read(part(source, 0), bytes);
}

void DeviceGroup::copy(std::span<const Copy> copies) {
  refuse();
  std::vector<Copy> own(copies.begin(), copies.end());
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = {part(copies[i].from, rank), part(copies[i].to, rank), copies[i].bytes};
    ranks_[rank]->copy(own);
  }
}

Weight DeviceGroup::import_weight(const WeightSource& source) {
  check_weight(source);
  std::vector<Weight> shares;
  try {
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      shares.push_back(ranks_[rank]->import_weight(share_of(source, rank, n_ranks())));
  } catch (...) {
    for (size_t rank = 0; rank < shares.size(); ++rank) ranks_[rank]->release_weight(shares[rank]);
    throw;
  }
  Weight weight = shares.front();
  for (uint32_t plane = 0; plane < kMaxPlanes; ++plane) {
    if (!weight.planes[plane]) continue;
    std::vector<Buffer> buffers;
    for (const Weight& share : shares) buffers.push_back(share.planes[plane].buffer);
    weight.planes[plane].buffer = add(std::move(buffers));
  }
  return weight;
}

void DeviceGroup::release_weight(const Weight& weight) {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    Weight share = weight;
    for (Binding& plane : share.planes) plane = part(plane, rank);
    ranks_[rank]->release_weight(share);
  }
  for (const Binding& plane : weight.planes) parts_.erase(plane.buffer.handle);
}

void DeviceGroup::set_limits(const SubmissionLimits& limits) {
  refuse();
  for (const std::shared_ptr<Device>& rank : ranks_) rank->set_limits(limits);
  limits_ = larger_of(limits_, limits);
  passes_.reserve(limits_.max_passes);
  updates_.reserve(limits_.max_updates);
}

DispatchTable DeviceGroup::table_of(const DispatchTable& table, size_t rank) const {
  DispatchTable own = table;
  for (Command& command : own.commands) {
    for (Binding& operand : command.operands) operand = part(operand, rank);
    if (!is_all_reduce(command.operation)) continue;
    for (size_t other = 0; other < ranks_.size(); ++other)
      command.operands[kExchangeSlot + other] = part(exchange(), other);
    auto params = command.params.get<AllReduceParams>();
    params.rank = static_cast<uint32_t>(rank);
    command.params.set(params);
  }
  return own;
}

Program DeviceGroup::compile(DispatchTable table, const StepMemory& memory) {
  refuse();
  auto made = std::make_unique<Programs>();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const StepMemory own{part(memory.rows, rank), part(memory.spans, rank),
                         part(memory.pages, rank), part(memory.sequences, rank),
                         part(memory.statuses, rank)};
    made->programs.push_back(ranks_[rank]->compile(table_of(table, rank), own));
  }
  programs_.push_back(std::move(made));
  return {programs_.back().get()};
}

void DeviceGroup::release_program(Program program) {
  if (program.handle == nullptr) return;
  const auto& own = *static_cast<const Programs*>(program.handle);
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank]->release_program(own.programs[rank]);
  std::erase_if(programs_, [&](const auto& owned) { return owned.get() == program.handle; });
}

Replay DeviceGroup::replay_of(const Replay& replay, size_t rank) {
  if (replay.passes.size() > limits_.max_passes || replay.updates.size() > limits_.max_updates)
    throw ArgumentError("a submission has " + std::to_string(replay.passes.size()) +
                        " passes and " + std::to_string(replay.updates.size()) +
                        " updates, the limits are " + std::to_string(limits_.max_passes) + " and " +
                        std::to_string(limits_.max_updates));
  passes_.assign(replay.passes.begin(), replay.passes.end());
  for (Pass& pass : passes_)
    if (pass.program.handle != nullptr)
      pass.program = static_cast<const Programs*>(pass.program.handle)->programs[rank];
  updates_.assign(replay.updates.begin(), replay.updates.end());
  for (Update& update : updates_) update.destination = part(update.destination, rank);
  Replay own = replay;
  own.passes = passes_;
  own.updates = updates_;
  return own;
}

void DeviceGroup::refuse() const {
  if (!failure_.empty()) throw DeviceError("an earlier command failed: " + failure_);
}

void DeviceGroup::fail(size_t rank, const std::string& why) {
  failure_ = "GPU " + std::to_string(rank) + " of " + std::to_string(n_ranks()) +
             " (counted from 0, as CUDA_VISIBLE_DEVICES orders them): " + why;
  throw DeviceError(failure_);
}

Ticket DeviceGroup::submit(const Replay& replay) {
  refuse();
  if (has_own_memory() && !has_few_rows(replay.passes)) return submit_with_threads(replay);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    try {
      last_ticket_ = ranks_[rank]->submit(replay_of(replay, rank));
    } catch (const Error& error) {
      if (rank == 0) throw;  // none of them has it
      fail(rank, error.what());
    }
  }
  return last_ticket_;
}

Outcome DeviceGroup::wait(Ticket ticket, std::chrono::milliseconds timeout) {
  refuse();
  if (!has_own_memory()) return wait_with_threads(ticket);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline =
      Clock::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::years(1));
  Outcome outcome;
  size_t n_finished = 0;
  while (true) {
    // The first ranks mostly end with the last ones: each is waited for in turn.
    for (size_t rank = n_finished; rank < ranks_.size(); ++rank) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::max(deadline - Clock::now(), Clock::duration::zero()));
      const bool is_next = rank == n_finished;
      Outcome each;
      try {
        each = ranks_[rank]->wait(ticket,
                                  is_next ? std::min(left, kLook) : std::chrono::milliseconds(0));
      } catch (const DeviceError& error) {
        fail(rank, error.what());
      }
      if (rank == 0) outcome = each;
      if (is_next && each.finished) ++n_finished;
    }
    if (n_finished == ranks_.size()) return outcome;
    if (Clock::now() >= deadline) {
      outcome.finished = false;
      return outcome;
    }
  }
}

// Calls run(rank) for all ranks at once, and throws what one of them throws.
template <class Run>
void DeviceGroup::run_all(const Run& run) {
  std::vector<std::exception_ptr> problems(ranks_.size());
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          run(rank);
        } catch (...) {
          problems[rank] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& problem : problems)
    if (problem) std::rethrow_exception(problem);
}

// Devices whose submissions run while somebody waits for them, as those of a CPU do: to the end, since a rank that
// stopped on the way would keep the others waiting.
Outcome DeviceGroup::wait_with_threads(Ticket ticket) {
  std::vector<Outcome> outcomes(ranks_.size());
  run_all([&](size_t rank) {
    outcomes[rank] = ranks_[rank]->wait(ticket, std::chrono::hours(24 * 365));
  });
  return outcomes.front();
}

struct DeviceGroup::ReplayOfRank {
  Replay replay;
  std::vector<Pass> passes;
  std::vector<Update> updates;
};

std::vector<DeviceGroup::ReplayOfRank> DeviceGroup::replays_of(const Replay& replay) {
  std::vector<ReplayOfRank> replays(ranks_.size());
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ReplayOfRank& own = replays[rank];
    own = {replay_of(replay, rank), passes_, updates_};
    own.replay.passes = own.passes;
    own.replay.updates = own.updates;
  }
  return replays;
}

// A driver takes about a thousand launches of a GPU that waits for another one; then it blocks who launches more. So no
// rank's launches may stand behind those of another rank in one thread.
Ticket DeviceGroup::submit_with_threads(const Replay& replay) {
  const std::vector<ReplayOfRank> replays = replays_of(replay);
  std::vector<Ticket> tickets(ranks_.size());
  std::atomic<size_t> n_submitted = 0, first_failed = ranks_.size();
  std::exception_ptr problem;  // of the first one that failed: others may only have waited for it
  try {
    run_all([&](size_t rank) {
      try {
        tickets[rank] = ranks_[rank]->submit(replays[rank].replay);
        ++n_submitted;
      } catch (...) {
        size_t none = ranks_.size();
        if (first_failed.compare_exchange_strong(none, rank)) problem = std::current_exception();
      }
    });
    if (problem) std::rethrow_exception(problem);
  } catch (const ArgumentError&) {  // checked before anything is launched
    if (n_submitted == 0) throw;
    fail(first_failed, "a submission was refused by some ranks only");
  } catch (const std::exception& error) {
    fail(std::min<size_t>(first_failed, ranks_.size() - 1), error.what());
  }
  return last_ticket_ = tickets.front();
}

std::vector<CommandTime> DeviceGroup::profile(const Replay& replay) {
  refuse();
  std::vector<std::vector<CommandTime>> times(ranks_.size());
  const std::vector<ReplayOfRank> replays = replays_of(replay);
  run_all([&](size_t rank) { times[rank] = ranks_[rank]->profile(replays[rank].replay); });
  ++last_ticket_;
  return times.front();
}

}  // namespace akunu
