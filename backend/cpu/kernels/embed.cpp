// embed: out[r, i] = table[tokens[sequence, position], i] * scale
//   0 tokens: log   1 table: weight [vocab_size, dim]   2 out: rows [rows, dim]   25 EmbedParams
//   slices: one row   limit: memory, and next to nothing of it
// The weight is `element`'s float32, which gguf's dequantisation gives too; the product rounds once.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/formats_mlx.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Format>
struct Embed {
  static void row(const Call& call, const EmbedParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    const uint32_t* log = operand<const uint32_t>(call, 0, row.sequence, params.log_stride);
    const uint32_t token = log[row.position];
    float* out = operand<float>(call, 2, r, params.dim);
    if (token >= params.vocab_size) {
      record_status(call, r, kStatusBadToken, token);
      __builtin_memset(out, 0, uint64_t{4} * params.dim);
      return;
    }
    const auto weights = row_of(call, token, params.dim);
    for (uint32_t i = 0; i < params.dim; ++i) out[i] = Format::element(weights, i) * params.scale;
  }

 private:
  static auto row_of(const Call& call, uint64_t token, uint32_t dim) {
    if constexpr (requires { typename Format::Row; })  // a place in each of several planes
      return Format::row(call.operands[1], call.operands + plane_slot(0, 1), token, dim);
    else
      return call.operands[1] + token * Format::row_bytes(dim);
  }
};

template <template <class> class Format>
constexpr KernelEntry embed_entry() {
  using Rows = RowsKernel<ThisIsa, EmbedParams, Embed<ThisIsa, Format<ThisIsa>>>;
  return {{Operation::embed, kAny, {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Rows::slices, Rows::run, nullptr}};
}

constexpr KernelEntry kEmbedEntries[] = {
    embed_entry<F32>(),  embed_entry<F16>(),     embed_entry<BF16>(),    embed_entry<Q4_0>(),
    embed_entry<Q4_1>(), embed_entry<Q5_0>(),    embed_entry<Q5_1>(),    embed_entry<Q8_0>(),
    embed_entry<Q2_K>(), embed_entry<Q3_K>(),    embed_entry<Q4_K>(),    embed_entry<Q5_K>(),
    embed_entry<Q6_K>(), embed_entry<Mlx4_64>(), embed_entry<Mlx8_64>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::embed() {
  return list_of(kEmbedEntries);
}

}  // namespace akunu::cpu
