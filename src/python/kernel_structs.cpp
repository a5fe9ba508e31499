#include "kernel_structs.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/numpy.h>

#include "core/kernel_params.h"
#include "core/rows.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// pybind11 takes size, offset and type of each field from the struct, and leaves gaps where none is named.
bool describe_structs() {
  PYBIND11_NUMPY_DTYPE(Row, sequence, position, kv_length, draw, flags, head_row, span, adapter,
                       last_position, second_segment, pool);
  PYBIND11_NUMPY_DTYPE(Span, sequence, first_row, n_rows);
  PYBIND11_NUMPY_DTYPE(Sampling, temperature, top_k, top_p, min_p, typical_p, top_n_sigma,
                       xtc_probability, xtc_threshold, repetition_penalty, frequency_penalty,
                       presence_penalty, penalty_window, penalize_prompt, dry_multiplier, dry_base,
                       dry_allowed_length, dry_penalty_last_n, samplers_low, samplers_high,
                       min_tokens, seed_low, seed_high);
  PYBIND11_NUMPY_DTYPE(OptionList, first, n);
  PYBIND11_NUMPY_DTYPE(TranscriptionRules, first_timestamp, end_of_text, last_initial, n_before,
                       banned, banned_first);
  PYBIND11_NUMPY_DTYPE(SequenceRecord, version, choice, sampling, n_stop_ids, biases, dry_breakers,
                       n_prompt, n_logprobs, rules, stop_ids);
  PYBIND11_NUMPY_DTYPE(TokenLogprobs, chosen, tokens, logprobs);
  PYBIND11_NUMPY_DTYPE(EmbedParams, dim, vocab_size, log_stride, scale, n_rows);
  PYBIND11_NUMPY_DTYPE(RopeAnglesParams, n_pairs, growth, growth_length, factor);
  PYBIND11_NUMPY_DTYPE(NormParams, dim, epsilon);
  PYBIND11_NUMPY_DTYPE(MatmulParams, n, k);
  PYBIND11_NUMPY_DTYPE(BiasParams, n);
  PYBIND11_NUMPY_DTYPE(AllReduceParams, n, rank, n_ranks);
  PYBIND11_NUMPY_DTYPE(HeadNormParams, n_heads, head_dim, epsilon);
  PYBIND11_NUMPY_DTYPE(RopeParams, n_heads, head_dim, n_pairs, style);
  PYBIND11_NUMPY_DTYPE(KvWriteParams, n_kv_heads, head_dim, page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(AttentionParams, n_heads, n_kv_heads, head_dim, window, scale, soft_cap,
                       page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(HadamardParams, n, width);
  PYBIND11_NUMPY_DTYPE(AddParams, n, n_times);
  PYBIND11_NUMPY_DTYPE(GatedActivationParams, n, activation, up_first, up_stride);
  PYBIND11_NUMPY_DTYPE(GatherParams, dim);
  PYBIND11_NUMPY_DTYPE(SoftCapParams, n, cap);
  PYBIND11_NUMPY_DTYPE(ScaleParams, n, factor);
  PYBIND11_NUMPY_DTYPE(SampleParams, vocab_size, log_stride);
  PYBIND11_NUMPY_DTYPE(LogprobsParams, vocab_size, log_stride);
  PYBIND11_NUMPY_DTYPE(AdvanceParams, log_stride);
  PYBIND11_NUMPY_DTYPE(AddEmbeddingParams, dim, n_rows, index, offset);
  PYBIND11_NUMPY_DTYPE(ActivateParams, n, activation, input_first, input_stride);
  PYBIND11_NUMPY_DTYPE(SpanAttentionParams, n_heads, n_kv_heads, head_dim, window, scale, causal,
                       alibi_first, alibi_second);
  PYBIND11_NUMPY_DTYPE(PoolParams, dim);
  PYBIND11_NUMPY_DTYPE(UnfoldParams, n_channels, width, stride, padding);
  PYBIND11_NUMPY_DTYPE(CrossAttentionParams, n_heads, n_kv_heads, head_dim, n_positions, scale,
                       page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(CrossWeightsParams, n_heads, n_kv_heads, head_dim, n_positions, scale, heads,
                       first, n_out, page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(TranscriptionRulesParams, vocab_size, log_stride);
  PYBIND11_NUMPY_DTYPE(MatchRmsParams, dim, out_first, out_stride, least);
  PYBIND11_NUMPY_DTYPE(SparsifyParams, n, deviations);
  PYBIND11_NUMPY_DTYPE(StreamsParams, dim, n_streams, active, epsilon);
  PYBIND11_NUMPY_DTYPE(ShortConvolutionParams, dim, width, page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(CausalConvolutionParams, n, width, input_stride, input_first, n_kept,
                       page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(SelectiveScanParams, n_heads, head_dim, state_dim, n_groups, time_stride,
                       time_first, time_min, time_max, page_table_stride, page_table_base,
                       time_factor);
  PYBIND11_NUMPY_DTYPE(GatedDeltaRuleParams, n_key_heads, n_value_heads, key_dim, value_dim,
                       is_tiled, page_table_stride, page_table_base, per_channel);
  PYBIND11_NUMPY_DTYPE(SplitHeadsParams, n_heads, head_dim);
  PYBIND11_NUMPY_DTYPE(JoinRowsParams, n_first, n_second, n_third);
  PYBIND11_NUMPY_DTYPE(GatedNormParams, dim, group, gate_stride, gate_first, epsilon, gate_factor);
  PYBIND11_NUMPY_DTYPE(LatentWriteParams, rank, n_pairs, style, epsilon, page_table_stride,
                       page_table_base);
  PYBIND11_NUMPY_DTYPE(LatentQueryParams, n_heads, n_plain, n_pairs, rank, style, head_rows,
                       is_transposed);
  PYBIND11_NUMPY_DTYPE(LatentAttentionParams, n_heads, n_kv_heads, head_dim, value_dim, scale,
                       page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(LatentValueParams, n_heads, rank, value_dim, head_rows, first_row);
  PYBIND11_NUMPY_DTYPE(AdapterParams, width, rank);
  PYBIND11_NUMPY_DTYPE(AdapterPart, first, rank, scale);
  PYBIND11_NUMPY_DTYPE(RouteParams, n_experts, n_chosen, scoring, normalised, scale, n_groups,
                       n_groups_chosen, group_best);
  PYBIND11_NUMPY_DTYPE(ExpertMatmulParams, n, k, n_experts, n_chosen, n_inputs);
  PYBIND11_NUMPY_DTYPE(ExpertActivationParams, n, n_chosen, activation, limit, alpha);
  PYBIND11_NUMPY_DTYPE(ExpertCombineParams, n, n_chosen);
  PYBIND11_NUMPY_DTYPE(KvRotateParams, n_kv_heads, head_dim, first_dim, n_pairs, style,
                       page_table_stride, page_table_base);
  PYBIND11_NUMPY_DTYPE(ExpertRoute, expert, weight);
  PYBIND11_NUMPY_DTYPE(MatmulGroupParams, k, n);
  PYBIND11_NUMPY_DTYPE(RopeKvWriteParams, n_heads, n_kv_heads, head_dim, n_pairs, style,
                       page_table_stride, page_table_base, epsilon);
  PYBIND11_NUMPY_DTYPE(NormMatmulGroupParams, k, n, epsilon);
  PYBIND11_NUMPY_DTYPE(NormGatedMatmulParams, k, n, activation, epsilon);
  PYBIND11_NUMPY_DTYPE(RopeAttentionParams, n_heads, n_kv_heads, head_dim, n_pairs, style, window,
                       scale, soft_cap, page_table_stride, page_table_base, epsilon);
  PYBIND11_NUMPY_DTYPE(GatedMatmulParams, k, n, activation);
  PYBIND11_NUMPY_DTYPE(MatmulRopeKvWriteParams, k, heads);
  return true;
}

// At the first use and not when the module is imported, which would import NumPy.
void describe_structs_once() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<bool> described;
  described.call_once_and_store_result(describe_structs);
}

template <class Struct>
py::object dtype_of() {
  describe_structs_once();
  return py::dtype::of<Struct>();
}

}  // namespace

py::object params_dtype(Operation operation) {
  switch (operation) {
    case Operation::embed:
      return dtype_of<EmbedParams>();
    case Operation::rope_angles:
      return dtype_of<RopeAnglesParams>();
    case Operation::rms_norm:
    case Operation::norm_add:
    case Operation::layer_norm:
      return dtype_of<NormParams>();
    case Operation::matmul:
    case Operation::matmul_add:
      return dtype_of<MatmulParams>();
    case Operation::add_bias:
      return dtype_of<BiasParams>();
    case Operation::head_norm:
      return dtype_of<HeadNormParams>();
    case Operation::rope:
      return dtype_of<RopeParams>();
    case Operation::kv_write:
      return dtype_of<KvWriteParams>();
    case Operation::attention:
    case Operation::sink_attention:
      return dtype_of<AttentionParams>();
    case Operation::add:
      return dtype_of<AddParams>();
    case Operation::gated_activation:
      return dtype_of<GatedActivationParams>();
    case Operation::gather_head:
      return dtype_of<GatherParams>();
    case Operation::soft_cap:
      return dtype_of<SoftCapParams>();
    case Operation::scale:
      return dtype_of<ScaleParams>();
    case Operation::sample:
      return dtype_of<SampleParams>();
    case Operation::logprobs:
      return dtype_of<LogprobsParams>();
    case Operation::advance:
      return dtype_of<AdvanceParams>();
    case Operation::add_embedding:
      return dtype_of<AddEmbeddingParams>();
    case Operation::activate:
      return dtype_of<ActivateParams>();
    case Operation::span_attention:
      return dtype_of<SpanAttentionParams>();
    case Operation::pool:
      return dtype_of<PoolParams>();
    case Operation::adapter_down:
    case Operation::adapter_up:
      return dtype_of<AdapterParams>();
    case Operation::unfold:
      return dtype_of<UnfoldParams>();
    case Operation::cross_attention:
      return dtype_of<CrossAttentionParams>();
    case Operation::cross_weights:
      return dtype_of<CrossWeightsParams>();
    case Operation::transcription_rules:
      return dtype_of<TranscriptionRulesParams>();
    case Operation::latent_write:
      return dtype_of<LatentWriteParams>();
    case Operation::latent_query:
      return dtype_of<LatentQueryParams>();
    case Operation::latent_attention:
      return dtype_of<LatentAttentionParams>();
    case Operation::latent_value:
      return dtype_of<LatentValueParams>();
    case Operation::route:
      return dtype_of<RouteParams>();
    case Operation::expert_matmul:
      return dtype_of<ExpertMatmulParams>();
    case Operation::expert_activation:
      return dtype_of<ExpertActivationParams>();
    case Operation::hadamard:
      return dtype_of<HadamardParams>();
    case Operation::expert_combine:
      return dtype_of<ExpertCombineParams>();
    case Operation::kv_rotate:
      return dtype_of<KvRotateParams>();
    case Operation::match_rms:
      return dtype_of<MatchRmsParams>();
    case Operation::sparsify:
      return dtype_of<SparsifyParams>();
    case Operation::predict_streams:
    case Operation::correct_streams:
      return dtype_of<StreamsParams>();
    case Operation::short_convolution:
      return dtype_of<ShortConvolutionParams>();
    case Operation::causal_convolution:
      return dtype_of<CausalConvolutionParams>();
    case Operation::selective_scan:
      return dtype_of<SelectiveScanParams>();
    case Operation::gated_norm:
      return dtype_of<GatedNormParams>();
    case Operation::gated_delta_rule:
      return dtype_of<GatedDeltaRuleParams>();
    case Operation::split_heads:
      return dtype_of<SplitHeadsParams>();
    case Operation::join_rows:
      return dtype_of<JoinRowsParams>();
    case Operation::all_reduce:
    case Operation::all_reduce_add:
      return dtype_of<AllReduceParams>();
    case Operation::matmul_group:
      return dtype_of<MatmulGroupParams>();
    case Operation::rope_kv_write:
    case Operation::norm_rope_kv_write:
      return dtype_of<RopeKvWriteParams>();
    case Operation::norm_matmul_group:
      return dtype_of<NormMatmulGroupParams>();
    case Operation::norm_gated_matmul:
      return dtype_of<NormGatedMatmulParams>();
    case Operation::rope_attention:
      return dtype_of<RopeAttentionParams>();
    case Operation::gated_matmul:
      return dtype_of<GatedMatmulParams>();
    case Operation::matmul_rope_kv_write:
      return dtype_of<MatmulRopeKvWriteParams>();
  }
  return py::none();
}

py::dict step_dtypes() {
  return py::dict(py::arg("row") = dtype_of<Row>(), py::arg("span") = dtype_of<Span>(),
                  py::arg("sequence") = dtype_of<SequenceRecord>(),
                  py::arg("logprobs") = dtype_of<TokenLogprobs>(),
                  py::arg("adapter_part") = dtype_of<AdapterPart>(),
                  py::arg("expert_route") = dtype_of<ExpertRoute>());
}

}  // namespace akunu::python
