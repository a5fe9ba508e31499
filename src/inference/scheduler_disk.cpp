// What the scheduler does about the tier on the disk (cache/prefix_disk.h).
//
// 1. What it does. A task whose prompt the disk has for longer than the cache waits, and lets others pass,
//    until that is read (`waits_for_disk`); then it begins with it. Texts that ended are handed to the disk
//    some pages between two steps (`store_pages`), as fast as it writes them.
// 2. What bounds it. Between two steps, the copy of some megabytes, or of one text's states. A task that waits is
//    bounded by the disk. The disk reads for one task at a time; another one with the same prompt finds it in the
//    cache when its turn comes.
#include <bit>

#include "core/error.h"
#include "inference/request_checks.h"
#include "inference/scheduler.h"

namespace akunu {
namespace {

// Bytes between two steps, some milliseconds; a page or a text's states that are larger go alone.
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
  // Runs are named by the tokens up to their ends.
  if (head_ != nullptr)
    throw UnsupportedModelError(
        "its prediction head keeps of a token what depends on the next one, too; load the model "
        "without prediction_head to keep prefixes there");
  std::vector<GroupShape> groups = saved_groups(model_);
  if (groups.size() > 64)
    throw UnsupportedModelError("this model has " + std::to_string(groups.size()) +
                                " cache groups; with more than 64 none is kept on a disk");
  if (adapters.size() != model_.context.adapters.get()->slots().size())
    throw ArgumentError("digests of " + std::to_string(adapters.size()) + " adapters; there are " +
                        std::to_string(model_.context.adapters.get()->slots().size()));
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
  for (const TextAdapter& share : key.adapters) {
    const std::vector<uint32_t>& digest = adapter_digests_[share.adapter];
    words.insert(words.end(), digest.begin(), digest.end());
    words.push_back(std::bit_cast<uint32_t>(share.weight));
  }
  return words;
}

bool Scheduler::waits_for_disk(const std::shared_ptr<Task>& task, const Beginning& beginning) {
  if (disk() == nullptr || beginning.key.window != 0 || !task->rows().has_output()) return false;
  if (fetch_ && fetch_->task.lock() == task) return !fetch_->runs;
  uint32_t most = std::min({beginning.most_reused, beginning.n_prompt,
                            static_cast<uint32_t>(beginning.tokens.size()) - 1});
  // Images are numbered by each process: what the disk has of one with this number may be of another image.
  if (const auto& images = task->rows().images; !images.empty())
    most = std::min(most, images.front().first);
  if (most < kLeastOnDisk) return false;
  const uint32_t n_there = cache_.prefixes.longest(beginning).n_positions;
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
    // A run that could not be read is forgotten; the next search may find a shorter prefix.
    if (fetch_->runs && fetch_->runs->n_positions == 0) return fetch_.reset();
  }
  const std::shared_ptr<Task> task = fetch_->task.lock();
  if (!fetch_->runs || (task && !task->is_cancelled() && !task->is_over())) return;
  fetch_.reset();
  room_changed_ = true;
}

// Reading a reply overwrites the states at the end of its prompt. So they are stored first, however far the disk is
// behind; after a failed write nothing waits for it.
bool Scheduler::has_states_to_store() const {
  return disk() != nullptr && disk()->keeps_states() && cache_.runs.next() != nullptr &&
         (disk()->takes_more() || disk()->is_busy());
}

// Hands pages of texts that ended to the disk, as far as it can take them.
void Scheduler::store_pages() {
  if (disk() == nullptr) return;
  uint64_t n_copied = 0;
  while (n_copied < kMostCopied && cache_.runs.next() != nullptr && disk()->takes_more()) {
    const Sequence& sequence = *cache_.runs.next();
    const uint32_t n = std::min({sequence.n_done, sequence.n_prompt, sequence.n_exact});
    const std::span tokens = std::span(sequence.tokens).first(n);
    std::optional<MissingRun> missing;
    if (sequence.key.window == 0) {
      const std::vector<uint32_t> key = words_of(sequence.key);
      // With states the last page is stored although the text goes on: reading the reply overwrites the states at the
      // end of its prompt.
      missing = disk()->missing(key, tokens, sequence.unread.empty() || disk()->keeps_states());
      if (!missing && disk()->keeps_states())
        missing = disk()->missing_state(key, tokens, cache_.runs.places_of_states(sequence, n));
    }
    if (!missing) {
      cache_.runs.set_stored(sequence.id);
      continue;
    }
    RunPages pages = cache_.runs.copy(sequence, *missing);
    n_copied += pages.bytes.size();
    disk()->write(std::move(*missing), std::move(pages));
  }
}

// The model is being closed: what the disk lacks of texts that ended.
void Scheduler::store_rest() {
  if (disk() == nullptr) return;
  if (ahead_) finish(*std::exchange(ahead_, std::nullopt));
  if (is_reading()) step_back(active_.begin());
  cache_.runs.forget_unread();  // so that no text is going to be longer
  const auto until = std::chrono::steady_clock::now() + kMostAtTheEnd;
  while (cache_.runs.next() != nullptr && std::chrono::steady_clock::now() < until) {
    if (disk()->takes_more())
      store_pages();
    else if (disk()->is_busy())
      std::this_thread::sleep_for(kBetweenTries);
    else
      return;  // it takes nothing: it failed
  }
}

}  // namespace akunu
