// Which runs of positions are kept outside the cache: a radix tree over tokens, whose edges are runs of
// at most a page. It knows what there is and what was used when; bytes and files are others' business.
//
// States of recurrent layers are of a place, not of positions: they lie behind the whole pages before it, as runs
// of their own, and hold wherever some run has the positions between.
//
// A run's name follows from its tokens and all before them (SHA-256), so that processes that share a
// folder call the same run alike. Of runs behind the same one all are in order of their tokens: the one
// that a text has most in common with is a neighbour of where the text would be.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace akunu {

struct RunName {
  uint64_t high = 0, low = 0;  // both 0: of nothing, before which every text begins
  auto operator<=>(const RunName&) const = default;
  bool is_root() const { return high == 0 && low == 0; }
};
std::string to_text(const RunName& name);                   // 32 digits
std::optional<RunName> run_name_of(std::string_view text);  // nothing where it is no name

// Positions of one page, behind those of another run.
struct PrefixRun {
  RunName behind;
  // Of a first run, what its positions depend on beside the tokens, and then the tokens: at most
  // kPagePositions.
  std::vector<uint32_t> words;
  uint32_t n_key = 0;   // of the words
  uint64_t groups = 0;  // bit g: the page of cache group g is there
  // The run has states in place of positions: those after its last token. It has the tokens behind the last whole
  // page before them, from 0 to one less than a page.
  bool is_state = false;

  uint32_t n_positions() const { return static_cast<uint32_t>(words.size()) - n_key; }
  std::span<const uint32_t> tokens() const { return std::span(words).subspan(n_key); }
};
RunName name_of(const PrefixRun& run);

class PrefixTree {
 public:
  struct Node {
    PrefixRun run;
    uint32_t entry = 0;       // of the page table: pages before it
    uint64_t n_bytes = 0;     // that it takes where it lies
    uint64_t last_use = 0;    // what the caller counts in
    uint32_t n_behind = 0;    // runs behind this one
    bool is_pending = false;  // not there yet
  };
  struct Found {
    std::vector<RunName>
        runs;  // from the first on; of the last one perhaps not all positions count
    uint32_t n_positions = 0;
    bool goes_on = false;  // the last run has another token next, or one like it has
  };

  // The longest beginning of the tokens that is here.
  Found find(std::span<const uint32_t> key, std::span<const uint32_t> tokens) const;
  // Of a text whose beginning was found, the places that states are here of, in order.
  std::vector<std::pair<uint32_t, RunName>> states(std::span<const uint32_t> key,
                                                   std::span<const uint32_t> tokens,
                                                   const Found& found) const;
  const Node* look_up(const RunName& name) const;
  // False, and nothing changed, where it is here already, or what it lies behind is not, or no page.
  bool add(PrefixRun run, uint64_t n_bytes, uint64_t last_use, bool is_pending);
  void set_there(const RunName& name);
  // A run that is a beginning of this one, behind the same: of no use any more.
  std::optional<RunName> beginning_of(const PrefixRun& run) const;
  // A run that has the positions of these states behind its last whole page.
  std::optional<RunName> positions_of(const PrefixRun& state) const;
  void touch(const RunName& name, uint64_t now);
  // Forgets a run and all behind it; returns their names.
  std::vector<RunName> remove(const RunName& name);
  // Of the runs with none behind them, the least recently used; none where all others are pending.
  std::optional<RunName> least_recently_used() const;

  size_t size() const { return nodes_.size(); }
  uint64_t n_bytes() const { return n_bytes_; }
  uint64_t n_pending_bytes() const { return n_pending_bytes_; }  // of n_bytes
  std::vector<RunName> names() const;

 private:
  struct Place {
    RunName behind;
    bool is_state;
    std::vector<uint32_t> words;
  };
  struct View {
    RunName behind;
    bool is_state;
    std::span<const uint32_t> words;
  };
  struct Order {
    using is_transparent = void;
    static View view(const Place& place) { return {place.behind, place.is_state, place.words}; }
    static View view(const View& view) { return view; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return less(view(a), view(b));
    }
    static bool less(const View& a, const View& b);
  };

  // A run with none behind it is in `leaves_`, unless it is pending.
  void set_leaf(const RunName& name, const Node& node, bool is_leaf);

  std::map<Place, RunName, Order> places_;
  std::set<std::pair<uint64_t, RunName>> leaves_;  // by their last use
  std::map<RunName, Node> nodes_;
  uint64_t n_bytes_ = 0, n_pending_bytes_ = 0;
};

}  // namespace akunu
