// The operations: names that mean the same on every backend. docs/kernels.md says for each what it
// computes; the table here says which operands it has, and is what dependencies are derived from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/kinds.h"

namespace akunu {

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
  parts,       // AdapterPart [adapters]
  routes,      // ExpertRoute [rows, n_chosen]
  exchange,    // memory that the other ranks of a group of devices write to (core/kernel_params.h)
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

// What a command covers: the rows of its pass, or its head rows. How (tiles, threads, shared memory)
// is the pipeline's business.
enum class Extent : uint8_t { rows, head_rows };

}  // namespace akunu
