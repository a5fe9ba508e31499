// Rules for names of tensors: each maps a name in a kind of file to the engine's name (files/names.h lists these). A
// rule may also split a tensor by its rows into several.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/common/transform.h"

namespace akunu {

// How many rows of a tensor belong to a piece of it, in the model's numbers.
enum class PieceRows : uint8_t {
  all,        // it is not cut
  query,      // n_heads * head_dim
  key_value,  // n_kv_heads * head_dim
  ffn,        // ffn_dim
  half,       // of each matrix where a tensor may hold several; copies then
  // Of each such matrix; copies.
  every_second,
  third,  // of all rows, also those of several matrices
};

struct Piece {
  std::string_view canonical;  // empty: there is no such piece
  PieceRows rows = PieceRows::all;
};

struct NameRule {
  std::string_view name;        // in the file, without ".weight" or ".bias"
  std::array<Piece, 3> pieces;  // from the first row on
  Transform transform = Transform::none;
  uint32_t max_dims = 2;  // 3 where a tensor holds several matrices; several biases are one vector
  bool joins_columns =
      false;               // of three dimensions, the last two are one: weights of a convolution
  bool is_vector = false;  // its numbers are taken as one vector, row after row
};

// A rule for one tensor under another name.
constexpr NameRule same(std::string_view name, std::string_view canonical,
                        Transform transform = Transform::none) {
  return {name, {{{canonical}}}, transform};
}

// Tensors that may be in a file and that a model computes the same without, each with the reason. They
// are left out with a note; all others without a rule are refused.
struct LeftOut {
  std::string_view pattern;  // of whole names; a '*' stands for any characters
  std::string_view why;      // ends the sentence "tensor x is left out: ..."
};

inline constexpr std::string_view kWhyLayerBehind =
    "it guesses tokens further ahead, and akunu makes one at a time";

// Of several rules for one name, the one holds whose pieces have as many rows as the tensor.
struct NameRules {
  std::string_view layer_prefix;  // "blk.": what stands before a layer's number
  std::span<const NameRule> model;
  std::span<const NameRule> layer;
  std::span<const LeftOut> left_out;
  // What stands before the number of a layer of an encoder in front; its tensors have the same rules.
  std::string_view encoder_prefix = {};
  // A tensor whose name is written without ".weight", as llama.cpp wants it; both are read.
  std::string_view bare = {};
};

// A tensor that holds one matrix for each expert.
constexpr NameRule stack(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3};
}
// A tensor that holds, for each expert, the gate matrix above the up matrix.
constexpr NameRule gate_up_stack(std::string_view name) {
  return {.name = name,
          .pieces = {{{"ffn.experts.gate", PieceRows::half}, {"ffn.experts.up", PieceRows::half}}},
          .max_dims = 3};
}

// A small matrix, such as the weights of a convolution or a number for each head, which kernels read as one vector.
constexpr NameRule numbers(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3, .is_vector = true};
}
// The weights of a depthwise convolution.
constexpr NameRule kernel(std::string_view name) { return numbers(name, "convolution.kernel"); }

// Gemma 3n (AltUp) has four residual streams. Such a tensor holds one matrix for each stream after the first, one above
// the other.
constexpr NameRule of_streams(std::string_view name, std::string_view first,
                              std::string_view second, std::string_view third) {
  return {.name = name,
          .pieces = {{{first, PieceRows::third},
                      {second, PieceRows::third},
                      {third, PieceRows::third}}},
          .max_dims = 3};
}

// Projections of the delta rule that Qwen3-Next stores in one tensor: Q, K, V and z, and b and a. They have these names
// until files/delta_projections.h splits them.
inline constexpr std::string_view kDeltaQkvz = "delta.qkvz";
inline constexpr std::string_view kDeltaBa = "delta.ba";

// Concatenates tables. Of several rules for one name, the first one applies.
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
