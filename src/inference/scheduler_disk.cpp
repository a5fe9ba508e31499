// What the scheduler does about the tier on the disk (cache/prefix_disk.h).
//
// 1. What it does. A task whose prompt the disk has for longer than the cache waits, and lets others pass,
//    until that is read (`waits_for_disk`); then it begins with it. Texts that ended are handed to the disk
//    some pages between two steps (`store_pages`), as fast as it writes them.
// 2. What bounds it. Of a step, the copy of some megabytes; of a task that waits, the disk. One is read for at a
//    time: who has the same prompt finds it in the cache when its turn comes.
#include <bit>

#include "core/error.h"
#include "inference/scheduler.h"

namespace akunu {
namespace {

// Bytes between two steps, some milliseconds; a page that is larger goes alone.
constexpr uint64_t kMostCopied = 16 << 20;
// What a model that is closed still hands to the disk; more would keep its process from ending.
constexpr std::chrono::seconds kMostAtTheEnd{5};
constexpr std::chrono::milliseconds kBetweenTries{2};
constexpr std::chrono::milliseconds kMostWait{100};

}  // namespace

void Scheduler::keep_on_disk(std::filesystem::path folder, uint64_t most_bytes,
                             std::vector<std::vector<uint32_t>> adapters) {
  check_process();
  if (disk_ != nullptr) throw ArgumentError("the cache has a folder already");
  if (!prefix_cache_)
    throw ArgumentError(
        "the cache keeps nothing of earlier texts, so there is nothing to keep in " +
        folder.string());
  std::vector<GroupShape> groups = saved_groups();
  if (groups.size() > 64)
    throw UnsupportedModelError("this model has " + std::to_string(groups.size()) +
                                " cache groups; with more than 64 none is kept on a disk");
  if (adapters.size() != model_.adapters().names().size())
    throw ArgumentError("digests of " + std::to_string(adapters.size()) + " adapters; there are " +
                        std::to_string(model_.adapters().names().size()));
  adapter_digests_ = std::move(adapters);
  disk_ = std::make_unique<PrefixDisk>(std::move(folder), most_bytes, std::move(groups),
                                       [this] { queue_.wake(); });
  disk_in_use_.store(disk_.get(), std::memory_order_release);
}

std::optional<DiskCounts> Scheduler::disk_counts() const {
  if (disk() == nullptr) return std::nullopt;
  return disk()->counts();
}

// What keys and values depend on beside the tokens, and the folder does not say.
std::vector<uint32_t> Scheduler::words_of(const PrefixKey& key) const {
  std::vector<uint32_t> words = {static_cast<uint32_t>(key.adapters.size())};
  for (const AdapterShare& share : key.adapters) {
    const std::vector<uint32_t>& digest = adapter_digests_[share.adapter];
    words.insert(words.end(), digest.begin(), digest.end());
    words.push_back(std::bit_cast<uint32_t>(share.weight));
  }
  return words;
}

bool Scheduler::waits_for_disk(const std::shared_ptr<Task>& task, const Beginning& beginning) {
  if (disk() == nullptr || beginning.key.window != 0 || !task->rows().has_output()) return false;
  if (fetch_ && fetch_->task.lock() == task) return !fetch_->runs;
  const uint32_t most = std::min({beginning.most_reused, beginning.n_prompt,
                                  static_cast<uint32_t>(beginning.tokens.size()) - 1});
  if (most < kLeastOnDisk) return false;
  const uint32_t n_there = cache_.n_there(beginning);
  if (n_there + kLeastOnDisk > most) return false;
  RunsOnDisk found = disk()->find(words_of(beginning.key), beginning.tokens, most);
  if (found.n_positions < n_there + kLeastOnDisk) return false;
  // One at a time; what another one waits for may be what this one wants.
  if (!fetch_ && disk()->fetch(std::move(found), n_there / kPagePositions))
    fetch_ = Fetch{.task = task, .runs = std::nullopt};
  return true;
}

const RunsOnDisk* Scheduler::fetched_for(const std::shared_ptr<Task>& task) const {
  if (!fetch_ || !fetch_->runs || fetch_->task.lock() != task) return nullptr;
  return &*fetch_->runs;
}

// What was read since, and for whom nobody waits any more. Where nothing else is to be done, this waits.
void Scheduler::look_at_disk() {
  if (!fetch_) return;
  if (active_.empty() && !fetch_->runs)
    queue_.wait_until(std::chrono::steady_clock::now() + kMostWait,
                      [&] { return queue_.has_news() || !disk()->is_fetching(); });
  if (!fetch_->runs && !disk()->is_fetching()) {
    fetch_->runs = disk()->take_fetched();
    room_changed_ = true;
  }
  const std::shared_ptr<Task> task = fetch_->task.lock();
  if (!fetch_->runs || (task && !task->is_cancelled() && !task->is_over())) return;
  fetch_.reset();
  room_changed_ = true;
}

// Hands pages of texts that ended to the disk, as far as it can take them.
void Scheduler::store_pages() {
  if (disk() == nullptr) return;
  uint64_t n_copied = 0;
  while (n_copied < kMostCopied && cache_.has_unstored() && disk()->takes_more()) {
    const Sequence& sequence = *cache_.unstored();
    const uint32_t n = std::min({sequence.n_done, sequence.n_prompt, sequence.n_exact});
    std::optional<MissingRun> missing;
    if (sequence.key.window == 0)
      missing = disk()->missing(words_of(sequence.key), std::span(sequence.tokens).first(n),
                                sequence.unread.empty());
    if (!missing) {
      cache_.set_stored(sequence.id);
      continue;
    }
    RunPages pages = cache_.copy_page(sequence, missing->entry, missing->run.n_positions());
    n_copied += pages.bytes.size();
    disk()->write(std::move(*missing), std::move(pages));
  }
}

// The model is being closed: what the disk lacks of texts that ended.
void Scheduler::store_rest() {
  if (disk() == nullptr) return;
  if (ahead_) finish(*std::exchange(ahead_, std::nullopt));
  if (is_reading()) step_back(active_.begin());
  cache_.forget_unread();  // so that no text is going to be longer
  const auto until = std::chrono::steady_clock::now() + kMostAtTheEnd;
  while (cache_.has_unstored() && std::chrono::steady_clock::now() < until) {
    if (disk()->takes_more())
      store_pages();
    else if (disk()->is_busy())
      std::this_thread::sleep_for(kBetweenTries);
    else
      return;  // it takes nothing: it failed
  }
}

}  // namespace akunu
