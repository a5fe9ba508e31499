// The operations: names that mean the same on every backend. docs/kernels.md says for each what it
// computes; the table here says which operands it has, and is what dependencies are derived from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

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
  sample,
  logprobs,
  advance,
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
};
constexpr uint32_t kOperationCount = static_cast<uint32_t>(Operation::matmul_rope_kv_write) + 1;

enum class Access : uint8_t { in, out, inout };

// What lies behind a slot.
enum class OperandKind : uint8_t {
  weight,      // [n, k] in a format, imported on the device
  vector,      // float32 [n]: norm weights, biases, RoPE frequencies
  rows,        // float32 [rows, n]; [head_rows, n] where the command's extent is head_rows
  activation,  // [rows, k] in the device's activation kind; likewise
  head_rows,   // float32 [head_rows, n], whatever the extent
  cache,       // one layer's K or V pool
  log,         // uint32 [sequences, log_stride]
  picked,      // uint32 [rows]
  masks,       // uint32 [head_rows, mask_words(vocab_size)]: bits of tokens that are allowed
  logprobs,    // TokenLogprobs [sequences, kLogprobPlaces]
  options,     // uint32 [sequences, kMaxOptionWords]: lists that records point into
};

struct OperandInfo {
  std::string_view name;
  OperandKind kind;
  Access access;
  bool optional = false;  // the binding may be empty
};

struct OperationInfo {
  std::string_view name;
  std::span<const OperandInfo> operands;  // slot i is operands[i]
  uint32_t params_size;                   // bytes at slot 25
  bool writes_rows = false;               // slot 26 is out: every later command waits for it
};

const OperationInfo& operation_info(Operation operation);
std::optional<Operation> operation_from_name(std::string_view name);

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
  constexpr uint32_t kMore = 3;  // kMaxPlanes of core/format.h, less the first
  return kFirstPlaneSlot + kMore * weight + plane - 1;
}

// Row classes follow the role of a token: prompt rows run `many` (GEMM); generated, drafted and
// forced rows run `single` or `few`, which are one arithmetic, equal bit for bit.
enum class RowClass : uint8_t { single, few, many };
constexpr uint32_t kMaxFewRows = 16;

// How a device wants the input of a matmul. Layouts and roundings: docs/kernels.md.
enum class ActivationKind : uint8_t { f32, f16, bf16, q8_32, bf16_pair, q16_32 };
constexpr uint32_t kActivationKindCount = 6;

// What a command covers: the rows of its pass, or its head rows. How (tiles, threads, shared memory)
// is the pipeline's business.
enum class Extent : uint8_t { rows, head_rows };

}  // namespace akunu
