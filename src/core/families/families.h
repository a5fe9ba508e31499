// Families of models: each is a function that fills an ArchDescriptor from what the file says, written as what it has
// beside another one. arch.cpp has the table of their names, and what holds for all of them.
#pragma once

#include <string_view>

#include "core/arch.h"

namespace akunu::families {

// Throw ModelFormatError for a number that is missing or makes no sense.
void require(uint32_t value, std::string_view what, const ModelConfig& config);
void require_positive(float value, std::string_view what);

// decoder_families.cpp
ArchDescriptor llama(const ModelConfig& config);
ArchDescriptor qwen2(const ModelConfig& config);
ArchDescriptor qwen3(const ModelConfig& config);
ArchDescriptor phi3(const ModelConfig& config);
ArchDescriptor gemma(const ModelConfig& config);
void give_windows(ArchDescriptor& arch, const ModelConfig& config, size_t period,
                  uint32_t usual_window);
void give_attention_scale(ArchDescriptor& arch, const ModelConfig& config, size_t n_largest);
ArchDescriptor gemma2(const ModelConfig& config);
ArchDescriptor gemma3(const ModelConfig& config);
ImageEncoder image_encoder(const ImageConfig& config);
ArchDescriptor granite(const ModelConfig& config);
ArchDescriptor mistral3(const ModelConfig& config);
ArchDescriptor smollm3(const ModelConfig& config);
ArchDescriptor olmo2(const ModelConfig& config);
ArchDescriptor glm4(const ModelConfig& config);
ArchDescriptor ernie4_5(const ModelConfig& config);
ArchDescriptor seed_oss(const ModelConfig& config);
ArchDescriptor hunyuan_dense(const ModelConfig& config);
ArchDescriptor exaone4(const ModelConfig& config);
ArchDescriptor starcoder2(const ModelConfig& config);
ArchDescriptor command_r(const ModelConfig& config);
ArchDescriptor cohere2(const ModelConfig& config);
ArchDescriptor gemma4(const ModelConfig& config);
ArchDescriptor gemma3n(const ModelConfig& config);

// expert_families.cpp
void give_experts(ArchDescriptor& arch, const ModelConfig& config, Scoring scoring,
                  bool normalised);
void give_latents(ArchDescriptor& arch, const ModelConfig& config);
ArchDescriptor deepseek2(const ModelConfig& config);
ArchDescriptor minicpm3(const ModelConfig& config);
ArchDescriptor qwen3_moe(const ModelConfig& config);
ArchDescriptor qwen2_moe(const ModelConfig& config);
ArchDescriptor llama_or_mixtral(const ModelConfig& config);
ArchDescriptor olmoe(const ModelConfig& config);
ArchDescriptor granite_moe(const ModelConfig& config);
ArchDescriptor glm4_moe(const ModelConfig& config);
ArchDescriptor ernie4_5_moe(const ModelConfig& config);
ArchDescriptor hunyuan_moe(const ModelConfig& config);
ArchDescriptor deepseek(const ModelConfig& config);
ArchDescriptor gpt_oss(const ModelConfig& config);

// recurrent_families.cpp
ArchDescriptor lfm2(const ModelConfig& config);
ArchDescriptor qwen35(const ModelConfig& config);
ArchDescriptor qwen35_moe(const ModelConfig& config);
ArchDescriptor kimi_linear(const ModelConfig& config);
ArchDescriptor granite_hybrid(const ModelConfig& config);
ArchDescriptor nemotron_h(const ModelConfig& config);
ArchDescriptor nemotron_h_moe(const ModelConfig& config);
ArchDescriptor falcon_h1(const ModelConfig& config);

// encoder_families.cpp
ArchDescriptor gemma_embedding(const ModelConfig& config);
ArchDescriptor eurobert(const ModelConfig& config);
ArchDescriptor modern_bert(const ModelConfig& config);
ArchDescriptor nomic_bert(const ModelConfig& config);
ArchDescriptor bert(const ModelConfig& config);
ArchDescriptor jina_bert_v2(const ModelConfig& config);
ArchDescriptor whisper(const ModelConfig& config);

}  // namespace akunu::families
