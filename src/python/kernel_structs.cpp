#include "kernel_structs.h"

#include <pybind11/numpy.h>

#include <cstddef>
#include <span>
#include <type_traits>

#include "core/kernel_params.h"
#include "core/rows.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

// A field of a struct. PYBIND11_NUMPY_DTYPE would make code of each: 9.1 s to compile, where tables take 5.2.
struct Field {
  const char* name;
  size_t offset;
  py::object (*dtype)();
};

template <class T>
py::object dtype_of();

template <class Struct>
struct Layout;

#define AKUNU_FIELD(Struct, field) \
  Field { #field, offsetof(Struct, field), dtype_of<decltype(Struct::field)> }
#define AKUNU_STRUCT(Struct, ...)                                                             \
  template <>                                                                                 \
  struct Layout<Struct> {                                                                     \
    static constexpr Field kFields[] = {PYBIND11_MAP_LIST(AKUNU_FIELD, Struct, __VA_ARGS__)}; \
  }

AKUNU_STRUCT(Row, sequence, position, kv_length, draw, flags, head_row, span, adapter,
             last_position, second_segment, pool);
AKUNU_STRUCT(Span, sequence, first_row, n_rows);
// written by tools/options.py: sampling
AKUNU_STRUCT(Sampling, temperature, top_k, top_p, min_p, typical_p, top_n_sigma, xtc_probability,
             xtc_threshold, repetition_penalty, frequency_penalty, presence_penalty, penalty_window,
             penalize_prompt, dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n,
             samplers_low, samplers_high, min_tokens, seed_low, seed_high);
// end of sampling
AKUNU_STRUCT(OptionList, first, n);
AKUNU_STRUCT(TranscriptionRules, first_timestamp, end_of_text, last_initial, n_before, banned,
             banned_first);
AKUNU_STRUCT(SequenceRecord, version, choice, sampling, n_stop_ids, biases, dry_breakers, n_prompt,
             n_logprobs, rules, stop_ids);
AKUNU_STRUCT(TokenLogprobs, chosen, tokens, logprobs);
AKUNU_STRUCT(EmbedParams, dim, vocab_size, log_stride, scale, n_rows);
AKUNU_STRUCT(RopeAnglesParams, n_pairs, growth, growth_length, factor);
AKUNU_STRUCT(NormParams, dim, epsilon);
AKUNU_STRUCT(MatmulParams, n, k);
AKUNU_STRUCT(BiasParams, n);
AKUNU_STRUCT(AllReduceParams, n, rank, n_ranks);
AKUNU_STRUCT(HeadNormParams, n_heads, head_dim, epsilon);
AKUNU_STRUCT(RopeParams, n_heads, head_dim, n_pairs, style);
AKUNU_STRUCT(KvWriteParams, n_kv_heads, head_dim, page_table_stride, page_table_base);
AKUNU_STRUCT(AttentionParams, n_heads, n_kv_heads, head_dim, window, scale, soft_cap,
             page_table_stride, page_table_base);
AKUNU_STRUCT(HadamardParams, n, width);
AKUNU_STRUCT(AddParams, n, n_times);
AKUNU_STRUCT(GatedActivationParams, n, activation, up_first, up_stride);
AKUNU_STRUCT(GatherParams, dim);
AKUNU_STRUCT(SoftCapParams, n, cap);
AKUNU_STRUCT(ScaleParams, n, factor);
AKUNU_STRUCT(SampleParams, vocab_size, log_stride);
AKUNU_STRUCT(LogprobsParams, vocab_size, log_stride);
AKUNU_STRUCT(AdvanceParams, log_stride);
AKUNU_STRUCT(AddEmbeddingParams, dim, n_rows, index, offset);
AKUNU_STRUCT(ActivateParams, n, activation, input_first, input_stride);
AKUNU_STRUCT(SpanAttentionParams, n_heads, n_kv_heads, head_dim, window, scale, causal, alibi_first,
             alibi_second);
AKUNU_STRUCT(PoolParams, dim);
AKUNU_STRUCT(UnfoldParams, n_channels, width, stride, padding);
AKUNU_STRUCT(CrossAttentionParams, n_heads, n_kv_heads, head_dim, n_positions, scale,
             page_table_stride, page_table_base);
AKUNU_STRUCT(CrossWeightsParams, n_heads, n_kv_heads, head_dim, n_positions, scale, heads, first,
             n_out, page_table_stride, page_table_base);
AKUNU_STRUCT(TranscriptionRulesParams, vocab_size, log_stride);
AKUNU_STRUCT(MatchRmsParams, dim, out_first, out_stride, least);
AKUNU_STRUCT(SparsifyParams, n, deviations);
AKUNU_STRUCT(StreamsParams, dim, n_streams, active, epsilon);
AKUNU_STRUCT(ShortConvolutionParams, dim, width, page_table_stride, page_table_base);
AKUNU_STRUCT(CausalConvolutionParams, n, width, input_stride, input_first, n_kept,
             page_table_stride, page_table_base);
AKUNU_STRUCT(SelectiveScanParams, n_heads, head_dim, state_dim, n_groups, time_stride, time_first,
             time_min, time_max, page_table_stride, page_table_base, time_factor);
AKUNU_STRUCT(GatedDeltaRuleParams, n_key_heads, n_value_heads, key_dim, value_dim, is_tiled,
             page_table_stride, page_table_base, per_channel);
AKUNU_STRUCT(SplitHeadsParams, n_heads, head_dim);
AKUNU_STRUCT(JoinRowsParams, n_first, n_second, n_third);
AKUNU_STRUCT(GatedNormParams, dim, group, gate_stride, gate_first, epsilon, gate_factor);
AKUNU_STRUCT(LatentWriteParams, rank, n_pairs, style, epsilon, page_table_stride, page_table_base);
AKUNU_STRUCT(LatentQueryParams, n_heads, n_plain, n_pairs, rank, style, head_rows, is_transposed);
AKUNU_STRUCT(LatentAttentionParams, n_heads, n_kv_heads, head_dim, value_dim, scale,
             page_table_stride, page_table_base);
AKUNU_STRUCT(LatentValueParams, n_heads, rank, value_dim, head_rows, first_row);
AKUNU_STRUCT(AdapterParams, width, rank);
AKUNU_STRUCT(AdapterPart, first, rank, scale);
AKUNU_STRUCT(RouteParams, n_experts, n_chosen, scoring, normalised, scale, n_groups,
             n_groups_chosen, group_best);
AKUNU_STRUCT(ExpertMatmulParams, n, k, n_experts, n_chosen, n_inputs);
AKUNU_STRUCT(ExpertActivationParams, n, n_chosen, activation, limit, alpha);
AKUNU_STRUCT(ExpertCombineParams, n, n_chosen);
AKUNU_STRUCT(KvRotateParams, n_kv_heads, head_dim, first_dim, n_pairs, style, page_table_stride,
             page_table_base);
AKUNU_STRUCT(ExpertRoute, expert, weight);
AKUNU_STRUCT(MatmulGroupParams, k, n);
AKUNU_STRUCT(RopeKvWriteParams, n_heads, n_kv_heads, head_dim, n_pairs, style, page_table_stride,
             page_table_base, epsilon);
AKUNU_STRUCT(NormMatmulGroupParams, k, n, epsilon);
AKUNU_STRUCT(NormGatedMatmulParams, k, n, activation, epsilon);
AKUNU_STRUCT(RopeAttentionParams, n_heads, n_kv_heads, head_dim, n_pairs, style, window, scale,
             soft_cap, page_table_stride, page_table_base, epsilon);
AKUNU_STRUCT(GatedMatmulParams, k, n, activation);
AKUNU_STRUCT(MatmulRopeKvWriteParams, k, heads);

py::object struct_dtype(std::span<const Field> fields, size_t size) {
  py::list names, formats, offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    formats.append(field.dtype());
    offsets.append(field.offset);
  }
  return py::dtype(names, formats, offsets, static_cast<py::ssize_t>(size));
}

template <class T>
py::object dtype_of() {
  if constexpr (std::is_array_v<T>)
    return py::dtype::from_args(
        py::make_tuple(dtype_of<std::remove_extent_t<T>>(), std::extent_v<T>));
  else if constexpr (std::is_class_v<T>)
    return struct_dtype(Layout<T>::kFields, sizeof(T));
  else
    return py::dtype::of<T>();
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
