#include "metal/emulator/checks.h"

#include <link.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "metal/emulator/threadgroup.h"

namespace akunu::metal::emulator {
namespace {

// Who else has read a byte since the read that is kept: bits of Access::spread.
constexpr uint64_t kOneLane = 0;
constexpr uint64_t kOneSimdGroup = 1;
constexpr uint64_t kOneThreadgroup = 2;
constexpr uint64_t kMany = 3;

constexpr uint64_t kMomentMask = (uint64_t{1} << 44) - 1;
constexpr size_t kMaxPages = 4096;  // that are kept when a stage ends: 256 MB

std::string text_of(const std::array<uint32_t, 3>& position) {
  std::string text = "(";
  text += std::to_string(position[0]) + ", " + std::to_string(position[1]) + ", ";
  return text + std::to_string(position[2]) + ")";
}

// Parts of the object file that this code belongs to: its constants and function constants.
int collect_program(dl_phdr_info* info, size_t, void* result) {
  const uintptr_t own = reinterpret_cast<uintptr_t>(&collect_program);
  std::vector<std::array<uintptr_t, 2>> parts;
  bool is_ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    parts.push_back({begin, begin + header.p_memsz});
    is_ours = is_ours || (own >= begin && own < begin + header.p_memsz);
  }
  if (!is_ours) return 0;
  *static_cast<std::vector<std::array<uintptr_t, 2>>*>(result) = parts;
  return 1;
}

}  // namespace

void Checks::set_own_memory(std::byte* begin, size_t size) {
  own_begin_ = reinterpret_cast<uintptr_t>(begin);
  own_end_ = own_begin_ + size;
  dl_iterate_phdr(&collect_program, &program_);
}

void Checks::begin_launch(const Launch& launch, const FunctionCode& code, const Bound& bound) {
  launch_ = &launch;
  code_ = &code;
  std::vector<Segment> ranges;
  std::set<uintptr_t> cuts;
  for (uint32_t i = 0; i < code.arguments.size(); ++i) {
    const Argument& argument = code.arguments[i];
    Segment range;
    range.argument = i;
    range.is_writable = !argument.is_read_only;
    range.is_threadgroup = argument.kind == Argument::Kind::threadgroup;
    uint64_t size = 0;
    if (range.is_threadgroup) {
      range.begin = reinterpret_cast<uintptr_t>(bound.threadgroup[argument.index]);
      size = launch.threadgroup_bytes[argument.index];
    } else {
      range.begin = reinterpret_cast<uintptr_t>(bound.buffers[argument.index]);
      const BoundBuffer& buffer = launch.buffers[argument.index];
      size = code.details[i].is_reference ? argument.element_bytes : buffer.size - buffer.offset;
    }
    if (range.begin == 0) continue;  // an argument that the function constants leave out
    range.end = range.begin + size;
    ranges.push_back(range);
    cuts.insert({range.begin, range.end});
  }
  // Where arguments share bytes, one that may write speaks for them.
  segments_.clear();
  found_segments_ = {};
  for (auto cut = cuts.begin(); cut != cuts.end() && std::next(cut) != cuts.end(); ++cut) {
    const Segment* covering = nullptr;
    for (const Segment& range : ranges) {
      if (range.begin > *cut || range.end <= *cut) continue;
      if (covering == nullptr || (range.is_writable && !covering->is_writable)) covering = &range;
    }
    if (covering == nullptr) continue;
    segments_.push_back(*covering);
    segments_.back().begin = *cut;
    segments_.back().end = *std::next(cut);
  }
  std::string name = "kernel " + std::string(code.name);
  if (!launch.label.empty()) name += " (" + std::string(launch.label) + ")";
  launches_.push_back({moment_ + 1, std::move(name)});
}

void Checks::begin_threadgroup(std::array<uint32_t, 3> position) {
  threadgroup_start_ = ++moment_;
  threadgroups_.push_back({threadgroup_start_, position});
  device_order_ = {};
  threadgroup_order_ = {};
}

void Checks::end_stage() {
  stage_start_ = moment_ + 1;
  launches_.clear();
  threadgroups_.clear();
  if (pages_.size() > kMaxPages) {
    pages_.clear();
    found_pages_ = {};
  }
}

void Checks::threadgroup_barrier(bool orders_device, bool orders_threadgroup) {
  ++moment_;
  if (orders_device) device_order_.threadgroup = moment_;
  if (orders_threadgroup) threadgroup_order_.threadgroup = moment_;
}

void Checks::simdgroup_barrier(uint32_t simdgroup, bool orders_device, bool orders_threadgroup) {
  ++moment_;
  if (orders_device) device_order_.simdgroups[simdgroup] = moment_;
  if (orders_threadgroup) threadgroup_order_.simdgroups[simdgroup] = moment_;
}

void Checks::access(uintptr_t address, size_t size, bool is_write, bool is_atomic) {
  if (address >= own_begin_ && address < own_end_) return;
  Access now;
  now.moment = moment_ & kMomentMask;
  now.lane = running->lane() & 0xffff;
  now.is_atomic = is_atomic;
  for (const uintptr_t end = address + size; address < end;) {
    const Segment* segment = find(address);
    if (segment == nullptr) {
      if (is_program(address)) return;
      report_outside(address, end - address, is_write);
      running->stop();
    }
    if (is_write && !segment->is_writable) {
      report_read_only(*segment, address);
      running->stop();
    }
    const uintptr_t page_end = (address / kPageBytes + 1) * kPageBytes;
    const uintptr_t until = std::min({end, segment->end, page_end});
    const bool is_load = !is_write && !segment->is_threadgroup;
    ByteHistory* bytes = history(address);
    while (address < until) {
      // Bytes that were treated alike are looked at once.
      const ByteHistory before = *bytes;
      const uintptr_t first = address;
      if (!check_byte(*segment, address, *bytes, now, is_write)) running->stop();
      const ByteHistory after = *bytes;
      while (++address < until && *++bytes == before) *bytes = after;
      if (is_load && before.read.moment < threadgroup_start_)
        bytes_read_[code_->arguments[segment->argument].index] += address - first;
    }
  }
}

const Checks::Segment* Checks::find(uintptr_t address) {
  const Segment*& found = found_segments_[address / 1024 % found_segments_.size()];
  if (found != nullptr && address >= found->begin && address < found->end) return found;
  auto next = std::upper_bound(
      segments_.begin(), segments_.end(), address,
      [](uintptr_t wanted, const Segment& segment) { return wanted < segment.begin; });
  if (next == segments_.begin() || address >= std::prev(next)->end) return nullptr;
  found = &*std::prev(next);
  return found;
}

ByteHistory* Checks::history(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  FoundPage& found = found_pages_[number % found_pages_.size()];
  if (found.number != number || found.page == nullptr) {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    found = {number, page.get()};
  }
  return &(*found.page)[address % kPageBytes];
}

bool Checks::check_byte(const Segment& segment, uintptr_t address, ByteHistory& history, Access now,
                        bool is_write) {
  const bool is_threadgroup = segment.is_threadgroup;
  if (conflicts(history.write, now, is_threadgroup)) {
    report_race(segment, address, history.write, true, is_write);
    return false;
  }
  if (is_write) {
    if (conflicts(history.read, now, is_threadgroup)) {
      report_race(segment, address, history.read, false, true);
      return false;
    }
    history.write = now;
  } else {
    history.read = merge(history.read, now, is_threadgroup);
  }
  return true;
}

bool Checks::conflicts(Access before, Access now, bool is_threadgroup) const {
  if (before.moment < stage_start_) return false;
  if (before.is_atomic && now.is_atomic) return false;
  if (before.moment < threadgroup_start_) return !is_threadgroup;  // which is new each time
  if (before.spread == kMany) return true;
  if (before.lane == now.lane && before.spread == kOneLane) return false;
  const Order& order = is_threadgroup ? threadgroup_order_ : device_order_;
  if (before.moment < order.threadgroup) return false;
  if (before.lane / 32 == now.lane / 32 && before.spread <= kOneSimdGroup) {
    return before.moment >= order.simdgroups[now.lane / 32];
  }
  return true;
}

// The read that is kept of two: the later one, and who else has read without a barrier since.
Access Checks::merge(Access before, Access now, bool is_threadgroup) const {
  if (before.moment < stage_start_) return now;
  if (before.moment < threadgroup_start_) {
    now.spread = is_threadgroup ? kOneLane : kMany;
  } else if (before.spread == kMany) {
    now.spread = kMany;
  } else {
    const Order& order = is_threadgroup ? threadgroup_order_ : device_order_;
    if (before.moment < order.threadgroup) return now;
    const bool is_near = before.lane / 32 == now.lane / 32;
    if (is_near && before.spread <= kOneSimdGroup &&
        before.moment < order.simdgroups[now.lane / 32]) {
      return now;
    }
    now.spread = before.spread;
    if (before.lane != now.lane) {
      const uint64_t least = is_near ? kOneSimdGroup : kOneThreadgroup;
      if (before.spread < least) now.spread = least & 3;
    }
  }
  now.is_atomic = now.is_atomic && before.is_atomic;
  return now;
}

bool Checks::is_program(uintptr_t address) const {
  for (const auto& [begin, end] : program_) {
    if (address >= begin && address < end) return true;
  }
  return false;
}

void Checks::report_read_only(const Segment& segment, uintptr_t address) {
  running->report("writes " + describe(segment, address) + ", which its signature only reads");
}

void Checks::report_outside(uintptr_t address, size_t size, bool is_write) {
  std::string near = "nothing is bound";
  uint64_t distance = UINT64_MAX;
  for (const Segment& segment : segments_) {
    const bool is_below = address < segment.begin;
    const uint64_t away = is_below ? segment.begin - address : address - segment.end;
    if (away >= distance) continue;
    distance = away;
    const std::string where = is_below ? std::to_string(away) + " bytes below the beginning of "
                                       : std::to_string(away) + " bytes behind the end of ";
    const Argument& argument = code_->arguments[segment.argument];
    near = where + (segment.is_threadgroup ? "threadgroup memory " : "buffer ") +
           std::to_string(argument.index) + " (" + std::string(argument.name) + ")";
    if (!segment.is_threadgroup && !launch_->buffers[argument.index].label.empty()) {
      near += " \"" + std::string(launch_->buffers[argument.index].label) + "\"";
    }
  }
  running->report(std::string(is_write ? "writes " : "reads ") + std::to_string(size) +
                  " bytes outside of all that is bound: " + near);
}

std::string Checks::describe(const Segment& segment, uintptr_t address) const {
  const Argument& argument = code_->arguments[segment.argument];
  if (segment.is_threadgroup) {
    uintptr_t begin = segment.begin;
    for (const Segment& other : segments_) {
      if (other.argument == segment.argument) begin = std::min(begin, other.begin);
    }
    return "byte " + std::to_string(address - begin) + " of threadgroup memory " +
           std::to_string(argument.index) + " (" + std::string(argument.name) + ")";
  }
  const BoundBuffer& buffer = launch_->buffers[argument.index];
  std::string text =
      "byte " + std::to_string(address - reinterpret_cast<uintptr_t>(buffer.contents)) +
      " of buffer " + std::to_string(argument.index) + " (" + std::string(argument.name) + ")";
  if (!buffer.label.empty()) text += " \"" + std::string(buffer.label) + "\"";
  return text;
}

std::string Checks::describe(Access access) const {
  const auto by_moment = [&](uint64_t moment, const auto& record) {
    return moment < record.first_moment;
  };
  const auto group = std::prev(
      std::upper_bound(threadgroups_.begin(), threadgroups_.end(), access.moment, by_moment));
  const auto launch =
      std::prev(std::upper_bound(launches_.begin(), launches_.end(), access.moment, by_moment));
  std::string text = "lane " + std::to_string(access.lane);
  if (access.moment < threadgroup_start_) text += " of threadgroup " + text_of(group->position);
  if (launch->first_moment != launches_.back().first_moment) text += " of " + launch->name;
  if (access.spread != kOneLane) text += " and others";
  return text;
}

void Checks::report_race(const Segment& segment, uintptr_t address, Access before,
                         bool before_writes, bool now_writes) {
  const char* missing = " with no barrier between them";
  if (before.moment < threadgroup_start_ || before.spread == kMany) {
    missing = before.moment < launches_.back().first_moment
                  ? ", and no barrier is between the launches"
                  : " of the same launch, which nothing orders";
  }
  running->report(std::string(now_writes ? "writes " : "reads ") + describe(segment, address) +
                  ", which " + describe(before) + (before_writes ? " wrote" : " read") + missing);
}

}  // namespace akunu::metal::emulator
