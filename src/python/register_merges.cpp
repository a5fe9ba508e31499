// _core.first_unusable_merge: whether merges are made of tokens. A load checks that for as many as
// 280,000 of them, which took Python a tenth of a second and more.
#include <pybind11/pybind11.h>

#include <bit>
#include <cstdint>
#include <optional>
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
}

}  // namespace akunu::python
