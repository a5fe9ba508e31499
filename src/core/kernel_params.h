// The parameter structs of the kernel contract (docs/kernels.md), one per operation, included by
// C++, MSL and CUDA: 32-bit fields, explicit padding, a size that is a multiple of 16. No field
// holds a product of sizes; kernels widen to 64 bits before they multiply.
#pragma once

#include "core/rows.h"

namespace akunu {

AKUNU_CONSTANT uint32_t kPagePositions = 256;  // positions per page of the cache
// Bytes that a command keeps for its parameters: no struct of this file is larger.
AKUNU_CONSTANT uint32_t kMaxParamsBytes = 64;

struct EmbedParams {
  uint32_t dim;
  uint32_t vocab_size;
  uint32_t log_stride;  // positions per sequence in the token log
  float scale;          // 1 for most models
  uint32_t n_rows;      // of the table; a token behind them has the first row. 0: vocab_size
  uint32_t padding[3];
};

struct NormParams {
  uint32_t dim;
  float epsilon;
  uint32_t padding[2];
};

struct MatmulParams {
  uint32_t n;  // rows of the weight: columns of the result
  uint32_t k;  // columns of the weight: columns of the activation
  uint32_t padding[2];
};

// Members of a matmul_group, and the slots of the first member's weight, bias and result, of norm_matmul_group
// also; the other members' follow. Slot 0 is the input.
AKUNU_CONSTANT uint32_t kMaxGroup = 3;
AKUNU_CONSTANT uint32_t kGroupWeight = 1;
AKUNU_CONSTANT uint32_t kGroupBias = kGroupWeight + kMaxGroup;
AKUNU_CONSTANT uint32_t kGroupOut = kGroupBias + kMaxGroup;
AKUNU_CONSTANT uint32_t kGroupNorm = kGroupOut + kMaxGroup;  // norm_matmul_group only

struct MatmulGroupParams {
  uint32_t k;
  uint32_t n[kMaxGroup];  // rows of each weight; 0: this member is absent
};

struct BiasParams {
  uint32_t n;
  uint32_t padding[3];
};

struct HeadNormParams {
  uint32_t n_heads;
  uint32_t head_dim;
  float epsilon;
  uint32_t padding;
};

struct RopeAnglesParams {
  uint32_t n_pairs;  // rope_dim / 2
  // Cosine and sine are multiplied by 1 + growth * log(1 + position / growth_length), the quotient a
  // whole number. growth 0: by 1.
  float growth;
  uint32_t growth_length;  // above 0 where there is a growth
  float factor;            // cosine and sine are multiplied by it, too; usually 1
  // Which of Row::rope_offsets a pair takes, two bits for each of the first kMostPairsWithAxes, 16 a word; others take 0.
  uint32_t axes[8];
};
AKUNU_CONSTANT uint32_t kMostPairsWithAxes = 128;

AKUNU_CONSTANT uint32_t kRopeInterleaved = 0;  // dimension 2i rotates with 2i + 1
AKUNU_CONSTANT uint32_t kRopeHalves = 1;       // dimension i rotates with i + rope_dim / 2

struct RopeParams {
  uint32_t n_heads;
  uint32_t head_dim;
  uint32_t n_pairs;  // rope_dim / 2; dimensions from rope_dim on stay as they are
  uint32_t style;    // kRopeInterleaved or kRopeHalves
};

struct KvWriteParams {
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t page_table_stride;  // entries per sequence in the page table
  uint32_t page_table_base;    // first entry of this layer's cache group
};

// Keys that are in the cache get other positions: all of a text's turn by the same angles.
struct KvRotateParams {
  uint32_t n_kv_heads;
  uint32_t head_dim;   // numbers of a cached head
  uint32_t first_dim;  // the first that turns
  uint32_t n_pairs;    // dimensions from first_dim + 2 n_pairs on stay as they are
  uint32_t style;      // kRopeInterleaved or kRopeHalves
  uint32_t page_table_stride;
  uint32_t page_table_base;
  uint32_t padding;
};

// rms_norm of the input, then matmul_group.
struct NormMatmulGroupParams {
  uint32_t k;
  uint32_t n[kMaxGroup];  // rows of each weight; 0: this member is absent
  float epsilon;
  uint32_t padding[3];
};

// rms_norm of the input, then two matmuls, then gated_activation of their results.
struct NormGatedMatmulParams {
  uint32_t k;
  uint32_t n;           // rows of each of the two weights
  uint32_t activation;  // kActivation...
  float epsilon;
};

// Two matmuls of one input, then gated_activation of their results.
struct GatedMatmulParams {
  uint32_t k;
  uint32_t n;           // rows of each of the two weights
  uint32_t activation;  // kActivation...
  uint32_t padding;
};

struct RopeKvWriteParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t n_pairs;
  uint32_t style;
  uint32_t page_table_stride;
  uint32_t page_table_base;
  float epsilon;  // of the per-head norms, where there are any
};

// Query, key and value of one input, then rope_kv_write, with the per-head norms where they are bound.
struct MatmulRopeKvWriteParams {
  uint32_t k;
  RopeKvWriteParams heads;
  uint32_t padding[3];
};

struct AttentionParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;  // divides n_heads
  uint32_t head_dim;
  uint32_t window;  // positions a row sees, its own included; 0: all of them
  float scale;      // usually 1 / sqrt(head_dim)
  float soft_cap;   // 0: none; else scores become soft_cap * tanh(score / soft_cap)
  uint32_t page_table_stride;
  uint32_t page_table_base;
};

// rope_kv_write, with the per-head norms where they are bound, then attention.
struct RopeAttentionParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t n_pairs;
  uint32_t style;
  uint32_t window;
  float scale;
  float soft_cap;
  uint32_t page_table_stride;
  uint32_t page_table_base;
  float epsilon;  // of the per-head norms
  uint32_t padding;
};

AKUNU_CONSTANT uint32_t kActivationSilu = 0;
AKUNU_CONSTANT uint32_t kActivationGeluTanh = 1;
AKUNU_CONSTANT uint32_t kActivationGelu = 2;     // with the error function; not in fused operations
AKUNU_CONSTANT uint32_t kActivationTanh = 3;     // in `activate` only
AKUNU_CONSTANT uint32_t kActivationNone = 4;     // likewise
AKUNU_CONSTANT uint32_t kActivationSigmoid = 6;  // in `gated_activation` only
AKUNU_CONSTANT uint32_t kActivationClamped = 5;  // in `expert_activation` only
AKUNU_CONSTANT uint32_t kActivationReluSquared = 7;  // max(x, 0)^2; where nothing is gated
AKUNU_CONSTANT uint32_t kActivationQuickGelu = 8;    // x sigmoid(1.702 x); in `activate` only

struct GatedActivationParams {
  uint32_t n;
  uint32_t activation;  // kActivation...
  uint32_t up_first;    // the number of a row of up that gate's first is multiplied by
  uint32_t up_stride;   // numbers of a row of up; 0: n
};

struct ActivateParams {
  uint32_t n;
  uint32_t activation;    // kActivation...
  uint32_t input_first;   // the number of a row of the input that becomes the first
  uint32_t input_stride;  // numbers of a row of the input; 0: n
};

AKUNU_CONSTANT uint32_t kIndexPosition = 0;
AKUNU_CONSTANT uint32_t kIndexTokenType = 1;  // 0, or 1 from the row's second_segment on

struct AddEmbeddingParams {
  uint32_t dim;
  uint32_t n_rows;  // of the table
  uint32_t index;   // kIndex...
  uint32_t offset;  // added to the index
};

// Attention of a span's rows to each other, without a cache.
struct SpanAttentionParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;  // divides n_heads
  uint32_t head_dim;
  uint32_t window;  // positions that a row sees on each side; 0: all of them
  float scale;
  uint32_t causal;  // 1: a row sees none behind it
  // ALiBi: a score falls by slope * distance. Of the first p heads, p the largest power of 2 among
  // n_heads, the slope of head h is first^(h + 1); of the others, second^(2 (h - p) + 1). 0: none.
  float alibi_first;
  float alibi_second;
};

struct PoolParams {
  uint32_t dim;
  uint32_t padding[3];
};

// Of both: x times A into `rank` numbers of a row, and those times B added to `width` ones.
struct AdapterParams {
  uint32_t width;  // of adapter_down, columns of its input; of adapter_up, of its result
  uint32_t rank;   // of all adapters together
  uint32_t padding[2];
};

// Of a convolution along the rows of a span: the inputs of a result, so that a matmul computes it.
struct UnfoldParams {
  uint32_t n_channels;
  uint32_t width;    // rows of the input that a result sees
  uint32_t stride;   // rows of the input per row of the result
  uint32_t padding;  // zeros before the first row and behind the last one
};

// Attention of a decoder's rows to an encoder's positions.
struct CrossAttentionParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;  // divides n_heads
  uint32_t head_dim;
  uint32_t n_positions;  // all of which every row sees
  float scale;
  uint32_t padding;
  uint32_t page_table_stride;
  uint32_t page_table_base;
};

// The weights with which some heads of a cross_attention see the encoder's positions.
struct CrossWeightsParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t n_positions;
  float scale;
  uint32_t heads;  // a bit for each one that is wanted, of the first 32
  uint32_t first;  // where the first of them goes among `n_out` heads of a row of the result
  uint32_t n_out;
  uint32_t page_table_stride;
  uint32_t page_table_base;
  uint32_t padding[2];
};

struct TranscriptionRulesParams {
  uint32_t vocab_size;
  uint32_t log_stride;
  uint32_t padding[2];
};

// Multi-head latent attention: a position's keys and values follow, for all heads, from one cached row:
// `rank` numbers, and 2 n_pairs behind them, which rotate.
//
// The row of a position: its first `rank` numbers normed, the others rotated, into the cache.
struct LatentWriteParams {
  uint32_t rank;
  uint32_t n_pairs;
  uint32_t style;  // kRopeInterleaved or kRopeHalves; without angles nothing rotates
  float epsilon;
  uint32_t page_table_stride;
  uint32_t page_table_base;
  uint32_t padding[2];
};

// Heads of [n_plain | 2 n_pairs] numbers become heads of [rank | 2 n_pairs], which are multiplied with
// cached rows as they are: the plain ones go through the weight, the others rotate.
struct LatentQueryParams {
  uint32_t n_heads;
  uint32_t n_plain;
  uint32_t n_pairs;
  uint32_t rank;
  uint32_t style;
  uint32_t head_rows;  // rows of the weight for each head
  // 0: the first n_plain rows of a head are [n_plain, rank], as of the matrix that makes keys and values
  // of a cached row. 1: its rows are the transpose of those, [rank, n_plain].
  uint32_t is_transposed;
  uint32_t padding;
};

// softmax(query . rows * scale) . (the first value_dim numbers of the rows), over the positions that a
// row sees.
struct LatentAttentionParams {
  uint32_t n_heads;
  uint32_t n_kv_heads;  // cached rows of a position; divides n_heads
  uint32_t head_dim;    // numbers of a cached row
  uint32_t value_dim;
  float scale;
  uint32_t padding;
  uint32_t page_table_stride;
  uint32_t page_table_base;
};

// Heads of `rank` numbers times head_rows rows of the weight each, of which those from first_row on count.
struct LatentValueParams {
  uint32_t n_heads;
  uint32_t rank;
  uint32_t value_dim;
  uint32_t head_rows;  // rows of the weight for each head
  uint32_t first_row;  // of them, that of the first value; value_dim from there on
  uint32_t padding[3];
};

// How a router's logits become scores. kScoreChosen: softmax of the logits of the chosen experts alone.
AKUNU_CONSTANT uint32_t kScoreSoftmax = 0;
AKUNU_CONSTANT uint32_t kScoreChosen = 1;
AKUNU_CONSTANT uint32_t kScoreSigmoid = 2;

struct RouteParams {
  uint32_t n_experts;
  uint32_t n_chosen;    // of each row
  uint32_t scoring;     // kScore...
  uint32_t normalised;  // 1: weights are divided by their sum
  float scale;          // of the weights
  uint32_t n_groups;    // of neighbouring experts, alike in size; 1 where there are none
  uint32_t n_groups_chosen;
  uint32_t group_best;  // 1 or 2: a group counts as much as so many of its best together
};

// A matmul of each row with those experts of a stack that the row was given.
struct ExpertMatmulParams {
  uint32_t n;  // rows of each expert's weight
  uint32_t k;
  uint32_t n_experts;
  uint32_t n_chosen;  // of each row
  uint32_t n_inputs;  // 1: all experts of a row read the same input row; n_chosen: each its own
  uint32_t padding[3];
};

struct ExpertActivationParams {
  uint32_t n;  // of each expert
  uint32_t n_chosen;
  uint32_t activation;  // kActivation...
  // kActivationClamped: gate is at most `limit`, up between -limit and limit, and what comes out is
  // gate / (1 + e^(-alpha gate)) * (up + 1).
  float limit;
  float alpha;
  uint32_t padding[3];
};

struct ExpertCombineParams {
  uint32_t n;
  uint32_t n_chosen;
  uint32_t padding[2];
};

// The largest Hadamard matrix that a kernel multiplies with: a SIMD-group holds it in eight registers.
AKUNU_CONSTANT uint32_t kMaxHadamard = 256;

struct HadamardParams {
  uint32_t n;      // of a row
  uint32_t width;  // a power of two from 32 to kMaxHadamard that divides n
  uint32_t padding[2];
};

struct AddParams {
  uint32_t n;
  uint32_t
      n_times;  // a row of data is as many runs of n numbers, each of which gets all of it; 0: one
  uint32_t padding[2];
};

struct GatherParams {
  uint32_t dim;
  uint32_t padding[3];
};

struct SoftCapParams {
  uint32_t n;
  float cap;  // above 0
  uint32_t padding[2];
};

struct ScaleParams {
  uint32_t n;
  float factor;
  uint32_t padding[2];
};

// The cache has the convolution's inputs, float [page][kPagePositions][dim].
struct ShortConvolutionParams {
  uint32_t dim;
  uint32_t width;  // of the convolution, at least 2
  uint32_t page_table_stride;
  uint32_t page_table_base;
};

// The input, as large on average as a row that it is like, at a place of a row of the result.
struct MatchRmsParams {
  uint32_t dim;
  uint32_t out_first;
  uint32_t out_stride;  // numbers of a row of the result
  float least;          // the mean square of the input counts as this at least
};

// What is above mean + deviations * standard deviation of its row stays, less that.
struct SparsifyParams {
  uint32_t n;
  float deviations;
  uint32_t padding[2];
};

// Alternating updates: a layer computes one of several streams of a row, and predicts and corrects all.
AKUNU_CONSTANT uint32_t kMaxStreams = 4;

struct StreamsParams {
  uint32_t dim;
  uint32_t n_streams;  // 2 to kMaxStreams
  uint32_t active;     // the one that the layer computes
  float epsilon;       // of the router's norm
};

// The cache has the convolution's inputs of a sequence's last positions in the page of position 0, float
// [page][n_kept][n]: those of position p are at index p % n_kept.
struct CausalConvolutionParams {
  uint32_t n;      // numbers of a row that are convolved
  uint32_t width;  // of the convolution, at least 2
  uint32_t input_stride;
  uint32_t input_first;
  uint32_t n_kept;  // at least width - 1, and as many more as rows may run again
  uint32_t page_table_stride;
  uint32_t page_table_base;
  uint32_t padding;
};

// Numbers of a row of a state; more are refused by every device.
AKUNU_CONSTANT uint32_t kMaxStateDim = 256;

// The cache has the states of a sequence behind its last two rows in the page of position 0, float
// [page][2][n_heads][head_dim][state_dim]: the state after n positions is at index n % 2.
struct SelectiveScanParams {
  uint32_t n_heads;
  uint32_t head_dim;
  uint32_t state_dim;  // at most kMaxStateDim
  uint32_t n_groups;   // of heads that share B and C
  uint32_t time_stride;
  uint32_t time_first;
  float time_min;  // steps of time are clamped to [time_min, time_max]
  float time_max;
  uint32_t page_table_stride;
  uint32_t page_table_base;
  float time_factor;  // on steps of time, before their bias is added
  uint32_t padding;
};

// The cache has the states of a sequence behind its last two rows in the page of position 0, float
// [page][2][n_value_heads][value_dim][key_dim]: the state after n positions is at index n % 2.
struct GatedDeltaRuleParams {
  uint32_t n_key_heads;    // of queries, too
  uint32_t n_value_heads;  // a multiple of n_key_heads
  uint32_t key_dim;        // at most kMaxStateDim
  uint32_t value_dim;
  uint32_t is_tiled;  // value head h has key head h % n_key_heads; else neighbours share one
  uint32_t page_table_stride;
  uint32_t page_table_base;
  uint32_t per_channel;  // 1: a and bias have a number for each of a key's, which fade apart
};

// Rows of up to three operands one behind another: n_third is 0 where there is no third.
struct JoinRowsParams {
  uint32_t n_first;
  uint32_t n_second;
  uint32_t n_third;
  uint32_t padding;
};

struct SplitHeadsParams {
  uint32_t n_heads;
  uint32_t head_dim;
  uint32_t padding[2];
};

struct GatedNormParams {
  uint32_t dim;
  uint32_t group;  // numbers that are normed together; dim is a multiple of it
  uint32_t gate_stride;
  uint32_t gate_first;
  float epsilon;
  float gate_factor;
  uint32_t padding[2];
};

struct SampleParams {
  uint32_t vocab_size;
  uint32_t log_stride;
  uint32_t padding[2];
};

struct LogprobsParams {
  uint32_t vocab_size;
  uint32_t log_stride;
  uint32_t padding[2];
};

struct AdvanceParams {
  uint32_t log_stride;
  uint32_t padding[3];
};

// Ranks of a group of devices at most, and the slot of the first one's exchange: those of the others follow.
AKUNU_CONSTANT uint32_t kMaxRanks = 8;
AKUNU_CONSTANT uint32_t kExchangeSlot = 2;

struct AllReduceParams {
  uint32_t n;
  uint32_t rank;  // of the device that computes
  uint32_t n_ranks;
  uint32_t padding;
};

// An exchange, in the memory of each rank: words that the ranks write there, then counters.
//   words[kExchangeSlots][n_ranks][kExchangeBlocks][kExchangeUnits][kExchangeThreads], of 16 bytes: a number, the
//   round's count, another number, the count again
//   counters[kExchangeBlocks]: rounds that a block has been through
// A round's words lie in the slot of its count, modulo kExchangeSlots. A reader waits until a word has its count, so a
// word says itself that it is there. docs/decisions/kernels-on-gpus.md says why two slots are enough.
AKUNU_CONSTANT uint32_t kExchangeSlots = 2;
AKUNU_CONSTANT uint32_t kExchangeBlocks = 256;
AKUNU_CONSTANT uint32_t kExchangeThreads = 256;
AKUNU_CONSTANT uint32_t kExchangeUnits = 8;  // words of a thread in a round
AKUNU_CONSTANT uint32_t kExchangeWordBytes = 16;

static inline uint64_t exchange_words(uint32_t n_ranks) {
  return static_cast<uint64_t>(kExchangeSlots) * n_ranks * kExchangeBlocks * kExchangeUnits *
         kExchangeThreads;
}
static inline uint64_t exchange_bytes(uint32_t n_ranks) {
  return exchange_words(n_ranks) * kExchangeWordBytes + kExchangeBlocks * sizeof(uint32_t);
}
// The first of a block's words from a rank.
static inline uint64_t exchange_word(uint32_t count, uint32_t n_ranks, uint32_t rank,
                                     uint32_t block) {
  return ((static_cast<uint64_t>(count % kExchangeSlots) * n_ranks + rank) * kExchangeBlocks +
          block) *
         kExchangeUnits * kExchangeThreads;
}

// Words of a mask: bit i % 32 of word i / 32 is set where token i is allowed.
static inline uint32_t mask_words(uint32_t vocab_size) {
  return vocab_size / 32 + (vocab_size % 32 != 0);
}

// Where position `position` of a sequence lies: the page's number in the pool. `pages` points to the
// whole page table, pages[group][sequence][n], wherever it lies.
template <class Pages>
static inline uint32_t page_of(Pages pages, uint32_t page_table_base, uint32_t page_table_stride,
                               uint32_t sequence, uint32_t position) {
  return pages[static_cast<uint64_t>(page_table_base) +
               static_cast<uint64_t>(sequence) * page_table_stride + position / kPagePositions];
}

// Offset in elements of (page, kv head, position in the page) in a layer's K or V pool, which is
// laid out [page][kv_head][kPagePositions][head_dim].
static inline uint64_t kv_offset(uint32_t page, uint32_t n_kv_heads, uint32_t kv_head,
                                 uint32_t position_in_page, uint32_t head_dim) {
  return ((static_cast<uint64_t>(page) * n_kv_heads + kv_head) * kPagePositions +
          position_in_page) *
         head_dim;
}

}  // namespace akunu
