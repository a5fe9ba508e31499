#include "inference/context_plan.h"

#include <algorithm>
#include <limits>

#include "cache/pages.h"
#include "cache/sequences.h"
#include "core/error.h"

namespace akunu {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kQueuedSubmissions = 8;  // a device keeps the updates of so many

uint64_t less(uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); }

class Planner {
 public:
  Planner(const LoadOptions& options, const ContextNeeds& needs, const MemoryLeft& left)
      : options_(options),
        needs_(needs),
        left_(left),
        wanted_(options.context.value_or(needs.trained_context)) {}

  ContextPlan plan() const {
    ContextPlan plan;
    if (wanted_ > needs_.trained_context)
      plan.notes.push_back(
          "a context of " + std::to_string(wanted_) + " positions is longer than the " +
          std::to_string(needs_.trained_context) + " that the model was trained on");
    const uint64_t paid = options_.kv_memory.value_or(kNoLimit) / needs_.page;
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(pages_for(wanted_), paid));
    const uint32_t n_pages = options_.kv_memory ? most_with_kv_memory(most) : most_that_fit(most);
    if (n_pages == 0) refuse_any_context();
    if (n_pages == pages_for(wanted_)) {
      plan.context = wanted_;
    } else {
      if (options_.context) refuse_context();
      plan.context = n_pages * kPagePositions;
      plan.notes.push_back("context reduced from " + std::to_string(wanted_) + " to " +
                           std::to_string(plan.context) + " positions: " +
                           (options_.kv_memory ? "kv_memory allows no more" : need(wanted_)));
    }
    // The pool holds one full context, or all that kv_memory pays for (several shorter conversations).
    plan.n_pages = n_pages;
    if (options_.kv_memory)
      plan.n_pages =
          static_cast<uint32_t>(std::min<uint64_t>(paid, uint64_t{n_pages} * needs_.max_texts));
    return plan;
  }

 private:
  uint64_t besides_cache(uint32_t context) const {
    return needs_.fixed + SequenceStore::bytes(needs_.max_texts, context, needs_.n_groups) +
           kQueuedSubmissions * max_update_bytes(context, needs_.n_groups, needs_.max_texts);
  }
  uint32_t positions_of(uint32_t n_pages) const {
    return static_cast<uint32_t>(std::min<uint64_t>(wanted_, uint64_t{n_pages} * kPagePositions));
  }

  // A context that nobody asked for leaves some of a limited address space to the rest of the process, which would end
  // with the first thing that it wants to keep.
  bool leaves_an_eighth() const {
    return left_.address_space && !options_.context && !options_.kv_memory;
  }
  uint64_t room() const {
    const uint64_t memory = left_.memory ? less(*left_.memory, needs_.mapped) : kNoLimit;
    uint64_t space = left_.address_space.value_or(kNoLimit);
    if (leaves_an_eighth()) space -= space / 8;
    return std::min(memory, space);
  }

  // The largest number of pages, up to `most`, that fit with all that comes with so many positions.
  uint32_t most_that_fit(uint32_t most) const {
    uint32_t fit = 0;
    for (uint32_t first = 1, last = most; first <= last;) {
      const uint32_t middle = first + (last - first) / 2;
      if (besides_cache(positions_of(middle)) + middle * needs_.page <= room()) {
        fit = middle;
        first = middle + 1;
      } else {
        last = middle - 1;
      }
    }
    return fit;
  }

  // Whether it is address space that there is least of. The file has its share of that already.
  bool is_limited() const {
    const uint64_t memory = left_.memory ? less(*left_.memory, needs_.mapped) : kNoLimit;
    return left_.address_space && *left_.address_space < memory;
  }
  std::string what_there_is() const {
    if (is_limited())
      return describe_address_space(*left_.address_space) +
             (leaves_an_eighth() ? ", an eighth of which is left to the rest of it" : "");
    if (!left_.memory) return "how much memory is available is not known";
    return mebibytes(*left_.memory) + " of memory are available";
  }
  std::string what_goes_besides(uint32_t context) const {
    return is_limited()
               ? mebibytes(besides_cache(context)) + " for scratch"
               : mebibytes(besides_cache(context) + needs_.mapped) + " for weights and scratch";
  }
  std::string need(uint32_t context) const {
    return "a context of " + std::to_string(context) + " positions needs " +
           mebibytes(pages_for(context) * needs_.page) + " of cache, besides " +
           what_goes_besides(context) + "; " + what_there_is();
  }
  std::string kv_memory_too() const {
    return options_.kv_memory ? ", and kv_memory allows " + mebibytes(*options_.kv_memory) : "";
  }

  uint32_t most_with_kv_memory(uint32_t n_pages) const {
    const uint64_t for_cache = less(room(), besides_cache(positions_of(n_pages)));
    if (*options_.kv_memory > for_cache)
      throw OutOfMemoryError("kv_memory is " + mebibytes(*options_.kv_memory) + "; " +
                             mebibytes(for_cache) + " are available for the cache");
    return n_pages;
  }
  [[noreturn]] void refuse_any_context() const {
    const uint32_t page = std::min(wanted_, kPagePositions);
    throw OutOfMemoryError("no memory for a cache: one page of " + std::to_string(kPagePositions) +
                           " positions needs " + mebibytes(needs_.page) + ", besides " +
                           what_goes_besides(page) + "; " + what_there_is() + kv_memory_too());
  }
  [[noreturn]] void refuse_context() const {
    throw OutOfMemoryError(need(wanted_) + kv_memory_too() + "; ask for a shorter context");
  }

  const LoadOptions& options_;
  const ContextNeeds& needs_;
  const MemoryLeft& left_;
  const uint32_t wanted_;
};

}  // namespace

ContextPlan plan_context(const LoadOptions& options, const ContextNeeds& needs,
                         const MemoryLeft& left) {
  return Planner(options, needs, left).plan();
}

uint64_t max_update_bytes(uint32_t context, uint32_t n_groups, uint32_t max_texts) {
  const uint64_t page_tables = uint64_t{n_groups} * pages_for(context) * sizeof(uint32_t);
  return SequenceStore::bytes(1, context, n_groups) + max_texts * page_tables;
}

}  // namespace akunu
