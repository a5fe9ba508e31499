#include "inference/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"
#include "files/floats.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr uint64_t kAlignment = 256;
uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// What all adapters have for one weight.
struct Stack {
  std::vector<const AdapterMatrices*> of_adapter;  // null where one leaves the weight as it is
  uint64_t n = 0, k = 0, rank = 0;
  Format format = Format::f32;  // what all matrices are in, else float32, which is the same numbers

  uint64_t number_bytes() const { return row_bytes(format, 1); }
  uint64_t down_bytes() const { return aligned(rank * k * number_bytes()); }
  uint64_t up_bytes() const { return aligned(rank * n * number_bytes()); }
  uint64_t parts_bytes() const { return aligned(of_adapter.size() * sizeof(AdapterPart)); }
};

void check_shape(const AdapterMatrices& matrices, const Weight& weight) {
  const auto refuse = [&](const SourceTensor& tensor, const char* what, uint64_t found,
                          uint64_t wanted) {
    throw ModelFormatError(tensor.label() + " has " + std::to_string(found) + " " + what + "; " +
                           matrices.target + " of this model has " + std::to_string(wanted) +
                           ": the adapter was made for another model");
  };
  if (matrices.down.k() != weight.k) refuse(matrices.down, "columns", matrices.down.k(), weight.k);
  if (matrices.up.rows() != weight.rows)
    refuse(matrices.up, "rows", matrices.up.rows(), weight.rows);
}

std::map<std::string, Stack> stacks_of(std::span<const AdapterSource> sources,
                                       const TensorMap& tensors) {
  std::map<std::string, Stack> stacks;
  for (size_t adapter = 0; adapter < sources.size(); ++adapter)
    for (const AdapterMatrices& matrices : sources[adapter].matrices) {
      const auto weight = tensors.find(matrices.target + ".weight");
      if (weight == tensors.end())
        throw UnsupportedModelError(matrices.up.label() + " adapts " + matrices.target +
                                    ", which this model does not have");
      check_shape(matrices, weight->second);
      Stack& stack = stacks[matrices.target];
      if (stack.of_adapter.empty()) {
        stack.of_adapter.resize(sources.size());
        stack.n = weight->second.rows;
        stack.k = weight->second.k;
        stack.format = matrices.down.format;
      }
      stack.of_adapter[adapter] = &matrices;
      stack.rank += matrices.rank();
      for (const SourceTensor* each : {&matrices.down, &matrices.up})
        if (each->format != stack.format) stack.format = Format::f32;
    }
  return stacks;
}

// Row `row` of `up` as the base model counts them, in the adapter's file.
uint64_t row_in_file(const AdapterMatrices& matrices, uint64_t row) {
  if (!matrices.rows.empty()) return matrices.rows[row];
  if (matrices.head_rows == HeadRows::as_they_are) return row;
  const uint64_t half = matrices.head_dim / 2, first = row / matrices.head_dim * matrices.head_dim,
                 i = row % matrices.head_dim;
  // Rows 2 i and 2 i + 1 of one are i and i + half of the other.
  return first + (matrices.head_rows == HeadRows::interleave ? i % 2 * half + i / 2
                                                             : i % half * 2 + i / half);
}

// Likewise number `i` of `down`, whose rows have k.
uint64_t number_in_file(const AdapterMatrices& matrices, uint64_t i, uint64_t k) {
  return matrices.columns.empty() ? i : i / k * k + matrices.columns[i % k];
}

// Number `i` of a matrix to place `to` of `out`, exactly.
void copy_number(const SourceTensor& from, uint64_t i, Format format, std::byte* out, uint64_t to) {
  const std::span<const std::byte> bytes = from.parts[0].bytes;
  if (format == from.format) {
    const uint64_t size = row_bytes(format, 1);
    std::memcpy(out + to * size, bytes.data() + i * size, size);
    return;
  }
  const float value = float_at(from.format, bytes, i);
  std::memcpy(out + to * sizeof value, &value, sizeof value);
}

std::vector<std::byte> lay_out(const Stack& stack) {
  std::vector<std::byte> bytes(stack.down_bytes() + stack.up_bytes() + stack.parts_bytes());
  std::byte* const up = bytes.data() + stack.down_bytes();
  std::vector<AdapterPart> parts;
  uint64_t first = 0;
  for (const AdapterMatrices* matrices : stack.of_adapter) {
    const uint64_t rank = matrices == nullptr ? 0 : matrices->rank();
    parts.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(rank),
                     matrices == nullptr ? 0 : matrices->scale, 0});
    for (uint64_t i = 0; i < rank * stack.k; ++i)
      copy_number(matrices->down, number_in_file(*matrices, i, stack.k), stack.format, bytes.data(),
                  first * stack.k + i);
    for (uint64_t row = 0; rank > 0 && row < stack.n; ++row) {
      const uint64_t from = row_in_file(*matrices, row) * rank;
      for (uint64_t j = 0; j < rank; ++j)
        copy_number(matrices->up, from + j, stack.format, up, (first + j) * stack.n + row);
    }
    first += rank;
  }
  std::memcpy(up + stack.up_bytes(), parts.data(), parts.size() * sizeof(AdapterPart));
  return bytes;
}

void refuse_damage(std::span<const AdapterSource> sources) {
  for (const AdapterSource& source : sources)
    for (const std::shared_ptr<const MappedFile>& file : source.files)
      if (const std::optional<std::string> damage = file->damage()) throw ModelFormatError(*damage);
}

}  // namespace

Adapters::Adapters(const std::shared_ptr<Device>& device, std::span<const AdapterSource> sources,
                   const TensorMap& tensors) {
  if (sources.size() > kMaxAdapters)
    throw ArgumentError(std::to_string(sources.size()) + " adapters; at most " +
                        std::to_string(kMaxAdapters) + " are possible");
  for (const AdapterSource& source : sources) names_.push_back(source.name);
  const std::map<std::string, Stack> stacks = stacks_of(sources, tensors);
  uint64_t total = 0;
  for (const auto& [name, stack] : stacks)
    total += stack.down_bytes() + stack.up_bytes() + stack.parts_bytes();
  memory_ = OwnedBuffer(device, total, "adapters");
  uint64_t at = 0;
  for (const auto& [name, stack] : stacks) {
    const std::vector<std::byte> bytes = lay_out(stack);
    device->write(memory_.binding(at), bytes);
    const uint64_t up = at + stack.down_bytes(), parts = up + stack.up_bytes();
    targets_[name] = {.down = {{memory_.binding(at)}, stack.format, stack.rank, stack.k},
                      .up = {{memory_.binding(up)}, stack.format, stack.rank, stack.n},
                      .parts = memory_.binding(parts),
                      .rank = static_cast<uint32_t>(stack.rank)};
    at += bytes.size();
  }
  refuse_damage(sources);
}

std::vector<AdapterShare> Adapters::in_order(std::vector<AdapterShare> shares) const {
  for (const AdapterShare& each : shares) {
    if (each.adapter >= names_.size())
      throw ArgumentError("adapter " + std::to_string(each.adapter) + ", counted from 0, of " +
                          std::to_string(names_.size()));
    if (!std::isfinite(each.weight))
      throw ArgumentError("the weight of adapter " + names_[each.adapter] +
                          " is not a finite number");
  }
  std::erase_if(shares, [](const AdapterShare& each) { return each.weight == 0; });
  std::ranges::sort(shares, {}, &AdapterShare::adapter);
  const auto twice = std::ranges::adjacent_find(shares, {}, &AdapterShare::adapter);
  if (twice != shares.end())
    throw ArgumentError("adapter " + names_[twice->adapter] + " is given twice");
  return shares;
}

}  // namespace akunu
