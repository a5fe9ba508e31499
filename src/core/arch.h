// ArchDescriptor: everything that a model's architecture says and its tensors don't. A family (models/family.h) fills it
// from what the file says; nobody below it asks for an architecture's name.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

enum class RopeStyle : uint8_t {
  none,
  interleaved,  // dimension 2i rotates with 2i + 1
  halves,       // dimension i rotates with i + rope_dim / 2
};

// What a model file says of one layer; 0 where it says nothing.
struct LayerConfig {
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn_dim = 0;
  uint32_t rope_dim = 0;               // leading dimensions of a head that rotate; 0: the model's
  bool values_are_keys = false;        // it has no weights of values
  std::optional<bool> windowed;        // whether it sees `ModelConfig::window` positions only
  std::optional<bool> rotates;         // whether its Q and K have rotary positions
  bool convolves = false;              // it has a short convolution instead of attention
  bool recurs = false;                 // it is recurrent, instead of attention
  std::optional<float> gate_cut = {};  // as in LayerDescriptor
  bool scans = false;                  // it has a scan (Mamba-2), instead of attention or beside it
};

// Layers that a file may say it has. More is refused at once: memory for absurd counts would run out before the first
// missing tensor is noticed.
inline constexpr uint32_t kMostLayers = 10000;

// How the rows of a text become one vector.
enum class Pooling : uint8_t { none, mean, first, last, max };

enum class Activation : uint8_t { silu, gelu_tanh, gelu, tanh, none, sigmoid, relu_squared };

// How a router's logits become weights of experts. chosen: softmax of the chosen ones' alone.
enum class Scoring : uint8_t { softmax, chosen, sigmoid };

// What a model file says of a mixture of experts; 0 where it says nothing.
struct ExpertConfig {
  uint32_t n = 0;  // 0: the model has none
  uint32_t n_chosen = 0;
  uint32_t dim = 0;              // feed-forward length of each
  uint32_t shared_dim = 0;       // of the expert that all rows go through, or all those together
  uint32_t n_leading_dense = 0;  // layers before the first with experts
  std::optional<Scoring> scoring;
  std::optional<bool> normalised;
  float scale = 0;
  uint32_t n_groups = 0;
  uint32_t n_groups_chosen = 0;
  float limit = 0;  // as in Experts
  float alpha = 0;
  uint32_t n_layers_ahead = 0;  // behind all others, which guess tokens further ahead
};

// The gated delta rule (Yang et al., 2024), a linear attention. Each value head has a state S, [value_dim, key_dim].
// A row with key k, query q and value v decays it by g, and moves what it recalls for k towards v by the share beta:
// S = g S; S += beta (v - S k) k^T; the output is S q / sqrt(key_dim). k and q are normalised to length 1.
// Per channel (Kimi Delta Attention, Moonshot AI, 2025) g is a factor for each number of a key; queries, keys and values
// then have a projection each, named as attention's, and g and the gate of what is recalled go through a few numbers.
struct DeltaRule {
  uint32_t n_key_heads = 0;    // of queries, too
  uint32_t n_value_heads = 0;  // each has a state
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  uint32_t width = 0;     // of the short convolution in front of it
  bool is_tiled = false;  // value head h has key head h % n_key_heads; else neighbours share one
  bool per_channel = false;

  uint32_t keys() const { return n_key_heads * key_dim; }
  uint32_t values() const { return n_value_heads * value_dim; }
  uint32_t convolved() const { return 2 * keys() + values(); }
  uint32_t n_decays() const { return n_value_heads * (per_channel ? key_dim : 1); }  // of a row
};

// The selective scan of Mamba-2 (Dao and Gu, 2024). A row is projected to a gate z, to x, B and C, which go through a
// causal convolution, and to a time step t of each head. A head's state S, [head_dim, state_dim], becomes
// e^(t rate) S + t x B^T; the output is S C + skip x, times silu(z), and RMS-normed in n_groups groups. The cache keeps
// the inputs of the convolution and the states. What is projected may be multiplied: z and t where they are used, x, B
// and C by the weights of the convolution, in which whoever reads a file puts the factors.
struct Scan {
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;
  uint32_t state_dim = 0;
  uint32_t n_groups = 0;  // of heads that share B and C
  uint32_t width = 0;     // rows that a row sees in the convolution, its own included
  float time_min = 0;     // steps of time are clamped
  float time_max = std::numeric_limits<float>::infinity();
  bool is_normed = true;
  float gate_factor = 1;                           // on z
  float time_factor = 1;                           // on t, before its bias
  std::array<float, 3> input_factors = {1, 1, 1};  // on x, B and C

  uint32_t inner_dim() const { return n_heads * head_dim; }
  uint32_t convolved_dim() const { return inner_dim() + 2 * n_groups * state_dim; }
  uint32_t projected_dim() const { return inner_dim() + convolved_dim() + n_heads; }
};

// The encoder of a model that reads images: squares of patch_size pixels, patches_per_side of them in a row, become as
// many rows; tokens_per_side in a row are what the text gets of them.
struct ImageConfig {
  static constexpr uint32_t kMostPatches = 1u << 16;  // more are a mistake in a file

  uint32_t dim = 0;
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t ffn_dim = 0;
  uint32_t patch_size = 0;
  uint32_t patches_per_side = 0;
  uint32_t tokens_per_side = 0;
  float norm_epsilon = 0;
  uint32_t token = 0;  // that stands in a text for each row of an image
};

// What the parts of a layer are multiplied by.
struct LayerFactors {
  float attention = 1;     // of what attention adds to the residual
  float scan = 1;          // likewise
  float feed_forward = 1;  // likewise
  float gate = 1;          // of a feed-forward network, before its activation

  bool operator==(const LayerFactors&) const = default;
};

// What a model file says, whatever its format; 0 or empty where it says nothing.
struct ModelConfig {
  std::string architecture;  // "llama", "qwen3", ...
  std::string name;
  uint32_t dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;      // positions that the model was trained on
  std::vector<LayerConfig> layers;  // all of them, a prediction head's last
  uint32_t n_ahead = 0;             // of these, of a prediction head: 0 or 1
  ExpertConfig experts;
  uint32_t n_shared_kv_layers = 0;  // the last ones, which read the keys and values of others
  uint32_t per_layer_dim = 0;       // numbers that each layer has of its own of a token; 0: none
  // The residual's streams, as in ResidualStreams; 0: it is one.
  uint32_t n_streams = 0;
  uint32_t active_stream = 0;
  bool scales_streams = true;
  uint32_t window = 0;    // positions that a row of a windowed layer sees
  uint32_t rope_dim = 0;  // leading dimensions of a head that rotate
  float rope_theta = 0;
  float rope_theta_windowed = 0;       // of windowed layers, where it is another
  float rope_linear_factor = 1;        // positions are divided by it
  float rope_dynamic_factor = 1;       // of dynamic NTK, where a context goes beyond the model's
  uint32_t rope_original_context = 0;  // where long-RoPE's long factors begin; 0: context_length
  float rope_attention_factor = 1;     // Q and K are multiplied by it where they rotate (YaRN)
  // Q is multiplied by 1 + growth * log(1 + position / length); 0: it is not.
  float query_growth = 0;
  uint32_t query_growth_length = 0;
  std::optional<RopeStyle> rope_style;  // how the rows of Q and K lie, where not as GGUF has them
  float norm_epsilon = 0;
  float attention_scale = 0;
  // Of multi-head latent attention, as in Latent; `latent_rank` 0: there is none.
  uint32_t latent_rank = 0;
  uint32_t query_rank = 0;
  uint32_t value_dim = 0;
  float latent_norm_epsilon = 0;            // 0: norm_epsilon
  uint32_t convolution_width = 0;           // of layers that convolve, as in ShortConvolution
  DeltaRule delta_rule;                     // of layers that recur
  Scan scan;                                // of layers that scan
  std::optional<float> attention_soft_cap;  // 0: none
  std::optional<float> logit_soft_cap;      // 0: none
  // Factors; 0: the file says none. What a family does with logit_scale is its own.
  float embedding_scale = 0;
  float residual_scale = 0;  // of what attention and feed-forward add to the residual
  float logit_scale = 0;
  LayerFactors layer_factors;
  bool embeds = false;             // texts become vectors, also of a family that generates
  std::optional<Pooling> pooling;  // of models that embed texts
  std::optional<Activation> head_activation;  // of a classifier's dense layer
  // Of the dense layers of sentence-transformers.
  std::array<Activation, 2> dense_activations{Activation::none, Activation::none};
  uint32_t position_offset = 0;  // the row of the position embedding that position 0 has
  // Of a model of speech.
  std::vector<LayerConfig> audio_layers;
  uint32_t audio_positions = 0;  // that the encoder makes of a window
  uint32_t n_mels = 0;           // mel bands of a frame
  std::optional<ImageConfig> images;
  std::vector<std::string> notes;  // what of it was not taken as it is, a line each
};

// attention_and_scan: both read the layer's normed input, and both are added to the residual.
enum class Mixer : uint8_t { attention, convolution, delta_rule, scan, attention_and_scan, none };
enum class FeedForward : uint8_t {
  gated,  // down(act(gate(x)) * up(x))
  plain,  // down(act(up(x)))
  none,   // the layer has only its mixer
};
enum class NormKind : uint8_t { rms, layer };
// Where a layer's two norms are: before attention and feed-forward, or after each was added to the
// residual, which is then the normed sum. none: there are only those of `post_norms`.
enum class NormPlace : uint8_t { before, after_sum, none };

// Multi-head latent attention (DeepSeek-V2, 2024): the keys and values of all heads are made of one row
// of `rank` numbers of a position, and of as many rotated ones as `rope_dim`, which all heads share.
// The cache keeps that row. A head is [head_dim - rope_dim | rope_dim], its rotated numbers last.
struct Latent {
  uint32_t rank = 0;
  uint32_t query_rank =
      0;                   // queries are made of as many numbers, which are normed; 0: of the input
  uint32_t value_dim = 0;  // of a head
  float norm_epsilon = 0;
};

// A gated convolution along the text (LFM2, 2025). A row is projected to b, c and x, each as wide as the
// residual; every number of c is multiplied by the weighted sum of b * x at that place, in this row and
// the ones before it. The cache keeps b * x.
struct ShortConvolution {
  uint32_t dim = 0;
  uint32_t width = 0;  // rows that a row sees, its own included
};

// What a recurrent layer keeps of a text: the states of its heads, which every row changes, as they were after
// the last kKept positions, so that the last row may run again; and the inputs of the convolution in front, of
// as many positions as the rows that may come see.
struct RecurrentState {
  static constexpr uint32_t kKept = 2;
  uint32_t n_heads = 0;
  uint32_t head_size = 0;  // numbers of the state of each
  uint32_t convolved = 0;  // numbers of a row that are convolved
  uint32_t width = 0;      // rows that the convolution sees, its own included

  uint32_t kept_inputs() const { return width - 1 + kKept - 1; }  // of so many positions
};

// A feed-forward network that is many, of which a router chooses some for each row.
struct Experts {
  uint32_t n = 0;
  uint32_t n_chosen = 0;
  uint32_t dim = 0;         // of each
  uint32_t shared_dim = 0;  // of one more, gated too, that all rows go through; 0: there is none
  Scoring scoring = Scoring::softmax;
  bool normalised = false;  // the weights of a row's experts are divided by their sum
  float scale = 1;          // of those weights
  // Groups of neighbouring experts; a row's experts are of its best groups.
  uint32_t n_groups = 1;
  uint32_t n_groups_chosen = 1;
  uint32_t group_best = 1;  // a group counts as much as so many of its best together
  // Beside the layer's own network, each behind a norm of its own and before one; else instead of it. The
  // router has its norm, too, and its logits are multiplied by a number.
  bool beside_dense = false;
  float router_scale = 1;
  // Where there is a limit, experts compute clamp(gate) * sigmoid(alpha * clamp(gate)) * (clamp(up) + 1).
  float limit = 0;
  float alpha = 0;
};

// Alternating updates (AltUp, Baykal et al., 2023): the residual is several rows side by side. Before a
// layer all of them are predicted, from each other; the layer computes one; what it changed corrects all.
// How much, a router says, of the row at hand.
struct ResidualStreams {
  uint32_t n = 0;
  uint32_t active = 0;  // the one that layers compute
  bool is_scaled =
      true;  // what a layer's own embedding is multiplied with, by numbers of the layer
};

struct LayerDescriptor {
  Mixer mixer = Mixer::attention;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float attention_scale = 0;
  float attention_soft_cap = 0;  // 0: none
  // Positions that a row sees, its own included; of an encoder: on each side of it. 0: all.
  uint32_t window = 0;
  float alibi_bias = 0;  // scores fall with the distance, ALiBi's largest bias; 0: none
  // Norms that the family always has; where a layer has their weights, it has them anyway.
  bool head_norms = false;         // per head of Q and of K
  bool norms_all_heads = false;    // one norm of all numbers of Q, and of K, instead
  bool norms_behind_rope = false;  // they follow the rotary positions; else they go before
  bool post_norms = false;         // behind attention and behind the feed-forward network
  bool value_norms = false;        // per head of V, without a weight
  bool values_are_keys = false;    // V is what the weights of K make, before K's norm
  // What attention makes is multiplied by sigmoids, whose inputs lie beside each head's query.
  bool output_gate = false;
  // The layer before it whose keys and values it reads; nothing: it has its own.
  std::optional<uint32_t> kv_from;
  RopeStyle rope_style = RopeStyle::none;
  uint32_t rope_dim = 0;
  float rope_theta = 0;
  float rope_linear_factor = 1;
  float rope_dynamic_factor = 1;
  float query_growth = 0;  // as in ModelConfig
  uint32_t query_growth_length = 0;
  float rotated_factor = 1;  // what rotates is multiplied by it, of Q and of K
  bool rope_factors = true;  // whether the model's factors of frequencies and on Q and K hold here
  FeedForward feed_forward = FeedForward::gated;
  Activation activation = Activation::silu;
  uint32_t ffn_dim = 0;
  // Activation sparsity (Gemma 3n): gate = max(gate - (mean + gate_cut * standard deviation), 0) over a row.
  std::optional<float> gate_cut;
  // Beside attention a branch of few numbers (LAuReL, Menghani et al., 2024), of the same normed input x:
  // x + norm(right(left(x))). The residual with both is multiplied by the root of a half.
  bool has_branch = false;
  std::optional<Latent> latent;
  std::optional<ShortConvolution> convolution;  // where the mixer is one
  std::optional<Scan> scan;                     // where it is one, or has one
  std::optional<DeltaRule> delta_rule;          // where it is one
  std::optional<RecurrentState> state;          // of those two

  bool attends() const { return mixer == Mixer::attention || mixer == Mixer::attention_and_scan; }
  // What the cache keeps of a position (of recurrence: RecurrentState): so many heads, of so many numbers; and
  // whether values lie beside the keys, or are part of them.
  uint32_t n_cached_heads() const { return latent || convolution ? 1 : n_kv_heads; }
  uint32_t cached_dim() const {
    if (convolution) return convolution->dim;
    return latent ? latent->rank + rope_dim : head_dim;
  }
  bool caches_values() const { return !latent && !convolution; }
  // Numbers that attention makes of a row.
  uint32_t attended_dim() const { return n_heads * (latent ? latent->value_dim : head_dim); }
  std::optional<Experts> experts;  // instead of one network of ffn_dim, or beside it
  float output_scale = 1;          // of the residual behind the layer; a tensor says it
  LayerFactors factors;
};

// An encoder in front of a decoder: two convolutions over frames of a log-mel spectrogram, of which the
// second halves their number, and layers whose rows see each other. What comes out is what the
// decoder's layers attend to.
struct AudioEncoder {
  uint32_t n_mels = 0;
  uint32_t n_positions = 0;
  std::vector<LayerDescriptor> layers;
  // Of each of the decoder's layers, a bit for each head whose attention to the encoder's positions says
  // when a token is said; empty: nobody knows.
  std::vector<uint32_t> alignment_heads = {};

  uint32_t n_alignment_heads() const {
    uint32_t n = 0;
    for (const uint32_t heads : alignment_heads) n += static_cast<uint32_t>(std::popcount(heads));
    return n;
  }
  static constexpr uint32_t kFramesPerPosition = 2;
  uint32_t n_frames() const { return kFramesPerPosition * n_positions; }
};

// An encoder of images in front of a decoder (SigLIP, Zhai et al., 2023, as Gemma 3 has it). Patches become rows that
// all see each other; squares of them are averaged, normed and projected to vectors that are rows of the
// text.
struct ImageEncoder {
  ImageConfig is;
  std::vector<LayerDescriptor> layers;

  static constexpr uint32_t kChannels = 3;
  uint32_t n_patches() const { return is.patches_per_side * is.patches_per_side; }
  uint32_t n_tokens() const { return is.tokens_per_side * is.tokens_per_side; }
  uint32_t patch_numbers() const { return kChannels * is.patch_size * is.patch_size; }
  // Patches that are averaged into a token; they lie side by side among the rows.
  uint32_t patches_per_token() const { return n_patches() / n_tokens(); }
  // Of the patches, in the order in which they are rows, the number in the order of the image.
  uint32_t place_of(uint32_t row) const {
    const uint32_t side = is.patches_per_side / is.tokens_per_side;
    const uint32_t token = row / (side * side), within = row % (side * side);
    const uint32_t y = token / is.tokens_per_side * side + within / side;
    const uint32_t x = token % is.tokens_per_side * side + within % side;
    return y * is.patches_per_side + x;
  }
};

struct ArchDescriptor {
  // An encoder, or a decoder used as one: a text's rows run in one step, attend to each other and
  // leave nothing in a cache; what comes out are the pooled rows, or a classifier's scores of them.
  bool embeds = false;
  bool causal = true;  // false: every row sees the rows behind it too
  RopeStyle row_style =
      RopeStyle::halves;  // how rows of Q and K lie, of layers without positions too
  NormKind norm = NormKind::rms;
  NormPlace norm_place = NormPlace::before;
  bool parallel = false;  // attention and feed-forward both read the layer's one normed input
  Pooling pooling = Pooling::mean;  // of an encoder, where the caller does not say
  uint32_t dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  float norm_epsilon = 0;
  float embedding_scale = 1;
  float residual_scale = 1;  // of what attention and feed-forward add to the residual
  float logit_scale = 1;
  uint32_t per_layer_dim = 0;  // numbers of a token for each layer (per-layer embeddings); 0: none
  uint32_t position_offset = 0;  // the row of the position embedding that position 0 has
  Activation head_activation = Activation::tanh;  // of a classifier's dense layer
  std::array<Activation, 2> dense_activations{Activation::none, Activation::none};
  float logit_soft_cap = 0;             // 0: none
  std::vector<LayerDescriptor> layers;  // a prediction head's last
  // Of these, of a prediction head: 0 or 1. It makes of a row, and of the token behind it, logits of the token behind
  // that one.
  uint32_t n_ahead = 0;
  std::optional<ResidualStreams> streams;
  std::optional<AudioEncoder> audio;  // its texts are what is said in a window of speech
  std::optional<ImageEncoder> images;
};

// How many of the layers every row goes through: those of a prediction head are behind them.
inline uint32_t n_own_layers(const ArchDescriptor& arch) {
  return static_cast<uint32_t>(arch.layers.size()) - arch.n_ahead;
}
inline uint32_t n_own_layers(const ModelConfig& config) {
  return static_cast<uint32_t>(config.layers.size()) - config.n_ahead;
}

}  // namespace akunu
