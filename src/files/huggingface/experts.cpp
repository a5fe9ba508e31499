#include "files/huggingface/experts.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>

#include "core/error.h"
#include "core/memory_left.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr std::string_view kExperts = ".experts.";

SourceTensor stack_of(const std::string& name, const std::map<uint32_t, SourceTensor>& experts) {
  const SourceTensor& first = experts.begin()->second;
  SourceTensor stack = first;
  stack.name_in_file = printable(name) + " of " + std::to_string(experts.size()) + " experts";
  if (first.n_dims == 1) {  // of biases
    stack.n_dims = 2;
    stack.shape = {1, experts.size(), first.k()};
  } else {
    stack.n_dims = 3;
    stack.shape[0] = experts.size();
  }
  for (size_t p = 0; p < stack.parts.size(); ++p) {
    const size_t each = first.parts[p].bytes.size();
    if (each == 0) continue;
    const auto bytes = std::make_shared<std::vector<std::byte>>();
    bytes->reserve(each * experts.size());
    for (const auto& [number, expert] : experts) {
      if (expert.format != first.format || expert.shape != first.shape ||
          expert.parts[p].bytes.size() != each)
        throw ModelFormatError(expert.label() + " has another shape or number format than " +
                               first.name_in_file);
      bytes->insert(bytes->end(), expert.parts[p].bytes.begin(), expert.parts[p].bytes.end());
    }
    stack.parts[p] = {.bytes = *bytes, .owner = bytes};
  }
  return stack;
}

}  // namespace

std::string with_suffix(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".e_score_correction_bias", ".e_score_correction.bias"},
      {".experts.gate_up_proj", ".experts.gate_up_proj.weight"},
      {".experts.down_proj", ".experts.down_proj.weight"},
      {".experts.gate_up_proj_bias", ".experts.gate_up_proj.bias"},
      {".experts.down_proj_bias", ".experts.down_proj.bias"},
      {".experts.gate_up_proj_blocks", ".experts.gate_up_proj.weight"},
      {".experts.down_proj_blocks", ".experts.down_proj.weight"},
      {".experts.gate_up_proj_scales", ".experts.gate_up_proj.scales"},
      {".experts.down_proj_scales", ".experts.down_proj.scales"},
      {".self_attn.sinks", ".self_attn.sinks.weight"},
      {".layer_scalar", ".layer_scalar.weight"},
      {".altup.correct_output_scale", ".altup.correct_output_scale.weight"},
      {".mamba.A_log", ".mamba.A_log.weight"},
      {".mamba.D", ".mamba.D.weight"},
      {".mamba.dt_bias", ".mamba.dt.bias"},
      {".mixer.A_log", ".mixer.A_log.weight"},
      {".mixer.D", ".mixer.D.weight"},
      {".mixer.dt_bias", ".mixer.dt.bias"},
      {".linear_attn.A_log", ".linear_attn.A_log.weight"},
      {".linear_attn.dt_bias", ".linear_attn.dt.bias"},
      {".self_attn.A_log", ".self_attn.A_log.weight"},
      {".self_attn.dt_bias", ".self_attn.dt.bias"},
      {".router.per_expert_scale", ".router.per_expert_scale.weight"}};
  for (const auto& [ending, whole] : kEndings)
    if (name.ends_with(ending))
      return std::string(name.substr(0, name.size() - ending.size())) + std::string(whole);
  return std::string(name);
}

SourceTensor transposed(const SourceTensor& tensor) {
  SourceTensor result = tensor;
  const auto [n_matrices, n_rows, n_columns] = tensor.shape;
  const std::span<const std::byte> from = tensor.parts[0].bytes;
  const uint64_t size = row_bytes(tensor.format, 1);
  const auto bytes = std::make_shared<std::vector<std::byte>>(from.size());
  for (uint64_t m = 0; m < n_matrices; ++m)
    for (uint64_t row = 0; row < n_rows; ++row)
      for (uint64_t column = 0; column < n_columns; ++column)
        std::ranges::copy(from.subspan(((m * n_rows + row) * n_columns + column) * size, size),
                          bytes->data() + ((m * n_columns + column) * n_rows + row) * size);
  result.shape = {n_matrices, n_columns, n_rows};
  result.parts[0] = {.bytes = *bytes, .owner = bytes};
  return result;
}

bool ExpertStacks::take(std::string_view name, const SourceTensor& tensor) {
  const size_t at = name.find(kExperts);
  if (n_experts_ == 0 || at == std::string_view::npos) return false;
  const char* const digits = name.data() + at + kExperts.size();
  const char* const end = name.data() + name.size();
  uint32_t number = 0;
  const auto [after, error] = std::from_chars(digits, end, number);
  if (error != std::errc{} || after == end || *after != '.') return false;
  if (number >= n_experts_)
    throw ModelFormatError(tensor.label() + " is of an expert that there is none of; there are " +
                           std::to_string(n_experts_));
  const std::string whole = std::string(name.substr(0, at + kExperts.size())) + (after + 1);
  found_[whole].emplace(number, tensor);
  return true;
}

std::vector<std::pair<std::string, SourceTensor>> ExpertStacks::put_together() {
  std::vector<std::pair<std::string, SourceTensor>> stacks;
  for (const auto& [name, experts] : found_) {
    for (uint32_t number = 0; number < n_experts_; ++number)
      if (!experts.contains(number))
        throw ModelFormatError(experts.begin()->second.path + ": tensor " + printable(name) +
                               " of expert " + std::to_string(number) + " is missing");
    try {
      stacks.emplace_back(name, stack_of(name, experts));
    } catch (const std::bad_alloc&) {
      throw OutOfMemoryError(experts.begin()->second.path + ": there is no memory to put experts " +
                             "together");
    }
  }
  found_.clear();
  return stacks;
}

void note_copied_stacks(ModelSource& source) {
  size_t n_stacks = 0;
  uint64_t bytes = 0;
  for (const SourceTensor& tensor : source.tensors) {
    if (tensor.name.find(".ffn.experts.") == std::string::npos) continue;
    uint64_t copied = 0;
    for (const WeightPart& part : tensor.parts)
      if (part.mapping.empty()) copied += part.bytes.size();
    bytes += copied;
    if (copied > 0) ++n_stacks;
  }
  if (n_stacks == 0) return;
  source.config.notes.push_back("the experts' tensors were put together into " +
                                std::to_string(n_stacks) + " and take " + mebibytes(bytes) +
                                "; a GGUF file of the model is read in place");
}

}  // namespace akunu
