// The kernels that are no matmul and no attention: element-wise ones, norms, RoPE, and those at the
// beginning and the end of a step. Each is in the file of its name in kernels/: embed.metal, elementwise.metal,
// norm.metal, encoder.metal, experts.metal, adapter.metal, rope.metal, sample.metal, speech.metal, latent.metal, convolution.metal, scan.metal, delta_rule.metal, streams.metal, logprobs.metal and
// advance.metal.
#include <algorithm>
#include <bit>
#include <string>

#include "metal/kernel_table.h"

namespace akunu::metal {
namespace {

constexpr uint32_t kThreads = 256;       // where a thread takes a number
constexpr uint32_t kHeadSimdgroups = 4;  // where a SIMD-group takes a head
constexpr uint32_t kMaxNormThreads = 512;
constexpr uint32_t kMaxSampleThreads = 512;
constexpr uint32_t kSampleGroups = 64;   // rows that are chosen for at a time
constexpr uint32_t kSampleWords = 4096;  // candidates, or counts of a penalty window

using Columns = std::function<uint32_t(const Scope&)>;

Kernel one_launch(std::string function, std::function<Grid(const Scope&)> grid) {
  Kernel kernel;
  kernel.launches.push_back(
      {.function = std::move(function), .constants = {}, .grid = std::move(grid)});
  return kernel;
}

// A thread per number: `columns` of each row.
Kernel per_number(std::string function, Columns columns) {
  return one_launch(std::move(function), [columns = std::move(columns)](const Scope& scope) {
    const uint32_t n = columns(scope);
    const uint32_t threads = std::min(kThreads, round_up(std::max(n, 1u), kSimdWidth));
    return Grid{.threadgroups = {divide_up(n, threads), scope.n_rows, 1},
                .threads = {threads, 1, 1}};
  });
}

// A SIMD-group per head: `heads` of each row.
Kernel per_head(std::string function, Columns heads) {
  return one_launch(std::move(function), [heads = std::move(heads)](const Scope& scope) {
    return Grid{.threadgroups = {divide_up(heads(scope), kHeadSimdgroups), scope.n_rows, 1},
                .threads = {kSimdWidth * kHeadSimdgroups, 1, 1}};
  });
}

uint32_t row_length(const MatchRmsParams& params) { return params.dim; }
uint32_t row_length(const SparsifyParams& params) { return params.n; }
uint32_t row_length(const StreamsParams& params) { return params.dim; }

// A threadgroup per row.
Grid norm_grid(const Scope& scope) {
  const uint32_t threads = std::clamp(
      round_up(divide_up(scope.get<NormParams>().dim, 4), kSimdWidth), kSimdWidth, kMaxNormThreads);
  return {.threadgroups = {scope.n_rows, 1, 1},
          .threads = {threads, 1, 1},
          .threadgroup_bytes = {round_up(4 * (threads / kSimdWidth), 16)}};
}

// Likewise.
template <class Params>
Grid streams_grid(const Scope& scope) {
  const uint32_t threads =
      std::clamp(round_up(divide_up(row_length(scope.get<Params>()), 4), kSimdWidth), kSimdWidth,
                 kMaxNormThreads);
  return {.threadgroups = {scope.n_rows, 1, 1},
          .threads = {threads, 1, 1},
          .threadgroup_bytes = {round_up(4 * (threads / kSimdWidth), 16)}};
}

// A threadgroup per group of numbers of a row.
Grid gated_norm_grid(const Scope& scope) {
  const auto& params = scope.get<GatedNormParams>();
  const uint32_t threads =
      std::clamp(round_up(divide_up(params.group, 4), kSimdWidth), kSimdWidth, kMaxNormThreads);
  return {.threadgroups = {params.dim / std::max(params.group, 1u), scope.n_rows, 1},
          .threads = {threads, 1, 1},
          .threadgroup_bytes = {round_up(4 * (threads / kSimdWidth), 16)}};
}

// A threadgroup per row, or for some of the rows where there are many: each has a copy of logits.
Grid sample_grid(const Scope& scope) {
  const uint32_t threads = std::clamp(round_up(scope.get<SampleParams>().vocab_size, kSimdWidth),
                                      kSimdWidth, kMaxSampleThreads);
  return {.threadgroups = {std::min(scope.n_rows, kSampleGroups), 1, 1},
          .threads = {threads, 1, 1},
          .threadgroup_bytes = {4 * kSampleWords, round_up(8 * (threads / kSimdWidth), 16)}};
}

uint64_t sample_workspace(const std::byte* params, uint32_t max_rows) {
  const auto& sample = *reinterpret_cast<const SampleParams*>(params);
  return uint64_t{std::min(max_rows, kSampleGroups)} * sample.vocab_size * sizeof(float);
}

// A threadgroup per row.
template <class Params>
Grid vocabulary_grid(const Scope& scope) {
  const uint32_t threads = std::clamp(round_up(scope.get<Params>().vocab_size, kSimdWidth),
                                      kSimdWidth, kMaxSampleThreads);
  return {.threadgroups = {scope.n_rows, 1, 1},
          .threads = {threads, 1, 1},
          .threadgroup_bytes = {round_up(8 * (threads / kSimdWidth), 16)}};
}

// A thread per row.
Grid advance_grid(const Scope& scope) {
  return {.threadgroups = {divide_up(scope.n_rows, kSimdWidth), 1, 1}};
}

std::string of_cache(const char* family, Format cache) {
  return std::string(family) + "_" + std::string(format_info(cache).name);
}
// The name of a function that exists for caches in half and in float.
std::optional<std::string> with_cache(const char* family, Format cache) {
  if (cache != Format::f16 && cache != Format::f32) return std::nullopt;
  return of_cache(family, cache);
}
// Of one that exists for caches in blocks as well.
std::optional<std::string> with_any_cache(const char* family, Format cache) {
  if (!is_cache_format(cache)) return std::nullopt;
  return of_cache(family, cache);
}

// Likewise for a weight in floats.
std::optional<std::string> with_floats(const char* family, std::optional<Format> weight) {
  if (weight != Format::f32 && weight != Format::f16 && weight != Format::bf16) return std::nullopt;
  return std::string(family) + "_" + std::string(format_info(*weight).name);
}

Kernel embed_kernel(Format table) {
  Kernel kernel = per_number(function_of("embed", table), [](const Scope& s) {
    return divide_up(s.get<EmbedParams>().dim, 16);
  });
  kernel.launches.front().constants = constants_of(table);
  return kernel;
}

}  // namespace

std::optional<Kernel> find_row_kernel(const KernelRequest& request) {
  switch (request.operation) {
    case Operation::embed:
      if (!request.weights[0]) return std::nullopt;
      return embed_kernel(*request.weights[0]);
    case Operation::rope_angles:
      return per_number("rope_angles",
                        [](const Scope& s) { return s.get<RopeAnglesParams>().n_pairs; });
    case Operation::rms_norm:
      return one_launch("rms_norm", norm_grid);
    case Operation::norm_add:
      return one_launch("norm_add", norm_grid);
    case Operation::add_bias:
      return per_number("add_bias", [](const Scope& s) { return s.get<BiasParams>().n; });
    case Operation::head_norm:
      return per_head("head_norm", [](const Scope& s) { return s.get<HeadNormParams>().n_heads; });
    case Operation::rope:
      return per_head("rope", [](const Scope& s) { return s.get<RopeParams>().n_heads; });
    case Operation::kv_write: {
      const auto function = with_any_cache("kv_write", request.cache);
      if (!function) return std::nullopt;
      return per_number(*function, [](const Scope& s) {
        return s.get<KvWriteParams>().n_kv_heads * s.get<KvWriteParams>().head_dim;
      });
    }
    case Operation::kv_rotate: {
      if (request.cache == Format::q4_0) return std::nullopt;  // what no keys are kept in
      const auto function = with_any_cache("kv_rotate", request.cache);
      if (!function) return std::nullopt;
      return per_head(*function, [](const Scope& s) { return s.get<KvRotateParams>().n_kv_heads; });
    }
    case Operation::rope_kv_write:
    case Operation::norm_rope_kv_write: {
      // One function: the norms are there where their slots are bound.
      const auto function = with_any_cache("rope_kv_write", request.cache);
      if (!function) return std::nullopt;
      return per_head(*function, [](const Scope& s) {
        return s.get<RopeKvWriteParams>().n_heads + s.get<RopeKvWriteParams>().n_kv_heads;
      });
    }
    case Operation::add:
      return per_number("add", [](const Scope& s) {
        return s.get<AddParams>().n * std::max(s.get<AddParams>().n_times, 1u);
      });
    case Operation::gated_activation:
      return per_number("gated_activation",
                        [](const Scope& s) { return s.get<GatedActivationParams>().n; });
    case Operation::gather_head:
      return per_number("gather_head", [](const Scope& s) { return s.get<GatherParams>().dim; });
    case Operation::soft_cap:
      return per_number("soft_cap", [](const Scope& s) { return s.get<SoftCapParams>().n; });
    case Operation::scale:
      return per_number("scale", [](const Scope& s) { return s.get<ScaleParams>().n; });
    case Operation::add_embedding: {
      const auto function = with_floats("add_embedding", request.weights[0]);
      if (!function) return std::nullopt;
      return per_number(
          *function, [](const Scope& s) { return divide_up(s.get<AddEmbeddingParams>().dim, 16); });
    }
    case Operation::adapter_down: {
      const auto function = with_floats("adapter_down", request.weights[0]);
      if (!function) return std::nullopt;
      return one_launch(*function, [](const Scope& s) {
        return Grid{.threadgroups = {s.get<AdapterParams>().rank, s.n_rows, 1}};
      });
    }
    case Operation::adapter_up: {
      const auto function = with_floats("adapter_up", request.weights[0]);
      if (!function) return std::nullopt;
      return per_number(*function, [](const Scope& s) { return s.get<AdapterParams>().width; });
    }
    case Operation::layer_norm:
      return one_launch("layer_norm", norm_grid);
    case Operation::activate:
      return per_number("activate", [](const Scope& s) { return s.get<ActivateParams>().n; });
    case Operation::span_attention:
      return one_launch("span_attention", [](const Scope& s) {
        return Grid{.threadgroups = {s.get<SpanAttentionParams>().n_heads, s.n_rows, 1}};
      });
    case Operation::pool:
      return per_number("pool", [](const Scope& s) { return s.get<PoolParams>().dim; });
    case Operation::unfold:
      return per_number("unfold", [](const Scope& s) {
        return s.get<UnfoldParams>().n_channels * s.get<UnfoldParams>().width;
      });
    case Operation::cross_attention: {
      const auto function = with_cache("cross_attention", request.cache);
      if (!function) return std::nullopt;
      return one_launch(*function, [](const Scope& s) {
        return Grid{.threadgroups = {s.get<CrossAttentionParams>().n_heads, s.n_rows, 1}};
      });
    }
    case Operation::cross_weights: {
      const auto function = with_cache("cross_weights", request.cache);
      if (!function) return std::nullopt;
      return one_launch(*function, [](const Scope& s) {
        const auto n_heads =
            static_cast<uint32_t>(std::popcount(s.get<CrossWeightsParams>().heads));
        return Grid{.threadgroups = {n_heads, s.n_rows, 1}};
      });
    }
    case Operation::latent_write: {
      const auto function = with_cache("latent_write", request.cache);
      if (!function) return std::nullopt;
      return one_launch(*function,
                        [](const Scope& s) { return Grid{.threadgroups = {1, s.n_rows, 1}}; });
    }
    case Operation::latent_query: {
      const auto function = with_floats("latent_query", request.weights[0]);
      if (!function) return std::nullopt;
      return per_number(*function, [](const Scope& s) {
        const auto& params = s.get<LatentQueryParams>();
        return params.n_heads * (params.rank + 2 * params.n_pairs);
      });
    }
    case Operation::latent_attention: {
      const auto function = with_cache("latent_attention", request.cache);
      if (!function) return std::nullopt;
      return one_launch(*function, [](const Scope& s) {
        return Grid{.threadgroups = {s.get<LatentAttentionParams>().n_heads, s.n_rows, 1}};
      });
    }
    case Operation::latent_value: {
      const auto function = with_floats("latent_value", request.weights[0]);
      if (!function) return std::nullopt;
      return per_head(*function, [](const Scope& s) {
        return s.get<LatentValueParams>().n_heads * s.get<LatentValueParams>().value_dim;
      });
    }
    case Operation::route:
      return one_launch("route", [](const Scope& s) {
        return Grid{.threadgroups = {s.n_rows, 1, 1},
                    .threadgroup_bytes = {round_up(4 * s.get<RouteParams>().n_experts, 16)}};
      });
    case Operation::expert_activation:
      return per_number("expert_activation", [](const Scope& s) {
        return s.get<ExpertActivationParams>().n * s.get<ExpertActivationParams>().n_chosen;
      });
    case Operation::hadamard:
      return per_head("hadamard", [](const Scope& s) {
        return s.get<HadamardParams>().n / s.get<HadamardParams>().width;
      });
    case Operation::expert_combine:
      return per_number("expert_combine",
                        [](const Scope& s) { return s.get<ExpertCombineParams>().n; });
    case Operation::short_convolution:
      if (request.cache != Format::f32) return std::nullopt;
      return per_number("short_convolution",
                        [](const Scope& s) { return s.get<ShortConvolutionParams>().dim; });
    case Operation::match_rms:
      return one_launch("match_rms", streams_grid<MatchRmsParams>);
    case Operation::sparsify:
      return one_launch("sparsify", streams_grid<SparsifyParams>);
    case Operation::predict_streams:
      return one_launch("predict_streams", streams_grid<StreamsParams>);
    case Operation::correct_streams:
      return one_launch("correct_streams", streams_grid<StreamsParams>);
    case Operation::causal_convolution:
      if (request.cache != Format::f32) return std::nullopt;
      return per_number("causal_convolution",
                        [](const Scope& s) { return s.get<CausalConvolutionParams>().n; });
    case Operation::selective_scan:
      if (request.cache != Format::f32) return std::nullopt;
      return one_launch("selective_scan", [](const Scope& s) {
        const auto& params = s.get<SelectiveScanParams>();
        return Grid{.threadgroups = {divide_up(params.n_heads * params.head_dim, kHeadSimdgroups),
                                     s.n_spans, 1},
                    .threads = {kSimdWidth * kHeadSimdgroups, 1, 1}};
      });
    case Operation::gated_delta_rule:
      if (request.cache != Format::f32) return std::nullopt;
      return one_launch("gated_delta_rule", [](const Scope& s) {
        const auto& params = s.get<GatedDeltaRuleParams>();
        return Grid{
            .threadgroups = {divide_up(params.n_value_heads * params.value_dim, kHeadSimdgroups),
                             s.n_spans, 1},
            .threads = {kSimdWidth * kHeadSimdgroups, 1, 1}};
      });
    case Operation::split_heads:
      return per_number("split_heads", [](const Scope& s) {
        return s.get<SplitHeadsParams>().n_heads * s.get<SplitHeadsParams>().head_dim;
      });
    case Operation::join_rows:
      return per_number("join_rows", [](const Scope& s) {
        const auto& params = s.get<JoinRowsParams>();
        return params.n_first + params.n_second + params.n_third;
      });
    case Operation::gated_norm:
      return one_launch("gated_norm", gated_norm_grid);
    case Operation::transcription_rules:
      return one_launch("transcription_rules", vocabulary_grid<TranscriptionRulesParams>);
    case Operation::sample: {
      Kernel kernel = one_launch("sample", sample_grid);
      kernel.workspace_bytes = sample_workspace;
      return kernel;
    }
    case Operation::logprobs:
      return one_launch("logprobs", vocabulary_grid<LogprobsParams>);
    case Operation::advance:
      return one_launch("advance", advance_grid);
    default:
      return std::nullopt;
  }
}

}  // namespace akunu::metal
