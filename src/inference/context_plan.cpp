#include "inference/context_plan.h"

#include <algorithm>
#include <limits>

#include "cache/kv_cache.h"
#include "cache/sequence_store.h"
#include "core/error.h"

namespace akunu {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kQueuedSubmissions = 8;  // a device keeps the updates of so many
// Texts that have a window, or a state, beside that of one at its prompt: short ones under way, or what earlier
// ones left for the next to begin with. A pool for one alone would forget with every new request.
constexpr uint32_t kTextsBeside = 2;

using Pages = std::vector<uint32_t>;  // of each group

// The largest number in [1, most] that `fits`, which smaller ones then do as well; 0: none.
template <class Fits>
uint32_t largest(uint32_t most, Fits&& fits) {
  uint32_t found = 0;
  for (uint32_t first = 1, last = most; first <= last;) {
    const uint32_t middle = first + (last - first) / 2;
    if (fits(middle)) {
      found = middle;
      first = middle + 1;
    } else {
      last = middle - 1;
    }
  }
  return found;
}

uint64_t less(uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); }

// An encoder has no positions behind those that it was trained on.
uint32_t wanted_context(const LoadOptions& options, const ContextNeeds& needs) {
  const uint32_t context = options.context.value_or(needs.trained_context);
  return needs.has_no_more ? std::min(context, needs.trained_context) : context;
}

class Planner {
 public:
  Planner(const LoadOptions& options, const ContextNeeds& needs, const MemoryLeft& left)
      : options_(options), needs_(needs), left_(left), wanted_(wanted_context(options, needs)) {}

  ContextPlan plan() const {
    ContextPlan plan;
    if (wanted_ < options_.context.value_or(wanted_))
      plan.notes.push_back("context is " + std::to_string(*options_.context) +
                           "; this encoder has " + std::to_string(wanted_) +
                           " positions, and takes texts of as many");
    if (wanted_ > needs_.trained_context)
      plan.notes.push_back(
          "a context of " + std::to_string(wanted_) + " positions is longer than the " +
          std::to_string(needs_.trained_context) + " that the model was trained on");
    // The number of pages in which a text's positions lie, whether or not every layer keeps them.
    const uint32_t n_pages = largest(
        pages_for(wanted_), [&](uint32_t n) { return cache_bytes(pages_of_one(n)) <= budget(n); });
    if (options_.kv_memory) refuse_kv_memory_that_is_not_there(n_pages);
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
    plan.n_pages = pools(n_pages);
    return plan;
  }

  uint64_t bytes(uint32_t context) const {
    return besides_cache(context) +
           options_.kv_memory.value_or(cache_bytes(pages_of_one(pages_for(context))));
  }

 private:
  uint64_t besides_cache(uint32_t context) const {
    return needs_.fixed + SequenceStore::bytes(needs_.max_texts, context, needs_.groups) +
           kQueuedSubmissions *
               max_update_bytes(context, needs_.groups, needs_.max_texts, needs_.masks);
  }
  uint64_t cache_bytes(const Pages& pages) const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < pages.size(); ++i) bytes += pages[i] * needs_.groups[i].page_bytes();
    return bytes;
  }
  // What the cache may take where a text has `n_pages`.
  uint64_t budget(uint32_t n_pages) const {
    return options_.kv_memory.value_or(less(room(), besides_cache(positions_of(n_pages))));
  }

  // What one text needs that goes on to the end of `n_pages`.
  Pages pages_of_one(uint32_t n_pages) const {
    Pages pages;
    for (const GroupShape& group : needs_.groups)
      pages.push_back(group.most_pages(positions_of(n_pages), needs_.n_rows));
    return pages;
  }
  // What `m` pages' worth of texts are well served with where one has `n_pages` of them.
  Pages pages_of_several(uint32_t n_pages, uint64_t m) const {
    Pages pages;
    for (const GroupShape& group : needs_.groups) {
      const uint32_t positions = positions_of(n_pages);
      // What an encoder made is of one text's input alone: a text beside it needs another.
      const uint32_t n_beside = group.is_cross() ? 0 : kTextsBeside;
      const uint64_t of_some =
          group.most_pages(positions, needs_.n_rows) + n_beside * group.most_pages(positions, 1);
      const uint64_t wished = (of_some * m + n_pages - 1) / n_pages;
      const bool grows = group.ask([](const auto& kind) { return kind.kGrows; });
      const uint64_t of_branches = group.is_cross() ? 0 : needs_.branches * (m / n_pages);
      pages.push_back(static_cast<uint32_t>((grows ? std::min(m, wished) : wished) + of_branches));
    }
    return pages;
  }
  // The pools hold one full context (or the usual number), or all that kv_memory pays for (several shorter texts).
  Pages pools(uint32_t n_pages) const {
    const uint64_t most = budget(n_pages);
    const uint32_t n_contexts = largest(needs_.max_texts, [&](uint32_t n) {
      return (n <= needs_.usual_contexts || options_.kv_memory) &&
             cache_bytes(pages_of_several(n_pages, uint64_t{n} * n_pages)) <= most;
    });
    if (n_contexts > 0) {
      const uint32_t part = largest(n_pages, [&](uint32_t n) {
        return n_contexts < needs_.max_texts && options_.kv_memory &&
               cache_bytes(pages_of_several(n_pages, uint64_t{n_contexts} * n_pages + n)) <= most;
      });
      return pages_of_several(n_pages, uint64_t{n_contexts} * n_pages + part);
    }
    // Too little for that: what one text needs, and of windows as much more as there is room for.
    Pages pages = pages_of_one(n_pages);
    const Pages wished = pages_of_several(n_pages, n_pages);
    for (bool grew = true; grew;) {
      grew = false;
      for (size_t i = 0; i < pages.size(); ++i) {
        if (pages[i] >= wished[i] || cache_bytes(pages) + needs_.groups[i].page_bytes() > most)
          continue;
        ++pages[i];
        grew = true;
      }
    }
    return pages;
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
           mebibytes(cache_bytes(pages_of_one(pages_for(context)))) + " of cache, besides " +
           what_goes_besides(context) + "; " + what_there_is();
  }
  std::string kv_memory_too() const {
    return options_.kv_memory ? ", and kv_memory allows " + mebibytes(*options_.kv_memory) : "";
  }

  void refuse_kv_memory_that_is_not_there(uint32_t n_pages) const {
    const uint64_t for_cache = less(room(), besides_cache(positions_of(n_pages)));
    if (*options_.kv_memory > for_cache)
      throw OutOfMemoryError("kv_memory is " + mebibytes(*options_.kv_memory) + "; " +
                             mebibytes(for_cache) + " are available for the cache");
  }
  [[noreturn]] void refuse_any_context() const {
    const uint32_t page = std::min(wanted_, kPagePositions);
    throw OutOfMemoryError("no memory for a cache: one page of " + std::to_string(kPagePositions) +
                           " positions needs " + mebibytes(cache_bytes(pages_of_one(1))) +
                           ", besides " + what_goes_besides(page) + "; " + what_there_is() +
                           kv_memory_too());
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

Format kv_format(const std::string& name) {
  for (const Format format : {Format::f16, Format::f32, Format::q8_0, Format::q4_0})
    if (format_info(format).name == name) return format;
  throw ArgumentError("kv_type is '" + name + "'; possible are f16, f32, q8_0 and q4_0");
}

ContextPlan plan_context(const LoadOptions& options, const ContextNeeds& needs,
                         const MemoryLeft& left) {
  return Planner(options, needs, left).plan();
}

uint64_t context_bytes(const LoadOptions& options, const ContextNeeds& needs, uint32_t context) {
  return Planner(options, needs, {}).bytes(context);
}

uint64_t max_update_bytes(uint32_t context, std::span<const GroupShape> groups, uint32_t max_texts,
                          uint64_t masks) {
  const uint64_t page_tables = groups.size() * table_entries(groups, context) * sizeof(uint32_t);
  return SequenceStore::update_bytes(context, groups) + max_texts * page_tables + masks;
}

}  // namespace akunu
