// What Python would take long for with vocabularies of 280,000 tokens:
// _core.first_unusable_merge: whether merges are made of tokens (a tenth of a second in Python)
// _core.merges_by_score: the merges that scores of pieces stand for (two seconds)
// _core.merges_by_rank: the merges that the order of words stands for (one second)
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "register.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// A str that its list keeps; characters are read where they are, whatever their width.
struct Text {
  int kind;
  const void* data;
  py::ssize_t length;

  Py_UCS4 operator[](py::ssize_t i) const { return PyUnicode_READ(kind, data, i); }
};

Text text_of(const py::list& list, size_t index) {
  PyObject* const item = PyList_GET_ITEM(list.ptr(), static_cast<py::ssize_t>(index));
  if (!PyUnicode_Check(item)) throw py::type_error("merges and tokens must be str");
  return {static_cast<int>(PyUnicode_KIND(item)), PyUnicode_DATA(item), PyUnicode_GET_LENGTH(item)};
}

// A hash grows by characters, so that of "ab" goes on from that of "a".
uint64_t grown(uint64_t hash, Py_UCS4 character) {
  return (hash ^ character) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

class TokenSet {
 public:
  explicit TokenSet(const py::list& tokens) : slots_(std::bit_ceil(2 * tokens.size() + 1)) {
    tokens_.reserve(tokens.size());
    for (size_t index = 0; index < tokens.size(); ++index) {
      const Text token = tokens_.emplace_back(text_of(tokens, index));
      uint64_t hash = 0;
      for (py::ssize_t i = 0; i < token.length; ++i) hash = grown(hash, token[i]);
      size_t slot = first_slot(hash);
      while (slots_[slot].token != 0) slot = next_slot(slot);
      slots_[slot] = {tag(hash), static_cast<uint32_t>(index + 1)};
    }
  }

  // Whether text[begin, end), without the character at `skipped`, is a token.
  bool contains(uint64_t hash, const Text& text, py::ssize_t begin, py::ssize_t end,
                py::ssize_t skipped) const {
    for (size_t slot = first_slot(hash); slots_[slot].token != 0; slot = next_slot(slot))
      if (slots_[slot].tag == tag(hash) &&
          equal(tokens_[slots_[slot].token - 1], text, begin, end, skipped))
        return true;
    return false;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t token = 0;  // counted from 1; 0: empty
  };

  size_t first_slot(uint64_t hash) const { return (hash >> 32) & (slots_.size() - 1); }
  size_t next_slot(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash); }

  static bool equal(const Text& token, const Text& text, py::ssize_t begin, py::ssize_t end,
                    py::ssize_t skipped) {
    const bool skips = begin <= skipped && skipped < end;
    if (token.length != end - begin - (skips ? 1 : 0)) return false;
    for (py::ssize_t i = begin, at = 0; i < end; ++i)
      if (i != skipped && token[at++] != text[i]) return false;
    return true;
  }

  std::vector<Text> tokens_;
  std::vector<Slot> slots_;  // at least half of them empty
};

bool is_usable(const Text& merge, const TokenSet& tokens) {
  py::ssize_t space = 1;  // the first token may begin with one
  while (space < merge.length && merge[space] != ' ') ++space;
  if (space + 1 >= merge.length) return false;
  uint64_t left = 0, right = 0;
  for (py::ssize_t i = 0; i < space; ++i) left = grown(left, merge[i]);
  uint64_t both = left;
  for (py::ssize_t i = space + 1; i < merge.length; ++i) {
    right = grown(right, merge[i]);
    both = grown(both, merge[i]);
  }
  return tokens.contains(left, merge, 0, space, space) &&
         tokens.contains(right, merge, space + 1, merge.length, space) &&
         tokens.contains(both, merge, 0, merge.length, space);
}

std::optional<size_t> first_unusable_merge(const py::list& merges, const py::list& tokens) {
  const TokenSet known(tokens);
  for (size_t index = 0; index < merges.size(); ++index)
    if (!is_usable(text_of(merges, index), known)) return index;
  return std::nullopt;
}

// A split of a piece into two pieces.
struct Split {
  double cost;  // the piece's score, negated: the best comes first
  uint32_t left, right;
  PyObject* texts[2];  // whoever made the split keeps them

  bool operator<(const Split& other) const {
    return std::tie(cost, left, right) < std::tie(other.cost, other.left, other.right);
  }
};

py::list merges_by_score(const py::dict& ids, const py::array_t<double>& scores) {
  const auto score = scores.unchecked<1>();
  const auto id_of = [&](PyObject* number) {
    const size_t id = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (id >= static_cast<size_t>(score.shape(0))) throw py::index_error("a piece has no score");
    return static_cast<uint32_t>(id);
  };
  std::vector<Split> splits;
  std::vector<py::object> texts;  // keeps those of the splits
  for (const auto& [piece, number] : ids) {
    if (!PyUnicode_Check(piece.ptr())) throw py::type_error("pieces must be str");
    const double cost = -score(id_of(number.ptr()));
    const py::ssize_t length = PyUnicode_GET_LENGTH(piece.ptr());
    for (py::ssize_t cut = 1; cut < length; ++cut) {
      auto left = py::reinterpret_steal<py::object>(PyUnicode_Substring(piece.ptr(), 0, cut));
      PyObject* const left_id = PyDict_GetItemWithError(ids.ptr(), left.ptr());
      if (left_id == nullptr) continue;
      auto right = py::reinterpret_steal<py::object>(PyUnicode_Substring(piece.ptr(), cut, length));
      PyObject* const right_id = PyDict_GetItemWithError(ids.ptr(), right.ptr());
      if (right_id == nullptr) continue;
      splits.push_back({cost, id_of(left_id), id_of(right_id), {left.ptr(), right.ptr()}});
      texts.push_back(std::move(left));
      texts.push_back(std::move(right));
    }
  }
  std::sort(splits.begin(), splits.end());
  py::list merges(splits.size());
  for (size_t i = 0; i < splits.size(); ++i)
    merges[i] = py::make_tuple(py::handle(splits[i].texts[0]), py::handle(splits[i].texts[1]));
  return merges;
}

using Ranks = std::unordered_map<std::string_view, uint32_t>;

// The pieces that a word's bytes are joined to by words of a lower rank, lowest first, until there are
// two or nothing joins.
std::vector<std::string_view> pieces_of(std::string_view word, uint32_t rank, const Ranks& ranks) {
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < word.size(); ++i) pieces.push_back(word.substr(i, 1));
  while (pieces.size() > 2) {
    uint32_t least = rank;
    size_t at = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const std::string_view both(pieces[i].data(), pieces[i].size() + pieces[i + 1].size());
      const auto found = ranks.find(both);
      if (found == ranks.end() || found->second >= least) continue;
      least = found->second;
      at = i;
    }
    if (least == rank) break;
    pieces[at] = {pieces[at].data(), pieces[at].size() + pieces[at + 1].size()};
    pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  return pieces;
}

py::list merges_by_rank(const py::list& words) {
  std::vector<std::string_view> bytes;
  Ranks ranks;
  for (const py::handle word : words) {
    if (!PyBytes_Check(word.ptr())) throw py::type_error("words must be bytes");
    bytes.emplace_back(PyBytes_AS_STRING(word.ptr()),
                       static_cast<size_t>(PyBytes_GET_SIZE(word.ptr())));
    if (!bytes.back().empty()) ranks.emplace(bytes.back(), static_cast<uint32_t>(bytes.size() - 1));
  }
  py::list merges;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::vector<std::string_view> pieces =
        pieces_of(bytes[i], static_cast<uint32_t>(i), ranks);
    if (pieces.size() != 2) continue;
    const auto left = ranks.find(pieces[0]), right = ranks.find(pieces[1]);
    if (left != ranks.end() && right != ranks.end())
      merges.append(py::make_tuple(left->second, right->second));
  }
  return merges;
}

}  // namespace

void register_merges(py::module_& m) {
  m.def(
      "first_unusable_merge",
      [](const py::list& merges, const py::list& tokens) -> py::object {
        const std::optional<size_t> index = first_unusable_merge(merges, tokens);
        return index ? py::object(py::int_(*index)) : py::none();
      },
      py::arg("merges"), py::arg("tokens"),
      "Index of the first merge that is not two tokens, a space between, whose union is a token;\n"
      "None if there is none.");
  m.def("merges_by_score", &merges_by_score, py::arg("ids"), py::arg("scores"),
        "Every split of a piece into two pieces, as (left, right): best score of the piece first,\n"
        "then by the ids of left and right. `ids`: of each piece, by its text.");
  m.def(
      "merges_by_rank", &merges_by_rank, py::arg("words"),
      "The two words that each word was made of, as their indices, in the order of words: what is\n"
      "left of its bytes when words before it are joined, the first one first. Words that are "
      "made\n"
      "of no two words are left out.");
}

}  // namespace akunu::python
