#include "inference/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

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

std::map<std::string, Stack> stacks_of(std::span<const AdapterSlot> slots,
                                       const TensorMap& tensors) {
  std::map<std::string, Stack> stacks;
  for (size_t adapter = 0; adapter < slots.size(); ++adapter) {
    if (slots[adapter].source == nullptr) continue;
    for (const AdapterMatrices& matrices : slots[adapter].source->matrices) {
      const auto weight = tensors.find(matrices.target + ".weight");
      if (weight == tensors.end())
        throw UnsupportedModelError(matrices.up.label() + " adapts " + matrices.target +
                                    ", which this model does not have");
      check_shape(matrices, weight->second);
      Stack& stack = stacks[matrices.target];
      if (stack.of_adapter.empty()) {
        stack.of_adapter.resize(slots.size());
        stack.n = weight->second.rows;
        stack.k = weight->second.k;
        stack.format = matrices.down.format;
      }
      stack.of_adapter[adapter] = &matrices;
      stack.rank += matrices.rank();
      for (const SourceTensor* each : {&matrices.down, &matrices.up})
        if (each->format != stack.format) stack.format = Format::f32;
    }
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

void lay_out(const Stack& stack, std::span<std::byte> bytes) {
  std::byte* const up = bytes.data() + stack.down_bytes();
  std::vector<AdapterPart> parts;
  uint64_t first = 0;
  for (const AdapterMatrices* matrices : stack.of_adapter) {
    const uint64_t rank = matrices == nullptr ? 0 : matrices->rank();
    parts.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(rank),
                     matrices == nullptr ? 0 : matrices->scale, 0});
    const bool is_as_it_is =
        rank > 0 && matrices->columns.empty() && matrices->down.format == stack.format;
    if (is_as_it_is)
      std::memcpy(bytes.data() + first * stack.k * stack.number_bytes(),
                  matrices->down.parts[0].bytes.data(), rank * stack.k * stack.number_bytes());
    for (uint64_t i = 0; !is_as_it_is && i < rank * stack.k; ++i)
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
}

void refuse_damage(std::span<const AdapterSlot> slots) {
  for (const AdapterSlot& slot : slots)
    if (slot.source != nullptr)
      for (const std::shared_ptr<const MappedFile>& file : slot.source->files)
        if (const std::optional<std::string> damage = file->damage())
          throw ModelFormatError(*damage);
}

}  // namespace

std::vector<AdapterSlot> slots_of(std::vector<AdapterSource> sources) {
  std::vector<AdapterSlot> slots;
  for (AdapterSource& source : sources)
    slots.push_back({std::make_shared<const AdapterSource>(std::move(source)), slots.size()});
  return slots;
}

AdapterLayout::AdapterLayout(std::vector<AdapterSlot> of, const TensorMap& tensors)
    : slots(std::move(of)) {
  if (slots.size() > kMaxAdapters)
    throw ArgumentError(std::to_string(slots.size()) + " adapters; at most " +
                        std::to_string(kMaxAdapters) + " are possible");
  for (const auto& [name, stack] : stacks_of(slots, tensors)) {
    const uint64_t at = bytes.size(), up = at + stack.down_bytes(), parts = up + stack.up_bytes();
    bytes.resize(parts + stack.parts_bytes());
    lay_out(stack, std::span(bytes).subspan(at));
    targets[name] = {.down = {{Binding{{}, at}}, stack.format, stack.rank, stack.k},
                     .up = {{Binding{{}, up}}, stack.format, stack.rank, stack.n},
                     .parts = {{}, parts},
                     .rank = static_cast<uint32_t>(stack.rank)};
  }
  refuse_damage(slots);
}

Adapters::Adapters(AdapterLayout layout, const Buffer& buffer)
    : slots_(std::move(layout.slots)), targets_(std::move(layout.targets)) {
  for (const AdapterSlot& slot : slots_) n_loads_ = std::max(n_loads_, slot.load + 1);
  for (auto& [name, target] : targets_)
    for (Binding* const each : {&target.down.planes[0], &target.up.planes[0], &target.parts})
      each->buffer = buffer;
}

AdaptersOnDevice::AdaptersOnDevice(const std::shared_ptr<Device>& device, AdapterLayout layout) {
  if (!layout.bytes.empty()) {
    memory = OwnedBuffer(device, layout.bytes.size(), "adapters");
    device->write(memory.binding(), layout.bytes);
  }
  adapters = std::make_shared<const Adapters>(std::move(layout), memory.get());
}

AdapterLayout Adapters::with(AdapterSource source, const TensorMap& tensors) const {
  if (number_of(source.name))
    throw ArgumentError("the model has an adapter with the name " + printable(source.name) +
                        " already; unload it first");
  std::vector<AdapterSlot> slots = slots_;
  auto free = std::ranges::find(slots, nullptr, &AdapterSlot::source);
  if (free == slots.end()) free = slots.emplace(free);
  *free = {std::make_shared<const AdapterSource>(std::move(source)), n_loads_};
  return {std::move(slots), tensors};
}

AdapterLayout Adapters::without(uint32_t number, const TensorMap& tensors) const {
  if (is_free(number)) throw ArgumentError("adapter " + std::to_string(number) + " is not loaded");
  std::vector<AdapterSlot> slots = slots_;
  slots[number].source = nullptr;
  return {std::move(slots), tensors};
}

std::vector<std::string> Adapters::names() const {
  std::vector<std::string> names;
  for (const AdapterSlot& slot : slots_)
    names.push_back(slot.source == nullptr ? std::string() : slot.source->name);
  return names;
}

std::optional<uint32_t> Adapters::number_of(const std::string& name) const {
  for (uint32_t number = 0; number < slots_.size(); ++number)
    if (!is_free(number) && slots_[number].source->name == name) return number;
  return std::nullopt;
}

std::vector<TextAdapter> Adapters::in_order(std::vector<TextAdapter> adapters) const {
  for (TextAdapter& each : adapters) {
    if (is_free(each.adapter))
      throw ArgumentError("adapter " + std::to_string(each.adapter) + ", counted from 0, of " +
                          std::to_string(slots_.size()) +
                          (each.adapter < slots_.size() ? " was unloaded" : ""));
    if (!std::isfinite(each.weight))
      throw ArgumentError("the weight of adapter " + slots_[each.adapter].source->name +
                          " is not a finite number");
    each.load = slots_[each.adapter].load;
  }
  std::erase_if(adapters, [](const TextAdapter& each) { return each.weight == 0; });
  std::ranges::sort(adapters, {}, &TextAdapter::adapter);
  const auto twice = std::ranges::adjacent_find(adapters, {}, &TextAdapter::adapter);
  if (twice != adapters.end())
    throw ArgumentError("adapter " + slots_[twice->adapter].source->name + " is given twice");
  return adapters;
}

bool Adapters::have(std::span<const TextAdapter> adapters) const {
  return std::ranges::all_of(adapters, [&](const TextAdapter& each) {
    return !is_free(each.adapter) && slots_[each.adapter].load == each.load;
  });
}

}  // namespace akunu
