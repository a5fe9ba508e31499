// What of a Hugging Face directory reads images: its numbers, and its tensors where they are stored in another
// way than the engine wants.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"
#include "files/huggingface/model_directory.h"
#include "files/huggingface/tensors.h"

namespace akunu {

// Read the vision_config of a config.json; these two families have SigLIP as their vision encoder.
ImageConfig read_gemma3_images(ConfigObject& whole, ConfigObject& vision);
ImageConfig read_idefics3_images(ConfigObject& whole, ConfigObject& vision);

// Qwen2-VL has its own vision encoder.
ImageConfig read_qwen2_images(ConfigObject& whole, ConfigObject& vision);

// What name rules call a tensor of the encoder of images or behind it, whatever stands before it in the file:
// "vision_tower.", "multi_modal_projector." or "visual." and more.
std::optional<std::string> name_of_image_tensor(std::string_view name);
bool has_image_tensors(const ModelDirectory& directory);

// The weights of the convolution that makes rows of patches: a row for each result, its numbers in the order channel,
// y, x. MLX has the channel last.
bool is_patch_embedding(std::string_view name);
SourceTensor patch_embedding(const HfTensor& located);
// Whether it is stored as [inputs, outputs].
bool is_image_projection(std::string_view name);

}  // namespace akunu
