// embed: out[r, i] = table[tokens[sequence, position], i] * scale
//   0 tokens: log   1 table: weight [vocab_size, dim]   2 out: rows [rows, dim]   25 EmbedParams
//   3 vectors, may be absent: rows [rows, dim], which rows with kRowVectorInput get instead, as they are
//   slices: one row   limit: memory, and next to nothing of it
// The weight is `element`'s float32, which gguf's dequantisation gives too; the product rounds once.
#include <utility>

#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_grid.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/formats_mlx.h"
#include "cpu/kernels/formats_table.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Format>
struct Embed {
  static void row(const Call& call, const EmbedParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    if ((row.flags & kRowVectorInput) != 0 && call.operands[3] != nullptr) {
      __builtin_memcpy(operand<float>(call, 2, r, params.dim),
                       operand<const float>(call, 3, r, params.dim), uint64_t{4} * params.dim);
      return;
    }
    const uint32_t* log = operand<const uint32_t>(call, 0, row.sequence, params.log_stride);
    const uint32_t token = log[row.position];
    float* out = operand<float>(call, 2, r, params.dim);
    if (token >= params.vocab_size) {
      record_status(call, r, kStatusBadToken, token);
      __builtin_memset(out, 0, uint64_t{4} * params.dim);
      return;
    }
    const uint32_t n_rows = params.n_rows != 0 ? params.n_rows : params.vocab_size;
    const auto weights = row_of(call, token < n_rows ? token : 0, params.dim);
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

template <class Format>
constexpr KernelEntry embed_entry() {
  using Rows = RowsKernel<ThisIsa, EmbedParams, Embed<ThisIsa, Format>>;
  return {{Operation::embed, kAny, {Format::kFormat, kAbsent, kAbsent}},
          {Rows::slices, Rows::run, nullptr}};
}

constexpr KernelEntry kEmbedEntries[] = {
    embed_entry<F32<ThisIsa>>(),    embed_entry<F16<ThisIsa>>(),    embed_entry<BF16<ThisIsa>>(),
    embed_entry<Q4_0<ThisIsa>>(),   embed_entry<Q4_1<ThisIsa>>(),   embed_entry<Q5_0<ThisIsa>>(),
    embed_entry<Q5_1<ThisIsa>>(),   embed_entry<Q8_0<ThisIsa>>(),   embed_entry<Q2_K<ThisIsa>>(),
    embed_entry<Q3_K<ThisIsa>>(),   embed_entry<Q4_K<ThisIsa>>(),   embed_entry<Q5_K<ThisIsa>>(),
    embed_entry<Q6_K<ThisIsa>>(),   embed_entry<IQ4_NL<ThisIsa>>(), embed_entry<IQ4_XS<ThisIsa>>(),
    embed_entry<MXFP4<ThisIsa>>(),  embed_entry<NVFP4<ThisIsa>>(),  embed_entry<IQ2_XXS<ThisIsa>>(),
    embed_entry<IQ2_XS<ThisIsa>>(), embed_entry<IQ2_S<ThisIsa>>(),  embed_entry<IQ3_XXS<ThisIsa>>(),
    embed_entry<IQ3_S<ThisIsa>>(),
};

// MLX's, in the order of their numbers.
template <class Indices>
struct MlxEmbedEntries;
template <size_t... kIndices>
struct MlxEmbedEntries<std::index_sequence<kIndices...>> {
  static constexpr KernelEntry kAll[] = {embed_entry<MlxMxfp4<ThisIsa>>(),
                                         embed_entry<MlxAffine<ThisIsa, kIndices>>()...};
};

}  // namespace

template <>
KernelList Families<ThisIsa>::embed() {
  return list_of(kEmbedEntries);
}
template <>
KernelList Families<ThisIsa>::embed_mlx() {
  return list_of(MlxEmbedEntries<std::make_index_sequence<kMlxFormatCount>>::kAll);
}

}  // namespace akunu::cpu
