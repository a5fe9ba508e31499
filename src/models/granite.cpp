// Granite (IBM, 2024): llama with factors on embeddings, scores, what is added to the residual, and
// logits, which are divided by theirs. Of version 4 some models have no positions at all.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::granite {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_unrotated(arch, config, 0);
  give_attention_scale(arch, config, 0);
  if (config.embedding_scale != 0) arch.embedding_scale = config.embedding_scale;
  if (config.residual_scale != 0) arch.residual_scale = config.residual_scale;
  if (config.logit_scale != 0) arch.logit_scale = 1 / config.logit_scale;
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "granite", .own_keys = kMultipliers}};

// Granite 3.2 and 3.3.
constexpr std::array kThinking{ThinkingMarks{.signs = {"<think></think>", "<response></response>"},
                                             .opening = "<think>",
                                             .closing = "</think>",
                                             .answer_openings = {"<response>"},
                                             .answer_closings = {"</response>"}}};

}  // namespace

constinit const Family family{
    .architecture = "granite",
    .titles = {.dense = "Granite 3 and 4"},
    .describe = describe,
    .traits = {.attention_scale = true,
               .multipliers = true,
               .logit_scale = true,
               .may_not_rotate = true},
    .written = {.rope_factors = true, .attention_scale = true},
    .directories = kDirectories,
    .thinking = kThinking,
};

}  // namespace akunu::models::granite
