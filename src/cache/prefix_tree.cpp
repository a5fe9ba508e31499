// The tree of runs. prefix_tree.h says what is in it.
//
// 1. What it does. One map has all runs in the order (what they lie behind, their words). `find` goes
//    from run to run: of those behind the last one, the neighbours of the text's next tokens in that
//    order are the candidates, since nothing between two words has less in common with either.
// 2. What bounds it. Memory: a kilobyte of tokens for each run. `find` takes the time of a few
//    comparisons a page, whatever the number of runs.
#include "cache/prefix_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/kernel_params.h"
#include "core/sha256.h"

namespace akunu {
namespace {

// Beside the number of words of the key, in what a name is made of.
constexpr uint32_t kOfStates = 1u << 31;

uint32_t common_words(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string to_text(const RunName& name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(32, '0');
  for (size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[name.high >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[name.low >> (60 - 4 * i) & 15];
  }
  return text;
}

std::optional<RunName> run_name_of(std::string_view text) {
  RunName name;
  if (text.size() != 32) return std::nullopt;
  const char* const middle = text.data() + 16;
  if (std::from_chars(text.data(), middle, name.high, 16).ptr != middle) return std::nullopt;
  if (std::from_chars(middle, middle + 16, name.low, 16).ptr != middle + 16) return std::nullopt;
  return to_text(name) == text ? std::optional(name) : std::nullopt;  // no capitals
}

RunName name_of(const PrefixRun& run) {
  std::vector<uint32_t> said = {
      static_cast<uint32_t>(run.behind.high >> 32), static_cast<uint32_t>(run.behind.high),
      static_cast<uint32_t>(run.behind.low >> 32), static_cast<uint32_t>(run.behind.low),
      run.n_key | (run.is_state ? kOfStates : 0)};
  said.insert(said.end(), run.words.begin(), run.words.end());
  const std::array<uint8_t, 32> digest = sha256(std::as_bytes(std::span(said)));
  std::array<uint64_t, 2> halves;
  std::memcpy(halves.data(), digest.data(), sizeof(halves));
  return {halves[0], halves[1]};
}

bool PrefixTree::Order::less(const View& a, const View& b) {
  if (a.behind != b.behind) return a.behind < b.behind;
  if (a.is_state != b.is_state) return b.is_state;
  return std::ranges::lexicographical_compare(a.words, b.words);
}

PrefixTree::Found PrefixTree::find(std::span<const uint32_t> key,
                                   std::span<const uint32_t> tokens) const {
  Found found;
  std::vector<uint32_t> all(key.begin(), key.end());
  all.insert(all.end(), tokens.begin(), tokens.end());
  std::span<const uint32_t> rest = all;
  RunName behind;
  while (!rest.empty()) {
    const auto next = places_.lower_bound(View{behind, false, rest});
    uint32_t n_common = 0;
    const Node* most_alike = nullptr;
    RunName name;
    const auto consider = [&](const auto& place) {
      if (place->first.behind != behind || place->first.is_state) return;
      const uint32_t n = common_words(place->first.words, rest);
      const Node& node = nodes_.at(place->second);
      if (node.run.n_key != (behind.is_root() ? key.size() : 0)) return;
      found.goes_on |= n >= node.run.n_key && n < node.run.words.size() && n >= n_common;
      if (n <= std::max(n_common, node.run.n_key)) return;
      n_common = n;
      most_alike = &node;
      name = place->second;
    };
    found.goes_on = false;
    if (next != places_.end()) consider(next);
    if (next != places_.begin()) consider(std::prev(next));
    if (most_alike == nullptr) break;
    found.runs.push_back(name);
    found.n_positions += n_common - most_alike->run.n_key;
    if (n_common < most_alike->run.words.size() || most_alike->run.n_positions() < kPagePositions)
      break;
    behind = name;
    rest = rest.subspan(n_common);
  }
  return found;
}

// Behind each page, of the states there those whose words the text goes on with: the last one in order that is not
// behind the text's words, if it is their beginning; else what has more in common with it comes before it.
std::vector<std::pair<uint32_t, RunName>> PrefixTree::states(std::span<const uint32_t> key,
                                                             std::span<const uint32_t> tokens,
                                                             const Found& found) const {
  std::vector<std::pair<uint32_t, RunName>> places;
  for (uint32_t entry = 0; entry * kPagePositions <= found.n_positions; ++entry) {
    const uint32_t first = entry * kPagePositions;
    const RunName behind = entry == 0 ? RunName{} : found.runs[entry - 1];
    std::vector<uint32_t> words;
    if (entry == 0) words.assign(key.begin(), key.end());
    const auto n_key = static_cast<uint32_t>(words.size());
    const std::span of_page =
        tokens.subspan(first, std::min(found.n_positions - first, kPagePositions - 1));
    words.insert(words.end(), of_page.begin(), of_page.end());
    const size_t n_before = places.size();
    for (std::span<const uint32_t> rest = words;;) {
      const auto next = places_.upper_bound(View{behind, true, rest});
      if (next == places_.begin()) break;
      const auto& [place, name] = *std::prev(next);
      if (place.behind != behind || !place.is_state) break;
      const uint32_t n = common_words(place.words, rest);
      if (n < place.words.size()) {
        rest = rest.first(n);
        continue;
      }
      if (nodes_.at(name).run.n_key == n_key && n >= n_key)
        places.emplace_back(first + n - n_key, name);
      if (n == 0) break;
      rest = rest.first(n - 1);
    }
    std::reverse(places.begin() + static_cast<ptrdiff_t>(n_before), places.end());
  }
  return places;
}

const PrefixTree::Node* PrefixTree::look_up(const RunName& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool PrefixTree::add(PrefixRun run, uint64_t n_bytes, uint64_t last_use, bool is_pending) {
  if (run.n_key > run.words.size() || run.n_positions() > kPagePositions ||
      (!run.behind.is_root() && run.n_key != 0))
    return false;
  if (run.is_state
          ? run.n_positions() == kPagePositions || (run.n_positions() == 0 && run.behind.is_root())
          : run.n_positions() == 0)
    return false;
  const RunName name = name_of(run);
  if (nodes_.contains(name)) return false;
  uint32_t entry = 0;
  if (!run.behind.is_root()) {
    const auto before = nodes_.find(run.behind);
    if (before == nodes_.end() || before->second.run.is_state ||
        before->second.run.n_positions() != kPagePositions)
      return false;
    entry = before->second.entry + 1;
    set_leaf(before->first, before->second, false);
    ++before->second.n_behind;
  }
  places_.emplace(Place{run.behind, run.is_state, run.words}, name);
  n_bytes_ += n_bytes;
  if (is_pending) n_pending_bytes_ += n_bytes;
  const auto added = nodes_.emplace(name, Node{.run = std::move(run),
                                               .entry = entry,
                                               .n_bytes = n_bytes,
                                               .last_use = last_use,
                                               .is_pending = is_pending});
  set_leaf(name, added.first->second, true);
  return true;
}

void PrefixTree::set_there(const RunName& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !std::exchange(found->second.is_pending, false)) return;
  n_pending_bytes_ -= found->second.n_bytes;
  set_leaf(name, found->second, true);
}

void PrefixTree::set_leaf(const RunName& name, const Node& node, bool is_leaf) {
  if (node.n_behind > 0 || node.is_pending) return;
  if (is_leaf)
    leaves_.emplace(node.last_use, name);
  else
    leaves_.erase({node.last_use, name});
}

std::optional<RunName> PrefixTree::beginning_of(const PrefixRun& run) const {
  const auto next = places_.lower_bound(View{run.behind, false, run.words});
  if (run.is_state || next == places_.begin()) return std::nullopt;
  const auto before = std::prev(next);
  const Node& node = nodes_.at(before->second);
  const bool is_beginning = before->first.behind == run.behind && node.run.n_key == run.n_key &&
                            node.n_behind == 0 && !node.is_pending &&
                            node.run.words.size() < run.words.size() &&
                            common_words(before->first.words, run.words) == node.run.words.size();
  return is_beginning ? std::optional(before->second) : std::nullopt;
}

std::optional<RunName> PrefixTree::positions_of(const PrefixRun& state) const {
  const auto next = places_.lower_bound(View{state.behind, false, state.words});
  if (!state.is_state || state.n_positions() == 0 || next == places_.end()) return std::nullopt;
  const bool has_them = next->first.behind == state.behind && !next->first.is_state &&
                        nodes_.at(next->second).run.n_key == state.n_key &&
                        common_words(next->first.words, state.words) == state.words.size();
  return has_them ? std::optional(next->second) : std::nullopt;
}

void PrefixTree::touch(const RunName& name, uint64_t now) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  set_leaf(name, found->second, false);
  found->second.last_use = std::max(found->second.last_use, now);
  set_leaf(name, found->second, true);
}

std::vector<RunName> PrefixTree::remove(const RunName& name) {
  std::vector<RunName> gone;
  if (!nodes_.contains(name)) return gone;
  gone.push_back(name);
  for (size_t i = 0; i < gone.size(); ++i)
    for (auto place = places_.lower_bound(View{gone[i], false, {}});
         place != places_.end() && place->first.behind == gone[i]; ++place)
      gone.push_back(place->second);
  if (const auto before = nodes_.find(nodes_.at(name).run.behind); before != nodes_.end()) {
    --before->second.n_behind;
    set_leaf(before->first, before->second, true);
  }
  for (const RunName& each : gone) {
    const Node& node = nodes_.at(each);
    set_leaf(each, node, false);
    n_bytes_ -= node.n_bytes;
    if (node.is_pending) n_pending_bytes_ -= node.n_bytes;
    places_.erase(places_.find(View{node.run.behind, node.run.is_state, node.run.words}));
    nodes_.erase(each);
  }
  return gone;
}

std::optional<RunName> PrefixTree::least_recently_used() const {
  if (leaves_.empty()) return std::nullopt;
  return leaves_.begin()->second;
}

std::vector<RunName> PrefixTree::names() const {
  std::vector<RunName> names;
  for (const auto& [name, node] : nodes_) names.push_back(name);
  return names;
}

}  // namespace akunu
