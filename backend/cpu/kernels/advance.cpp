// advance: moves each active chained row on in place, or clears its kRowActive where the picked
// token is one of the record's stop ids, or the row is at its last position
//   0 picked: [rows]   1 tokens: log (unused)   26 rows (written)   25 AdvanceParams
//   slices: one, for all rows   limit: latency
#include "cpu/isa/isa.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct Advance {
  static uint64_t slices(const Call& call) { return call.n_rows == 0 ? 0 : 1; }
  static void run(const Call& call, uint64_t, uint64_t, std::byte*) {
    const uint32_t* picked = reinterpret_cast<const uint32_t*>(call.operands[0]);
    for (uint64_t r = call.first_row; r < uint64_t{call.first_row} + call.n_rows; ++r) {
      Row& row = call.rows[r];
      if (!(row.flags & kRowActive) || !(row.flags & kRowChained)) continue;
      if (stops(call.sequences[row.sequence], picked[r]) || row.position == row.last_position) {
        row.flags &= ~kRowActive;
        continue;
      }
      ++row.position;
      ++row.kv_length;
      ++row.draw;
    }
  }

 private:
  static bool stops(const SequenceRecord& record, uint32_t token) {
    const uint32_t n = record.n_stop_ids < kMaxStopIds ? record.n_stop_ids : kMaxStopIds;
    for (uint32_t i = 0; i < n; ++i)
      if (record.stop_ids[i] == token) return true;
    return false;
  }
};

constexpr KernelEntry kAdvanceEntries[] = {
    {{Operation::advance}, {Advance<ThisIsa>::slices, Advance<ThisIsa>::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::advance() {
  return list_of(kAdvanceEntries);
}

}  // namespace akunu::cpu
