// Qwen3.5 (2026): qwen3 with gates on what attention makes, three of four layers having the gated delta
// rule instead. Its norms multiply by 1 + w; whoever makes the file adds the 1.
#include "files/huggingface/config.h"
#include "files/huggingface/delta_rule_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen35 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3::describe(config);
  give_delta_rules(arch, config);
  for (Attention& attention : attention_of(arch)) attention.output_gate = true;
  return arch;
}

namespace {

constexpr std::string_view kMixerWords[]{"linear_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "qwen3_5_text",
            .names = &hf::kCentredNormsNames,
            .n_heads = 16,
            .n_kv_heads = 4,
            .head_dim = 256,
            .vocab_size = 248320,
            .context_length = 32768,
            .rotating_part = 0.25f,
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_delta_rules(config, result.model); },
            .mixer_words = kMixerWords,
            .without_effect = "mtp_"}};
constexpr std::array kWithImages{ImageModel{"qwen3_5", "qwen3_5_text"}};

constexpr std::string_view kQwen35Cuts[]{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr PreTokenizer kQwen35{.splits = kQwen35Cuts};
constexpr PreTokenizerName kPreTokenizers[]{{"qwen35", &kQwen35}};

}  // namespace

constinit const Family family{
    .architecture = "qwen35",
    .titles = {.recurrent = "Qwen3.5 (gated delta rule)"},
    .describe = describe,
    .traits = {.recurs = true, .tiles_values = true, .predicts = true},
    .gguf_names = &gguf::kDeltaNames,
    .directories = kDirectories,
    .with_images = kWithImages,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::qwen35
