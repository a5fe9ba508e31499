// What the tables of names (gguf_names.cpp, hf_names.cpp) are made of.
#pragma once

#include "weight/names.h"

namespace akunu {

// Of experts: one matrix for each.
constexpr NameRule stack(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3};
}
// Gate and up of each expert, one above the other.
constexpr NameRule gate_up_stack(std::string_view name) {
  return {.name = name,
          .pieces = {{{"ffn.experts.gate", PieceRows::half}, {"ffn.experts.up", PieceRows::half}}},
          .max_dims = 3};
}

// Matrices of a few rows or columns, which kernels take as vectors.
constexpr NameRule numbers(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3, .is_vector = true};
}
// The weights of a convolution of each number alone.
constexpr NameRule kernel(std::string_view name) { return numbers(name, "convolution.kernel"); }

// A matrix for each stream of the residual but the first.
constexpr NameRule of_streams(std::string_view name, std::string_view first,
                              std::string_view second, std::string_view third) {
  return {.name = name,
          .pieces = {{{first, PieceRows::third},
                      {second, PieceRows::third},
                      {third, PieceRows::third}}},
          .max_dims = 3};
}

// Tables one behind another: the first rule of a name holds.
template <class Rule, size_t... kSizes>
constexpr auto joined(const std::array<Rule, kSizes>&... tables) {
  std::array<Rule, (kSizes + ...)> result{};
  size_t n = 0;
  const auto append = [&](const auto& table) {
    for (const Rule& rule : table) result[n++] = rule;
  };
  (append(tables), ...);
  return result;
}

inline std::span<const Piece> pieces_of(const NameRule& rule) {
  size_t n = 0;
  while (n < rule.pieces.size() && !rule.pieces[n].canonical.empty()) ++n;
  return std::span(rule.pieces).first(n);
}

}  // namespace akunu
