#include "inference/weight_placement.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/kernel_params.h"

namespace akunu {
namespace {

// In the order in which they leave the device.
enum class Kind : uint8_t { table, experts, layer, output };

struct Movable {
  const SourceTensor* tensor = nullptr;
  Kind kind = Kind::layer;
  uint64_t layer = 0;
  uint64_t bytes = 0;
};

constexpr std::string_view kOutput = "output.weight";
constexpr std::string_view kTokens = "token_embedding.weight";

uint64_t bytes_of(const SourceTensor& tensor, uint32_t n_ranks) {
  uint64_t bytes = 0;
  for (const WeightPart& part : tensor.parts) bytes += part.bytes.size();
  return tensor.split == Split::none ? bytes : bytes / n_ranks;
}

std::optional<uint64_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return std::nullopt;
  uint64_t layer = 0;
  std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

Kind kind_of(const SourceTensor& tensor, bool is_tied) {
  if (layer_of(tensor.name))
    return tensor.name.find(".ffn.experts.") != std::string::npos ? Kind::experts : Kind::layer;
  return tensor.name == kOutput || (is_tied && tensor.name == kTokens) ? Kind::output : Kind::table;
}

// "layer 3" or "layers 3 to 7"; they leave from the last one on, so none is missing between.
std::string layers(uint64_t first, uint64_t last) {
  if (first == last) return "layer " + std::to_string(first);
  return "layers " + std::to_string(first) + " to " + std::to_string(last);
}

std::string describe(std::span<const Movable> moved) {
  std::vector<std::string> parts;
  const auto add_layers = [&](Kind kind, const std::string& what) {
    uint64_t first = UINT64_MAX, last = 0;
    for (const Movable& each : moved) {
      if (each.kind != kind) continue;
      first = std::min(first, each.layer);
      last = std::max(last, each.layer);
    }
    if (first <= last) parts.push_back(what + " of " + layers(first, last));
  };
  const auto any = [&](Kind kind) { return std::ranges::count(moved, kind, &Movable::kind) > 0; };
  if (any(Kind::table)) parts.emplace_back("tables of embeddings");
  add_layers(Kind::experts, "the experts");
  add_layers(Kind::layer, "other matrices");
  if (any(Kind::output)) parts.emplace_back("the output matrix");
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace

WeightPlacement place_weights(std::span<const SourceTensor> tensors, uint64_t room,
                              uint32_t n_ranks) {
  WeightPlacement placement;
  const bool is_tied = std::ranges::find(tensors, kOutput, &SourceTensor::name) == tensors.end();
  std::vector<Movable> movable;
  for (const SourceTensor& tensor : tensors) {
    const uint64_t bytes = bytes_of(tensor, n_ranks);
    placement.device_bytes += bytes;
    if (tensor.n_dims < 2) continue;
    movable.push_back(
        {&tensor, kind_of(tensor, is_tied), layer_of(tensor.name).value_or(0), bytes});
  }
  std::ranges::stable_sort(movable, [](const Movable& a, const Movable& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.layer > b.layer;
  });
  size_t n = 0;
  for (; n < movable.size() && placement.device_bytes + placement.staged_bytes > room; ++n) {
    const Movable& each = movable[n];
    placement.in_host_memory.insert(each.tensor->name);
    placement.device_bytes -= each.bytes;
    placement.host_bytes += each.bytes;
    if (each.kind != Kind::table)  // a command reads up to a group of matrices
      placement.staged_bytes = std::max(placement.staged_bytes, kMaxGroup * each.bytes);
  }
  placement.what = describe(std::span(movable).first(n));
  return placement;
}

}  // namespace akunu
