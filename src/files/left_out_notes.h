// Notes on tensors that are left out of a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

// One note per reason, however many tensors have it.
class LeftOutNotes {
 public:
  void add(std::string_view why, const std::string& name) {
    for (Note& note : notes_)
      if (note.why == why) {
        ++note.n_others;
        return;
      }
    notes_.push_back({why, name, 0});
  }
  void write(std::vector<std::string>& lines) const {
    for (const Note& note : notes_) {
      const std::string others =
          note.n_others > 0 ? " (and " + std::to_string(note.n_others) + " more)" : "";
      lines.push_back("tensor " + note.first + others + " is left out: " + std::string(note.why));
    }
  }

 private:
  struct Note {
    std::string_view why;
    std::string first;
    uint64_t n_others;
  };
  std::vector<Note> notes_;
};

}  // namespace akunu
