// advance: moves chained rows on in place, or clears their kRowActive; a thread per row.
#include "metal/kernels/common.h"

inline bool stops(device const SequenceRecord& record, uint token) {
  const uint n = min(record.n_stop_ids, uint(kMaxStopIds));
  for (uint i = 0; i < n; ++i)
    if (record.stop_ids[i] == token) return true;
  return false;
}

[[kernel]] void advance(device const uint* picked [[buffer(0)]],
                        constant PassRange& pass [[buffer(23)]], device Row* rows [[buffer(26)]],
                        device const SequenceRecord* sequences [[buffer(28)]],
                        uint3 position [[thread_position_in_grid]]) {
  if (position.x >= pass.n_rows) return;
  const uint index = pass.first_row + position.x;
  device Row& row = rows[index];
  if ((row.flags & kRowActive) == 0 || (row.flags & kRowChained) == 0) return;
  if (stops(sequences[row.sequence], picked[index]) || row.position == row.last_position) {
    row.flags &= ~kRowActive;
    return;
  }
  row.position += 1;
  row.kv_length += 1;
  row.draw += 1;
}
