// A task that has a sequence, and what it does in the step under way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "inference/cut_pass.h"
#include "inference/draft_model.h"
#include "inference/speculation.h"
#include "inference/task.h"

namespace akunu {

struct Active {
  std::shared_ptr<Task> task;
  uint32_t sequence = 0;
  bool is_known = false;                    // to the device: record and log
  size_t chunk = 0;                         // of the task's chunks, the next
  std::unique_ptr<CutPass> pass = nullptr;  // that its rows wait for; one text's at a time
  // Positions with keys and values, up to the end of an image whose last rows run again for their outputs.
  uint32_t n_with_keys = 0;

  // Of the step under way.
  uint32_t n_rows = 0;       // 0: it has none in it
  bool waits = false;        // its row that chooses is not in it: masks are still to come
  bool lacks_input = false;  // it has no rows: they wait for a pass
  uint32_t first_row = 0;
  uint32_t n_wanted = 0;       // rows that it could use, as the composer shares them out
  bool is_generating = false;  // one row, which moves on by itself, step after step
  bool chooses = false;        // the last row's token is chosen
  bool wants_logits = false;   // of all its rows
  bool scores_prompt = false;  // likewise
  bool is_masked = false;      // its choosing rows have masks
  bool is_forced = false;      // what is drafted is certain to follow
  bool is_late = false;        // the masks were not there in time
  // Tokens that are certain to follow, as far as a constraint tells, or likely to, as the text went on
  // before: rows behind the one that generates, each of which chooses for itself. With the token before
  // them, as the log wants them.
  std::vector<uint32_t> drafted = {};
  std::vector<uint32_t> logged = {};
  std::vector<uint32_t> whole_log = {};  // of a text with images, with the model's token for them
  bool log_lacks_last = false;           // the device's log lacks the token chosen last
  std::unique_ptr<Speculator> speculator = nullptr;  // where the text may be drafted
  std::unique_ptr<DraftText> draft = nullptr;        // where a draft model may do it
  bool uses_head = false;  // the model's prediction head drafts, for which it runs in every step
  uint32_t n_unused = 0;   // of its tokens, in a row, that were not drafted
  std::optional<uint32_t> ahead = {};    // what it says will follow the token chosen last
  bool is_over = false, is_bad = false;  // with the step that was taken last
};

}  // namespace akunu
