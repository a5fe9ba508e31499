#include "cache/scratch.h"

namespace akunu {
namespace {

uint64_t value_bytes(const Value& value, uint32_t max_rows, uint32_t max_head_rows) {
  const uint32_t most = value.per == Extent::head_rows ? max_head_rows : max_rows;
  return value.bytes_per_row * (value.most_rows > 0 ? value.most_rows : most);
}

}  // namespace

Scratch::Scratch(const std::shared_ptr<Device>& device, const Values& values,
                 const std::vector<bool>& used, uint32_t max_rows, uint32_t max_head_rows,
                 const Scratch* other)
    : bindings_(values.size()) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!used[i] || values[i].bytes_per_row == 0) continue;
    const uint64_t bytes = value_bytes(values[i], max_rows, max_head_rows);
    if (other != nullptr) {
      const auto found = other->by_name_.find(values[i].name);
      if (found != other->by_name_.end() && found->second.buffer.size >= bytes) {
        bindings_[i] = found->second;
        continue;
      }
    }
    buffers_.emplace_back(device, bytes, "scratch");
    bindings_[i] = by_name_[values[i].name] = buffers_.back().binding();
  }
}

uint64_t Scratch::bytes(const Values& values, const std::vector<bool>& used, uint32_t max_rows,
                        uint32_t max_head_rows) {
  uint64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (used[i]) sum += value_bytes(values[i], max_rows, max_head_rows);
  return sum;
}

}  // namespace akunu
