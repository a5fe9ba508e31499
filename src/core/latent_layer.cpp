#include "core/latent_layer.h"

#include "core/kernel_params.h"

namespace akunu {

ValueId emit_latent_attention(Emitter& emitter, const LatentLayer& layer) {
  const LatentAttention& is = layer.is;
  const uint32_t style = is.rope.style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved;
  const uint32_t n_pairs = is.rope.dim / 2, n_plain = is.head_dim - is.rope.dim;
  const uint32_t row_dim = is.row_dim();
  const uint32_t stride = layer.page_table_stride, base = layer.page_table_base;
  emitter.emit(Operation::latent_write, layer.label + "latent write",
               {layer.row, emitter.vector(layer.name + "kv_a_norm.weight", is.rank), layer.angles,
                layer.cache},
               LatentWriteParams{is.rank, n_pairs, style, is.norm_epsilon, stride, base, {}});

  // W_k and W_v are in one matrix, the rows of a head in turns; or W_k transposed, and W_v.
  const bool is_one = emitter.find(layer.name + "kv_b.weight") != nullptr;
  const uint32_t head_rows = is_one ? n_plain + is.value_dim : is.value_dim;
  const ValueId w_v = emitter.weight(layer.name + (is_one ? "kv_b.weight" : "v_b.weight"),
                                     uint64_t{is.n_heads} * head_rows, is.rank);
  const ValueId w_k =
      is_one ? w_v
             : emitter.weight(layer.name + "k_b.weight", uint64_t{is.n_heads} * is.rank, n_plain);

  const ValueId absorbed = emitter.rows("latent query", uint64_t{is.n_heads} * row_dim);
  emitter.emit(Operation::latent_query, layer.label + "latent query",
               {layer.query, w_k, layer.angles, absorbed},
               LatentQueryParams{is.n_heads, n_plain, n_pairs, is.rank, style,
                                 is_one ? head_rows : is.rank, is_one ? 0u : 1u, 0});
  const ValueId found = emitter.rows("latent attended", uint64_t{is.n_heads} * is.rank);
  emitter.emit(Operation::latent_attention, layer.label + "latent attention",
               {absorbed, layer.cache, found},
               LatentAttentionParams{is.n_heads, 1, row_dim, is.rank, is.scale, 0, stride, base});
  const uint32_t v_dim = is.attended_dim();
  const ActivationKind kind =
      emitter.kind_for(layer.name + "output.weight", emitter.arch().dim, v_dim);
  const ValueId attended = emitter.activation("attended", kind, v_dim);
  emitter.emit(
      Operation::latent_value, layer.label + "latent value", {found, w_v, attended},
      LatentValueParams{is.n_heads, is.rank, is.value_dim, head_rows, is_one ? n_plain : 0, {}});
  return attended;
}

}  // namespace akunu
