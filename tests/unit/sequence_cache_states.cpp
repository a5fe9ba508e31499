// SequenceCache where a group keeps something of a text as a whole, beside one that keeps every position: the state of
// recurrent layers, with checkpoints, or what an encoder made.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "unit/sequence_cache_harness.h"

namespace akunu::test {
namespace {

// A group of `kind` beside one that keeps everything, of a layer each. A state is one number; beside it are the
// last tokens, of which a row sees kSeen before its own.
class Pair {
 public:
  Pair(const CacheKind& kind, uint32_t n_pages)
      : n_kept_(n_kept(kind)),
        arch_(layers_of({0})),
        device_(create_device("cpu", {.threads = 1})),
        pages_(device_, arch_, groups_with(kind), std::array{40u, n_pages}),
        store_(device_, kSlots, 4 * kPagePositions, groups_with(kind)),
        cache_(pages_, store_, kRows, true) {}

  SequenceCache& cache() { return cache_; }
  SequenceStore& store() { return store_; }
  PagePool& pool() { return pages_.groups()[1].pages; }

  uint32_t begin(uint64_t id, const std::vector<uint32_t>& tokens) {
    const auto slot = cache_.sequences.begin(beginning(id, tokens, size_of(tokens), kNone));
    check(slot.has_value(), "there is room");
    return *slot;
  }
  // Rows up to position n, of which the first n_done are used. A state is how many positions it has seen; a row
  // that is not used has a token of its own.
  void run(uint32_t slot, uint32_t n, uint32_t n_done) {
    check(cache_.sequences.extend(slot, n), "there is room");
    for (uint32_t i = store_[slot].n_done + 1; i <= n; ++i) {
      if (n_kept_ > 0) check(inputs_are_right(slot, i - 1), "a row sees what is before it");
      const auto number = static_cast<float>(i);
      device_->write(state_of(slot, i), std::as_bytes(std::span(&number, 1)));
      const std::vector<uint32_t>& tokens = store_[slot].tokens;
      const uint32_t token = i <= n_done && i <= tokens.size() ? tokens[i - 1] : kRefused;
      if (n_kept_ > 0) device_->write(input_of(slot, i - 1), std::as_bytes(std::span(&token, 1)));
    }
    cache_.sequences.done(slot, n_done);
    cache_.sequences.ran(slot, n);
  }
  void run(uint32_t slot, uint32_t n) { run(slot, n, n); }
  float state(uint32_t slot) {
    if (n_kept_ > 0)
      check(inputs_are_right(slot, store_[slot].n_done), "beside a state are its text's tokens");
    float number = 0;
    device_->read(state_of(slot, store_[slot].n_done),
                  std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }
  SavedPositions saved(uint32_t slot) const {
    SavedPositions saved{{0, 0}, {}};
    std::vector<GroupShape> groups;
    for (const CacheGroup& group : pages_.groups()) groups.push_back(group.shape);
    saved.bytes.resize(saved_bytes(groups, saved.first_entries, store_[slot].n_done));
    cache_.copies.read(slot, saved);
    return saved;
  }
  uint64_t state_bytes() const { return pages_.groups()[1].shape.page_bytes(); }
  // What a text takes over; its state is that of so many positions.
  uint32_t n_reused(const std::vector<uint32_t>& tokens) {
    const uint32_t slot = begin(99, tokens);
    const uint32_t n = store_[slot].n_done;
    check(n == 0 || state(slot) == static_cast<float>(n), "the state is that of its positions");
    cache_.sequences.discard(slot);
    return n;
  }

 private:
  static constexpr uint32_t kRefused = 77777;

  static uint32_t n_kept(const CacheKind& kind) {
    const auto* const states = std::get_if<StateCache>(&kind);
    return states == nullptr ? 0 : states->n_kept;
  }
  uint32_t n_inputs() const { return kSeen + n_kept_ - 1; }
  static std::vector<GroupShape> groups_with(const CacheKind& kind) {
    std::vector<GroupShape> groups = cache_groups(layers_of({0}), Format::f32);
    groups[0].layers = {groups[0].layers[0]};
    const uint32_t n = n_kept(kind);
    groups.push_back({kind, Format::f32, {{.layer = 1, .n_heads = 1, .n_positions = 1}}});
    LayerShape& shape = groups.back().layers[0];
    shape.key_bytes = std::max(n, 1u) * sizeof(float);
    shape.n_kept_inputs = n == 0 ? 0 : kSeen + n - 1;
    shape.value_bytes = shape.n_kept_inputs * sizeof(uint32_t);
    return groups;
  }
  Binding state_of(uint32_t slot, uint32_t n) {
    Binding at = pages_.layers_of(pages_.groups()[1].shape)[1].keys;
    const uint32_t n_states = std::max(n_kept_, 1u);
    at.offset += (store_[slot].pages[1][0] * n_states + n % n_states) * sizeof(float);
    return at;
  }
  Binding input_of(uint32_t slot, uint32_t position) {
    Binding at = pages_.layers_of(pages_.groups()[1].shape)[1].values;
    at.offset += (store_[slot].pages[1][0] * n_inputs() + position % n_inputs()) * sizeof(uint32_t);
    return at;
  }
  // Whether a row at position n sees the tokens before it.
  bool inputs_are_right(uint32_t slot, uint32_t n) {
    bool right = true;
    for (uint32_t position = n - std::min(n, kSeen); position < n; ++position) {
      uint32_t token = 0;
      device_->read(input_of(slot, position), std::as_writable_bytes(std::span(&token, 1)));
      const std::vector<uint32_t>& tokens = store_[slot].tokens;
      right = right && (position < tokens.size() ? token == tokens[position] : token == kRefused);
    }
    return right;
  }

  const uint32_t n_kept_;
  ArchDescriptor arch_;
  std::shared_ptr<Device> device_;
  KvCache pages_;
  SequenceStore store_;
  SequenceCache cache_;
};

void test_states_rewind_to_checkpoints_only() {
  Pair texts(StateCache{.n_checkpoints = 2}, 12);
  const uint32_t slot = texts.begin(1, tokens_of(900, 900, 0));
  check(texts.cache().sequences.covered(slot) == 1024,
        "a state is enough for any number of positions");
  check(texts.cache().sequences.take_unsent(slot)[1].bytes.size() == sizeof(uint32_t),
        "the device hears of the state that rows change, once");
  for (const uint32_t place : {100u, 400u, 700u}) {
    texts.run(slot, place);
    check(texts.cache().sequences.checkpoint(slot), "there is a page for a checkpoint");
  }
  texts.run(slot, 900);
  check(!texts.cache().sequences.has_unsent(slot), "checkpoints are none of its business");
  check(12 - texts.pool().n_free() == 3, "two checkpoints stay, the last ones");
  texts.cache().sequences.end(slot, kNone);
  check(texts.n_reused(tokens_of(850, 1000, 1)) == 700, "to the checkpoint before the difference");
  check(texts.n_reused(tokens_of(700, 1000, 2)) == 700, "or at it");
  check(texts.n_reused(tokens_of(650, 1000, 3)) == 400, "or to the one before");
  check(texts.n_reused(tokens_of(300, 1000, 4)) == 0, "but to no other place");
  texts.cache().prefixes.shorten(1, 800);
  const uint32_t longer = texts.begin(2, tokens_of(900, 1000, 5));
  check(texts.store()[longer].n_done == 700 && texts.state(longer) == 700,
        "a text that is cut ends at a checkpoint");
  texts.run(longer, 1000);
  texts.cache().sequences.end(longer, kNone);
  check(texts.n_reused(tokens_of(400, 500, 6)) == 400,
        "who goes on from a text has its checkpoints");
}

void test_states_are_copied_from_texts_under_way() {
  Pair texts(StateCache{.n_checkpoints = 1}, 4);
  const uint32_t one = texts.begin(1, tokens_of(600, 600, 0));
  texts.run(one, 500);
  check(texts.cache().sequences.checkpoint(one), "there is a page for a checkpoint");
  texts.run(one, 600);
  const uint32_t two = texts.begin(2, tokens_of(550, 700, 1));
  check(texts.store()[two].n_done == 500 && texts.state(two) == 500, "from its checkpoint");
  texts.run(two, 700);
  check(texts.state(one) == 600 && texts.state(two) == 700, "neither writes to the other");
  // Two states and a checkpoint of four pages.
  texts.begin(3, tokens_of(0, 10, 2));
  texts.begin(4, tokens_of(0, 10, 3));
  check(texts.pool().n_free() == 0, "a checkpoint gives way to a text");
}

void test_the_last_states_are_kept() {
  Pair texts(StateCache{.n_checkpoints = 1, .n_kept = 2}, 12);
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 0);
  const uint32_t slot = texts.begin(1, tokens);
  texts.run(slot, 300);
  check(texts.cache().sequences.checkpoint(slot), "there is a page for a checkpoint");
  check(texts.cache().sequences.most_again() == 1, "one row may be refused");
  check(texts.n_reused(tokens) == 299, "of the same prompt all but the last row");
  check(texts.n_reused(tokens_of(299, 400, 1)) == 299, "and for another text");
  check(texts.n_reused(tokens_of(298, 400, 2)) == 0, "but no more");
  texts.store()[slot].tokens.insert(texts.store()[slot].tokens.end(), {901, 902, 903});
  texts.run(slot, 302, 301);  // the second one is refused
  check(texts.state(slot) == 301, "it goes on from the first");
  texts.run(slot, 303, 303);
  texts.cache().sequences.set_aside(slot);
  check(texts.n_reused(tokens) == 299, "the checkpoint has what came before it");
  check(texts.n_reused(tokens_of(300, 400, 3)) == 300, "as long as the text is there");
}

// Whatever begins, goes on beside others, is refused, set aside, restored or ends: a state is that of the text's positions.
void test_states_at_random(uint32_t seed, uint32_t n_requests) {
  std::mt19937 random(seed);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const StateCache kind{.n_checkpoints = 1 + pick(3), .n_kept = 2};
  Pair texts(kind, 6 + pick(12)), saving(kind, 6);
  const auto generate = [&](uint32_t slot) {
    for (uint32_t step = pick(6); step > 0; --step) {
      const uint32_t done = texts.store()[slot].n_done;
      texts.store()[slot].tokens.resize(done + 1, 900 + step);
      texts.run(slot, done + 1 + pick(2), done + 1);
      check(texts.state(slot) == static_cast<float>(done + 1), "after a draft that was refused");
    }
  };
  const auto end = [&](uint32_t slot) {
    switch (pick(4)) {
      case 0:
        texts.cache().sequences.set_aside(slot);
        break;
      case 1:
        texts.cache().sequences.discard(slot);
        break;
      default:
        texts.cache().sequences.end(slot, kNone);
    }
  };
  std::vector<uint32_t> open;  // texts under way
  uint64_t id = 1;
  for (uint32_t request = 0; request < n_requests; ++request, ++id) {
    if (!open.empty() && pick(3) == 0) {
      generate(open.front());
      end(open.front());
      open.erase(open.begin());
    }
    // Beginnings of a few texts, which part at a few places.
    const uint32_t n = 2 + pick(500);
    std::vector<uint32_t> tokens = tokens_of(pick(5) * 100, 500, pick(3));
    tokens.resize(n);
    if (pick(6) == 0) {  // a session is loaded
      const uint32_t from = saving.begin(id, tokens);
      saving.run(from, 1 + pick(n));
      saving.run(from, n);
      check(texts.cache().copies.restore(id, {}, tokens, saving.saved(from)) <= n,
            "no more than it has");
      saving.cache().sequences.discard(from);
      continue;
    }
    const uint32_t slot = texts.begin(id, tokens);
    const uint32_t n_taken = texts.store()[slot].n_done;
    if (n_taken > 0)
      check(texts.state(slot) == static_cast<float>(n_taken), "a state that was taken over");
    for (uint32_t done = n_taken; done < n;) {
      done = std::min(n, done + 1 + pick(200));
      texts.run(slot, done);
    }
    if (pick(4) > 0) static_cast<void>(texts.cache().sequences.checkpoint(slot));
    generate(slot);
    if (open.size() < 2 && pick(3) == 0)
      open.push_back(slot);  // it goes on beside others
    else
      end(slot);
    if (pick(8) == 0) texts.cache().prefixes.shorten(id, pick(500));
    if (pick(8) == 0) static_cast<void>(texts.cache().prefixes.take_unread());
  }
}

// A state that was saved is that of a text that went on from it, and another one's: from its end, or a row before.
void test_states_come_back() {
  const StateCache kind{.n_checkpoints = 2, .n_kept = 2};
  const std::vector<uint32_t> tokens = tokens_of(700, 700, 0);
  Pair from(kind, 6), texts(kind, 3);
  const uint32_t slot = from.begin(1, tokens);
  for (const uint32_t n : {3u, 300u, 700u}) from.run(slot, n);
  const SavedPositions saved = from.saved(slot);
  check(texts.cache().copies.restore(7, {}, tokens, saved) == 700, "all of it");
  check(texts.n_reused(tokens) == 699, "of the same prompt all but the last row");
  check(texts.n_reused(tokens_of(699, 800, 1)) == 699, "for another text, a row before");
  check(texts.n_reused(tokens_of(650, 800, 2)) == 0, "and no other place");
  const uint32_t longer = texts.begin(2, tokens_of(700, 900, 3));
  check(texts.store()[longer].n_done == 700 && texts.state(longer) == 700, "or behind it");
  texts.run(longer, 900);
  texts.cache().sequences.end(longer, kNone);
  check(texts.cache().copies.restore(8, {}, tokens, saved) == 700, "again");
  // Two texts under way have all three pages with a checkpoint; nobody gives one away.
  const uint32_t one = texts.begin(3, tokens_of(0, 10, 4)),
                 two = texts.begin(4, tokens_of(0, 10, 5));
  texts.run(one, 10);
  texts.run(two, 10);
  const uint32_t three = texts.begin(5, tokens_of(0, 10, 6));
  texts.run(three, 10);
  check(texts.cache().copies.restore(9, {}, tokens, saved) == 0, "where no page is spare, nothing");
  SavedPositions without = saved;
  without.first_entries[1] = 1;
  without.bytes.resize(saved.bytes.size() - texts.state_bytes());
  texts.cache().sequences.discard(one);
  check(texts.cache().copies.restore(9, {}, tokens, without) == 0,
        "keys and values alone are of no use");
  // A page of which a text of two tokens has set less than one before it: the rest is zeros.
  from.cache().sequences.discard(slot);
  const std::vector<uint32_t> few = tokens_of(3, 2, 6);
  const uint32_t brief = from.begin(9, few);
  from.run(brief, 2);
  const SavedPositions of_few = from.saved(brief);
  std::array<float, 2> states{};
  std::array<uint32_t, 4> inputs{};
  const std::byte* const page = of_few.bytes.data() + of_few.bytes.size() - from.state_bytes();
  std::memcpy(states.data(), page, sizeof(states));
  std::memcpy(inputs.data(), page + sizeof(states), sizeof(inputs));
  check(states == std::array{2.0f, 1.0f}, "both states are its own");
  check(inputs == std::array{few[0], few[1], 0u, 0u}, "and it has no inputs of another text");
}

void test_what_an_encoder_wrote_belongs_to_its_text() {
  Pair texts(CrossCache{.n_positions = 1500}, 12);  // six pages
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 0);
  const uint32_t one = texts.begin(1, tokens);
  check(texts.store()[one].pages[1].size() == 6 && texts.cache().sequences.covered(one) == 512,
        "it is there from the beginning, and as long as it is");
  texts.run(one, 300);
  const uint32_t two = texts.begin(2, tokens);
  check(texts.store()[two].n_done == 0, "the same tokens with another input are another text");
  check(!texts.cache().sequences.begin(beginning(3, tokens, 300, kNone)),
        "each needs its own pages");
  texts.cache().sequences.end(one, kNone);
  const uint32_t again = texts.begin(1, tokens);
  check(texts.store()[again].n_done == 299 && texts.pool().n_free() == 0,
        "a text that stepped back goes on with its own");
  texts.cache().sequences.end(again, kNone);
  texts.cache().prefixes.shorten(1, 100);
  check(texts.store()[texts.begin(1, tokens)].n_done == 100, "and can be cut anywhere");
}

void test_texts_of_a_window_share_what_the_encoder_wrote() {
  Pair texts(CrossCache{.n_positions = 1500}, 12);  // two windows of six pages
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 0);
  const auto begin = [&](uint64_t id, uint64_t window) {
    Beginning wanted = beginning(id, tokens, 300, kNone);
    wanted.key.window = window;
    return texts.cache().sequences.begin(wanted);
  };
  const uint32_t one = *begin(1, 7), two = *begin(2, 7), other = *begin(3, 8);
  check(texts.store()[one].pages[1] == texts.store()[two].pages[1], "one window, one encoding");
  check(texts.store()[one].pages[1] != texts.store()[other].pages[1], "another has its own");
  check(texts.cache().windows.is_to_fill(7) && texts.cache().windows.is_to_fill(8), "to be filled");
  texts.cache().windows.filled(7);
  check(!texts.cache().windows.is_to_fill(7) && texts.cache().windows.is_to_fill(8), "once");
  check(!begin(4, 9), "texts under way keep theirs");
  texts.run(one, 300);
  texts.cache().sequences.end(one, kNone);
  check(!begin(4, 9), "all of them");
  texts.cache().sequences.end(two, kNone);
  const uint32_t again = *begin(5, 7);
  check(!texts.cache().windows.is_to_fill(7) && texts.store()[again].n_done == 299,
        "a window stays, and so does what its texts began with");
  texts.cache().sequences.end(again, kNone);
  const uint32_t third = *begin(6, 9);
  check(texts.cache().windows.is_to_fill(9) && texts.store()[third].n_done == 0,
        "until another one needs the room; its texts have nothing of others");
  texts.cache().sequences.end(third, kNone);
  texts.cache().sequences.end(other, kNone);
  texts.cache().windows.forget();
  check(texts.pool().n_free() == 12, "and no page is lost");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_states_rewind_to_checkpoints_only();
  test_states_are_copied_from_texts_under_way();
  test_the_last_states_are_kept();
  test_states_come_back();
  for (uint32_t seed = 0; seed < 20; ++seed) test_states_at_random(seed, 500);
  test_what_an_encoder_wrote_belongs_to_its_text();
  test_texts_of_a_window_share_what_the_encoder_wrote();
  return summary();
}
