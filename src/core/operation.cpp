#include "core/operation.h"

#include <array>

#include "core/format.h"
#include "core/kernel_params.h"

namespace akunu {
namespace {

using enum OperandKind;
using enum Access;

template <size_t N>
using Operands = std::array<OperandInfo, N>;

template <size_t... kSizes>
constexpr Operands<(kSizes + ...)> joined(const Operands<kSizes>&... lists) {
  Operands<(kSizes + ...)> all{};
  size_t n = 0;
  const auto append = [&](const auto& list) {
    for (const OperandInfo& operand : list) all[n++] = operand;
  };
  (append(lists), ...);
  return all;
}

constexpr Operands<4> kEmbed{
    {{"tokens", log, in}, {"table", weight, in}, {"out", rows, out}, {"vectors", rows, in, true}}};
constexpr Operands<2> kRopeAngles{{{"inverse_frequencies", vector, in}, {"angles", rows, out}}};
constexpr Operands<3> kRmsNorm{
    {{"input", rows, in}, {"weight", vector, in}, {"out", activation, out}}};
constexpr Operands<3> kMatmul{
    {{"input", activation, in}, {"weight", weight, in}, {"out", rows, out}}};
constexpr Operands<2> kAddBias{{{"data", rows, inout}, {"bias", vector, in}}};
constexpr Operands<2> kHeadNorm{{{"data", rows, inout}, {"weight", vector, in}}};
constexpr Operands<2> kRope{{{"data", rows, inout}, {"angles", rows, in}}};
constexpr Operands<4> kKvWrite{{{"key", rows, in},
                                {"value", rows, in},
                                {"key_cache", cache, inout},
                                {"value_cache", cache, inout}}};
constexpr Operands<4> kAttention{{{"query", rows, in},
                                  {"key_cache", cache, in},
                                  {"value_cache", cache, in},
                                  {"out", activation, out}}};
constexpr Operands<2> kAdd{{{"data", rows, inout}, {"other", rows, in}}};
constexpr Operands<3> kGatedActivation{
    {{"gate", rows, in}, {"up", rows, in}, {"out", activation, out}}};
constexpr Operands<2> kGatherHead{{{"input", rows, in}, {"out", head_rows, out}}};
constexpr Operands<1> kSoftCap{{{"data", rows, inout}}};
constexpr Operands<1> kScale{{{"data", rows, inout}}};
constexpr Operands<5> kSample{{{"logits", head_rows, in},
                               {"tokens", log, inout},
                               {"picked", picked, out},
                               {"masks", masks, in, true},
                               {"options", options, in, true}}};
constexpr Operands<4> kLogprobs{{{"logits", head_rows, in},
                                 {"tokens", log, in},
                                 {"picked", picked, in},
                                 {"out", logprobs, inout}}};
constexpr Operands<2> kAdvance{{{"picked", picked, in}, {"tokens", log, in}}};
constexpr Operands<2> kAddEmbedding{{{"data", rows, inout}, {"table", weight, in}}};
constexpr Operands<4> kLayerNorm{{{"input", rows, in},
                                  {"weight", vector, in},
                                  {"bias", vector, in, true},
                                  {"out", activation, out}}};
constexpr Operands<2> kActivate{{{"input", rows, in}, {"out", activation, out}}};
constexpr Operands<4> kSpanAttention{
    {{"query", rows, in}, {"key", rows, in}, {"value", rows, in}, {"out", activation, out}}};
constexpr Operands<2> kPool{{{"input", rows, in}, {"out", head_rows, out}}};
constexpr Operands<5> kAdapterDown{{{"input", activation, in},
                                    {"weight", weight, in},
                                    {"parts", parts, in},
                                    {"options", options, in},
                                    {"out", rows, out}}};
constexpr Operands<5> kAdapterUp{{{"input", rows, in},
                                  {"weight", weight, in},
                                  {"parts", parts, in},
                                  {"options", options, in},
                                  {"data", rows, inout}}};
constexpr Operands<2> kUnfold{{{"input", rows, in}, {"out", activation, out}}};
constexpr Operands<4> kCrossAttention{{{"query", rows, in},
                                       {"key_cache", cache, in},
                                       {"value_cache", cache, in},
                                       {"out", activation, out}}};
constexpr Operands<3> kCrossWeights{
    {{"query", rows, in}, {"key_cache", cache, in}, {"out", head_rows, inout}}};
constexpr Operands<3> kTranscriptionRules{
    {{"logits", head_rows, inout}, {"tokens", log, in}, {"options", options, in}}};
constexpr Operands<4> kLatentWrite{{{"latent", rows, in},
                                    {"norm", vector, in},
                                    {"angles", rows, in, true},
                                    {"cache", cache, inout}}};
constexpr Operands<4> kLatentQuery{
    {{"query", rows, in}, {"weight", weight, in}, {"angles", rows, in, true}, {"out", rows, out}}};
constexpr Operands<3> kLatentAttention{
    {{"query", rows, in}, {"cache", cache, in}, {"out", rows, out}}};
constexpr Operands<3> kLatentValue{
    {{"attended", rows, in}, {"weight", weight, in}, {"out", activation, out}}};
constexpr Operands<5> kSinkAttention{{{"query", rows, in},
                                      {"key_cache", cache, in},
                                      {"value_cache", cache, in},
                                      {"out", activation, out},
                                      {"sinks", vector, in}}};
constexpr Operands<4> kRoute{{{"logits", rows, in},
                              {"bias", vector, in, true},
                              {"routes", routes, out},
                              {"scales", vector, in, true}}};
constexpr Operands<5> kExpertMatmul{{{"input", activation, in},
                                     {"weight", weight, in},
                                     {"routes", routes, in},
                                     {"bias", vector, in, true},
                                     {"out", rows, out}}};
constexpr Operands<3> kExpertActivation{
    {{"gate", rows, in}, {"up", rows, in, true}, {"out", activation, out}}};
constexpr Operands<3> kExpertCombine{
    {{"input", rows, in}, {"routes", routes, in}, {"out", rows, out}}};
constexpr Operands<2> kKvRotate{{{"turn", vector, in}, {"key_cache", cache, inout}}};
constexpr Operands<2> kHadamard{{{"input", rows, in}, {"out", activation, out}}};
constexpr Operands<4> kShortConvolution{{{"input", rows, in},
                                         {"weight", vector, in},
                                         {"cache", cache, inout},
                                         {"out", activation, out}}};
constexpr Operands<3> kMatchRms{{{"input", rows, in}, {"like", rows, in}, {"out", rows, inout}}};
constexpr Operands<1> kSparsify{{{"data", rows, inout}}};
constexpr Operands<6> kPredictStreams{{{"stream", rows, inout},
                                       {"others", rows, inout},
                                       {"norm", vector, in},
                                       {"router", vector, in},
                                       {"coefficients", vector, in},
                                       {"active", rows, out}}};
constexpr Operands<7> kCorrectStreams{{{"stream", rows, inout},
                                       {"others", rows, inout},
                                       {"norm", vector, in},
                                       {"router", vector, in},
                                       {"coefficients", vector, in},
                                       {"scale", vector, in, true},
                                       {"data", rows, inout}}};
constexpr Operands<5> kCausalConvolution{{{"input", rows, in},
                                          {"weight", vector, in},
                                          {"bias", vector, in, true},
                                          {"cache", cache, inout},
                                          {"out", rows, out}}};
constexpr Operands<7> kSelectiveScan{{{"input", rows, in},
                                      {"times", rows, in},
                                      {"rate", vector, in},
                                      {"time_bias", vector, in},
                                      {"skip", vector, in},
                                      {"states", cache, inout},
                                      {"out", rows, out}}};
constexpr Operands<4> kGatedNorm{{{"input", rows, in},
                                  {"gate", rows, in},
                                  {"weight", vector, in, true},
                                  {"out", activation, out}}};
constexpr Operands<7> kGatedDeltaRule{{{"input", rows, in},
                                       {"a", rows, in},
                                       {"b", rows, in},
                                       {"rate", vector, in},
                                       {"bias", vector, in},
                                       {"states", cache, inout},
                                       {"out", rows, out}}};
constexpr Operands<3> kSplitHeads{{{"input", rows, in}, {"out", rows, out}, {"rest", rows, out}}};
constexpr Operands<4> kJoinRows{
    {{"first", rows, in}, {"second", rows, in}, {"third", rows, in, true}, {"out", rows, out}}};
constexpr Operands<3> kMatmulAdd{
    {{"input", activation, in}, {"weight", weight, in}, {"data", rows, inout}}};
// What rotates heads and writes the cache.
constexpr Operands<3> kRotatedHeads{
    {{"query", rows, inout}, {"key", rows, in}, {"value", rows, in}}};
constexpr Operands<3> kReadHeads{{{"query", rows, in}, {"key", rows, in}, {"value", rows, in}}};
constexpr Operands<3> kAnglesAndCaches{
    {{"angles", rows, in}, {"key_cache", cache, inout}, {"value_cache", cache, inout}}};
constexpr Operands<2> kHeadNorms{{{"query_norm", vector, in}, {"key_norm", vector, in}}};
constexpr Operands<2> kOptionalHeadNorms{
    {{"query_norm", vector, in, true}, {"key_norm", vector, in, true}}};

constexpr auto kRopeKvWrite = joined(kRotatedHeads, kAnglesAndCaches);
constexpr auto kNormRopeKvWrite = joined(kRopeKvWrite, kHeadNorms);
constexpr auto kRopeAttention = joined(kReadHeads, kAnglesAndCaches, kOptionalHeadNorms,
                                       Operands<1>{{{"out", activation, out}}});
constexpr Operands<5> kNormGatedMatmul{{{"input", rows, in},
                                        {"gate", weight, in},
                                        {"up", weight, in},
                                        {"norm", vector, in},
                                        {"out", activation, out}}};
constexpr Operands<4> kGatedMatmul{{{"input", activation, in},
                                    {"gate", weight, in},
                                    {"up", weight, in},
                                    {"out", activation, out}}};

constexpr Operands<3> kNormAdd{
    {{"input", rows, in}, {"weight", vector, in}, {"data", rows, inout}}};

// --- Groups: an input, then a weight of each member, their biases, their results ----------------

// One slot of each member, the first one's `is_first_optional`, the others' as `are_optional` says.
constexpr Operands<kMaxGroup> of_members(const Operands<kMaxGroup>& all, bool is_first_optional,
                                         bool are_optional) {
  Operands<kMaxGroup> members = all;
  for (size_t i = 0; i < kMaxGroup; ++i)
    members[i].optional = i == 0 ? is_first_optional : are_optional;
  return members;
}

constexpr Operands<kMaxGroup> kWeights{
    {{"weight_0", weight, in}, {"weight_1", weight, in}, {"weight_2", weight, in}}};
constexpr Operands<kMaxGroup> kBiases{
    {{"bias_0", vector, in}, {"bias_1", vector, in}, {"bias_2", vector, in}}};
constexpr Operands<kMaxGroup> kOuts{
    {{"out_0", rows, out}, {"out_1", rows, out}, {"out_2", rows, out}}};
static_assert(!kWeights.back().name.empty() && !kBiases.back().name.empty() &&
                  !kOuts.back().name.empty(),
              "a name for each of kMaxGroup");

constexpr Operands<kGroupOut> group_inputs(OperandKind input, bool are_weights_optional) {
  return joined(Operands<1>{{{"input", input, in}}},
                of_members(kWeights, false, are_weights_optional), of_members(kBiases, true, true));
}

constexpr auto kMatmulGroup =
    joined(group_inputs(activation, true), of_members(kOuts, false, true));
constexpr auto kNormMatmulGroup = joined(group_inputs(rows, true), of_members(kOuts, false, true),
                                         Operands<1>{{{"norm", vector, in}}});
constexpr auto kMatmulRopeKvWrite =
    joined(group_inputs(activation, false), Operands<1>{{{"query", rows, out}}}, kAnglesAndCaches,
           kOptionalHeadNorms);
// Of each rank, behind kExchangeSlot; those that there are not stay empty.
constexpr Operands<kMaxRanks> kExchanges{{{"exchange_0", exchange, inout},
                                          {"exchange_1", exchange, inout, true},
                                          {"exchange_2", exchange, inout, true},
                                          {"exchange_3", exchange, inout, true},
                                          {"exchange_4", exchange, inout, true},
                                          {"exchange_5", exchange, inout, true},
                                          {"exchange_6", exchange, inout, true},
                                          {"exchange_7", exchange, inout, true}}};
constexpr auto kAllReduce =
    joined(Operands<1>{{{"input", rows, in}}}, Operands<1>{{{"out", rows, out}}}, kExchanges);
constexpr auto kAllReduceAdd =
    joined(Operands<1>{{{"input", rows, in}}}, Operands<1>{{{"data", rows, inout}}}, kExchanges);
static_assert(kAllReduce.size() == kExchangeSlot + kMaxRanks);
static_assert(kNormMatmulGroup.size() == kGroupNorm + 1);

constexpr std::array<OperationInfo, kOperationCount> kOperations{{
    {"embed", kEmbed, sizeof(EmbedParams)},
    {"rope_angles", kRopeAngles, sizeof(RopeAnglesParams)},
    {"rms_norm", kRmsNorm, sizeof(NormParams)},
    {"matmul", kMatmul, sizeof(MatmulParams)},
    {"add_bias", kAddBias, sizeof(BiasParams)},
    {"head_norm", kHeadNorm, sizeof(HeadNormParams)},
    {"rope", kRope, sizeof(RopeParams)},
    {"kv_write", kKvWrite, sizeof(KvWriteParams)},
    {"attention", kAttention, sizeof(AttentionParams)},
    {"add", kAdd, sizeof(AddParams)},
    {"gated_activation", kGatedActivation, sizeof(GatedActivationParams)},
    {"gather_head", kGatherHead, sizeof(GatherParams)},
    {"soft_cap", kSoftCap, sizeof(SoftCapParams)},
    {"scale", kScale, sizeof(ScaleParams)},
    {"sample", kSample, sizeof(SampleParams)},
    {"logprobs", kLogprobs, sizeof(LogprobsParams)},
    {"advance", kAdvance, sizeof(AdvanceParams), true},
    {"add_embedding", kAddEmbedding, sizeof(AddEmbeddingParams)},
    {"layer_norm", kLayerNorm, sizeof(NormParams)},
    {"activate", kActivate, sizeof(ActivateParams)},
    {"span_attention", kSpanAttention, sizeof(SpanAttentionParams)},
    {"pool", kPool, sizeof(PoolParams)},
    {"adapter_down", kAdapterDown, sizeof(AdapterParams)},
    {"adapter_up", kAdapterUp, sizeof(AdapterParams)},
    {"unfold", kUnfold, sizeof(UnfoldParams)},
    {"cross_attention", kCrossAttention, sizeof(CrossAttentionParams)},
    {"cross_weights", kCrossWeights, sizeof(CrossWeightsParams)},
    {"transcription_rules", kTranscriptionRules, sizeof(TranscriptionRulesParams)},
    {"latent_write", kLatentWrite, sizeof(LatentWriteParams)},
    {"latent_query", kLatentQuery, sizeof(LatentQueryParams)},
    {"latent_attention", kLatentAttention, sizeof(LatentAttentionParams)},
    {"latent_value", kLatentValue, sizeof(LatentValueParams)},
    {"sink_attention", kSinkAttention, sizeof(AttentionParams)},
    {"route", kRoute, sizeof(RouteParams)},
    {"expert_matmul", kExpertMatmul, sizeof(ExpertMatmulParams)},
    {"expert_activation", kExpertActivation, sizeof(ExpertActivationParams)},
    {"expert_combine", kExpertCombine, sizeof(ExpertCombineParams)},
    {"kv_rotate", kKvRotate, sizeof(KvRotateParams)},
    {"hadamard", kHadamard, sizeof(HadamardParams)},
    {"short_convolution", kShortConvolution, sizeof(ShortConvolutionParams)},
    {"match_rms", kMatchRms, sizeof(MatchRmsParams)},
    {"sparsify", kSparsify, sizeof(SparsifyParams)},
    {"predict_streams", kPredictStreams, sizeof(StreamsParams)},
    {"correct_streams", kCorrectStreams, sizeof(StreamsParams)},
    {"causal_convolution", kCausalConvolution, sizeof(CausalConvolutionParams)},
    {"selective_scan", kSelectiveScan, sizeof(SelectiveScanParams)},
    {"gated_norm", kGatedNorm, sizeof(GatedNormParams)},
    {"gated_delta_rule", kGatedDeltaRule, sizeof(GatedDeltaRuleParams)},
    {"split_heads", kSplitHeads, sizeof(SplitHeadsParams)},
    {"join_rows", kJoinRows, sizeof(JoinRowsParams)},
    {"all_reduce", kAllReduce, sizeof(AllReduceParams)},
    {"matmul_group", kMatmulGroup, sizeof(MatmulGroupParams)},
    {"matmul_add", kMatmulAdd, sizeof(MatmulParams)},
    {"rope_kv_write", kRopeKvWrite, sizeof(RopeKvWriteParams)},
    {"norm_rope_kv_write", kNormRopeKvWrite, sizeof(RopeKvWriteParams)},
    {"norm_matmul_group", kNormMatmulGroup, sizeof(NormMatmulGroupParams)},
    {"norm_gated_matmul", kNormGatedMatmul, sizeof(NormGatedMatmulParams)},
    {"rope_attention", kRopeAttention, sizeof(RopeAttentionParams)},
    {"gated_matmul", kGatedMatmul, sizeof(GatedMatmulParams)},
    {"norm_add", kNormAdd, sizeof(NormParams)},
    {"matmul_rope_kv_write", kMatmulRopeKvWrite, sizeof(MatmulRopeKvWriteParams)},
    {"all_reduce_add", kAllReduceAdd, sizeof(AllReduceParams)},
}};

constexpr bool params_fit() {
  for (const OperationInfo& info : kOperations)
    if (info.params_size % 16 != 0 || info.params_size > kMaxParamsBytes) return false;
  return true;
}
static_assert(params_fit(), "multiples of 16 bytes; a larger struct raises kMaxParamsBytes");

constexpr bool operands_fit() {
  for (const OperationInfo& info : kOperations)
    if (info.operands.size() > kFirstPlaneSlot) return false;
  return true;
}
static_assert(operands_fit());
static_assert(plane_slot(1, 1) - plane_slot(0, 1) == kMaxPlanes - 1 &&
              plane_slot(kMaxGroup - 1, kMaxPlanes - 1) < kMaxOperands);

}  // namespace

const OperationInfo& operation_info(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

std::optional<Operation> operation_from_name(std::string_view name) {
  for (uint32_t i = 0; i < kOperationCount; ++i)
    if (kOperations[i].name == name) return static_cast<Operation>(i);
  return std::nullopt;
}

}  // namespace akunu
