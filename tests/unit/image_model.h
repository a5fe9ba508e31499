// The smallest model that reads images, a Gemma 3 with an encoder, as a directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace akunu::test {

constexpr uint32_t kImageToken = 63, kImageTokens = 64;

class ImageModelWriter {
 public:
  explicit ImageModelWriter(const std::filesystem::path& folder, uint32_t patches_per_side = 8,
                            uint32_t n_encoder_layers = 1, uint32_t n_layers = 1)
      : n_patches_(patches_per_side * patches_per_side),
        n_encoder_layers_(n_encoder_layers),
        n_layers_(n_layers) {
    std::string types;
    for (uint32_t i = 0; i < n_layers; ++i)
      types += (i > 0 ? "," : "") + std::string("\"full_attention\"");

    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << R"({
      "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
      "image_token_index": 63, "boi_token_index": 62, "eoi_token_index": 61, "mm_tokens_per_image": 64,
      "text_config": {
        "model_type": "gemma3_text", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 96,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
        "max_position_embeddings": 1024, "bos_token_id": 1, "eos_token_id": 1, "sliding_window": 512,
        "query_pre_attn_scalar": 32, "num_hidden_layers": )"
                                          << n_layers << R"(, "layer_types": [)" << types << R"(]},
      "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 64, "intermediate_size": 96,
        "num_attention_heads": 2, "patch_size": 14, "vision_use_head": false,
        "num_hidden_layers": )" << n_encoder_layers
                                          << R"(, "image_size": )" << 14 * patches_per_side << "}}";
    write_text();
    write_encoder();
    save(folder / "model.safetensors");
  }

 private:
  using Shape = std::vector<uint32_t>;

  void add(const std::string& name, const Shape& shape) {
    std::string lengths;
    size_t n = 1;
    for (const uint32_t length : shape) {
      lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
      n *= length;
    }
    const size_t begin = numbers_.size() * sizeof(float);
    for (size_t i = 0; i < n; ++i) {
      seed_ = seed_ * 1664525u + 1013904223u;  // Numerical Recipes' LCG
      numbers_.push_back(static_cast<float>(seed_ >> 8) * 0x1p-25f - 0.25f);
    }
    header_ += (header_.empty() ? "\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[)" + lengths +
               R"(],"data_offsets":[)" + std::to_string(begin) + "," +
               std::to_string(numbers_.size() * sizeof(float)) + "]}";
  }

  void write_text() {
    const std::string model = "language_model.model.";
    add(model + "embed_tokens.weight", {64, 64});
    add(model + "norm.weight", {64});
    const std::pair<const char*, Shape> of_layer[] = {
        {"self_attn.q_proj", {64, 64}},       {"self_attn.k_proj", {32, 64}},
        {"self_attn.v_proj", {32, 64}},       {"self_attn.o_proj", {64, 64}},
        {"self_attn.q_norm", {32}},           {"self_attn.k_norm", {32}},
        {"mlp.gate_proj", {96, 64}},          {"mlp.up_proj", {96, 64}},
        {"mlp.down_proj", {64, 96}},          {"input_layernorm", {64}},
        {"post_attention_layernorm", {64}},   {"pre_feedforward_layernorm", {64}},
        {"post_feedforward_layernorm", {64}},
    };
    for (uint32_t i = 0; i < n_layers_; ++i)
      for (const auto& [name, shape] : of_layer)
        add(model + "layers." + std::to_string(i) + "." + name + ".weight", shape);
  }

  void write_encoder() {
    const std::string tower = "vision_tower.vision_model.";
    const auto add_both = [&](const std::string& name, const Shape& shape) {
      add(tower + name + ".weight", shape);
      add(tower + name + ".bias", {shape[0]});
    };
    add_both("embeddings.patch_embedding", {64, 3, 14, 14});
    add(tower + "embeddings.position_embedding.weight", {n_patches_, 64});
    add_both("post_layernorm", {64});
    for (uint32_t i = 0; i < n_encoder_layers_; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      for (const char* const name : {"q", "k", "v", "out"})
        add_both(layer + "self_attn." + name + "_proj", {64, 64});
      for (const char* const name : {"layer_norm1", "layer_norm2"}) add_both(layer + name, {64});
      add_both(layer + "mlp.fc1", {96, 64});
      add_both(layer + "mlp.fc2", {64, 96});
    }
    add("multi_modal_projector.mm_input_projection_weight", {64, 64});
    add("multi_modal_projector.mm_soft_emb_norm.weight", {64});
  }

  void save(const std::filesystem::path& path) const {
    const std::string header = "{" + header_ + "}";
    std::ofstream file(path, std::ios::binary);
    const uint64_t length = header.size();
    for (int i = 0; i < 8; ++i) file.put(static_cast<char>(length >> 8 * i & 0xFF));
    file << header;
    file.write(reinterpret_cast<const char*>(numbers_.data()),
               static_cast<std::streamsize>(numbers_.size() * sizeof(float)));
  }

  const uint32_t n_patches_, n_encoder_layers_, n_layers_;
  std::string header_;
  std::vector<float> numbers_;
  uint32_t seed_ = 1;
};

}  // namespace akunu::test
