// Operations, formats, activation kinds and row classes as enums, and the slots of a command: what
// kernels are looked up by, and what every backend shares. What there is to say about each is in
// operation.h and format.h.
//
// No standard containers here: the CPU's kernel files include this once per instruction set, and an
// inline function of the library compiled there with AVX2 could be linked for everybody.
#pragma once

#include <stdint.h>

namespace akunu {

enum class Operation : uint8_t {
  embed,
  rope_angles,
  rms_norm,
  matmul,
  add_bias,
  head_norm,
  rope,
  kv_write,
  attention,
  add,
  gated_activation,
  gather_head,
  soft_cap,
  scale,
  sample,
  logprobs,
  advance,
  add_embedding,
  layer_norm,
  activate,
  span_attention,
  pool,
  adapter_down,
  adapter_up,
  unfold,
  cross_attention,
  cross_weights,
  transcription_rules,
  latent_write,
  latent_query,
  latent_attention,
  latent_value,
  sink_attention,
  route,
  expert_matmul,
  expert_activation,
  expert_combine,
  kv_rotate,
  hadamard,
  short_convolution,
  match_rms,
  sparsify,
  predict_streams,
  correct_streams,
  causal_convolution,
  selective_scan,
  gated_norm,
  gated_delta_rule,
  split_heads,
  join_rows,
  all_reduce,
  // Fused; each equals its nodes in core/fusion_rules.cpp.
  matmul_group,
  matmul_add,
  rope_kv_write,
  norm_rope_kv_write,
  norm_matmul_group,
  norm_gated_matmul,
  rope_attention,
  gated_matmul,
  norm_add,
  matmul_rope_kv_write,
  all_reduce_add,
};
constexpr uint32_t kOperationCount = static_cast<uint32_t>(Operation::all_reduce_add) + 1;

// Whether it adds up what the ranks of a group of devices have.
constexpr bool is_all_reduce(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::all_reduce_add;
}

// Number formats. The numbers are our own and mean nothing outside this process: what a kind of
// file calls a format is the business of its reader in src/files.
enum class Format : uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  mlx_mxfp4,  // MLX's planes of codes (e2m1) and scales (e8m0, one per 32), which GGUF has in one run
  mlx_first,  // MLX's affine groups: a family, see MlxFormat
  mlx_last = mlx_first + 53,
};
constexpr uint32_t kFormatCount = static_cast<uint32_t>(Format::mlx_last) + 1;

// MLX's affine groups: weight = scale * code + bias, for each group of weights of a row. Three planes:
// codes, as a stream of bits from the lowest one on; scales; biases, numbers of the same type.
enum class MlxScale : uint8_t { f16, bf16, f32 };
struct MlxFormat {
  uint32_t bits;   // 2, 3, 4, 5, 6 or 8
  uint32_t group;  // 32, 64 or 128
  MlxScale scale;

  constexpr bool operator==(const MlxFormat&) const = default;
};
constexpr uint32_t kMlxFormatCount = 6 * 3 * 3;

// The number `index` of the family, in the order of bits, then groups, then scales.
constexpr MlxFormat mlx_format_at(uint32_t index) {
  constexpr uint32_t kBits[] = {2, 3, 4, 5, 6, 8};
  return {kBits[index / 9], 32u << index / 3 % 3, static_cast<MlxScale>(index % 3)};
}
constexpr bool is_mlx_affine(Format format) {
  return format >= Format::mlx_first && format <= Format::mlx_last;
}
static_assert(static_cast<uint32_t>(Format::mlx_last) - static_cast<uint32_t>(Format::mlx_first) ==
              kMlxFormatCount - 1);

// A weight lies in one or more planes: runs of bytes of their own, each with the same rows. Most formats
// have one. MLX's have three, codes, scales and biases, each a tensor of its own in the file.
constexpr uint32_t kMaxPlanes = 4;

// Slots of a command: operands first, then what every kernel may read.
constexpr uint32_t kMaxOperands = 23;     // slots 0..22
constexpr uint32_t kFirstPlaneSlot = 14;  // those of an operation come before
constexpr uint32_t kSlotPass = 23;
constexpr uint32_t kSlotWorkspace = 24;
constexpr uint32_t kSlotParams = 25;
constexpr uint32_t kSlotRows = 26;
constexpr uint32_t kSlotPages = 27;
constexpr uint32_t kSlotSequences = 28;
constexpr uint32_t kSlotStatuses = 29;
constexpr uint32_t kSlotSpans = 30;

// Where plane `plane` (from 1 on) of a command's weight number `weight` is bound: a format with several
// planes takes a slot for each beside the operand's own, which has the first. A slot stays empty
// where the weight's format has no such plane.
static constexpr uint32_t plane_slot(uint32_t weight, uint32_t plane) {
  constexpr uint32_t kMore = kMaxPlanes - 1;
  return kFirstPlaneSlot + kMore * weight + plane - 1;
}

// Row classes follow the role of a token: prompt rows run `many` (GEMM); generated, drafted and
// forced rows run `single` or `few`, which are one arithmetic, equal bit for bit.
enum class RowClass : uint8_t { single, few, many };
// Rows of one text that run `few` at a time, and so drafted tokens of a step and the row that they
// follow. Every device has kernels for so many; how many rows of several texts it takes in one pass,
// its chip says (generated_rows_per_pass).
constexpr uint32_t kMaxFewRows = 16;

// How a device wants the input of a matmul. Layouts and roundings: docs/kernels.md.
enum class ActivationKind : uint8_t { f32, f16, bf16, q8_32, bf16_pair, q16_32 };
constexpr uint32_t kActivationKindCount = 6;

}  // namespace akunu
