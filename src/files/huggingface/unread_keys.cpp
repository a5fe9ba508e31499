#include "files/huggingface/unread_keys.h"

#include <algorithm>

namespace akunu {
namespace {

// Of training, of how code runs, of other tasks; biases are seen by their tensors. Sorted.
// clang-format off
constexpr std::string_view kWithoutEffect[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_model_name_or_path", "_name_or_path",
    "add_classification_head", "architectures", "attention_bias", "attention_dropout",
    "attention_head_dim", "attention_out_bias", "attention_probs_dropout_prob", "attn_pdrop",
    "auto_map", "aux_loss_alpha", "boi_token_index", "bos_token_id", "cache_implementation",
    "capacity_factor", "chunk_size_feed_forward", "cla_share_factor", "class_num",
    "classifier_bias", "classifier_dropout", "clf_pooling", "cls_token_id", "compile_model",
    "decoder_bias", "decoder_start_token_id", "dense_list", "deterministic_flash_attn", "dtype",
    "embd_pdrop", "embedding_dropout", "eod_token_id", "eoi_token_index", "eos_token_id", "ep_size",
    "experts_per_token", "finetuning_task", "fused_bias_fc", "fused_dropout_add_ln",
    "gradient_checkpointing", "hidden_dropout", "hidden_dropout_prob", "id2label", "im_end_id",
    "im_newline_id", "im_start_id", "image_token_id", "image_token_index", "init_method",
    "initial_context_length", "initializer_cutoff_factor", "initializer_range", "is_causal",
    "is_decoder", "label2id", "layer_switch", "logits_to_keep", "mask_init_id", "mask_token",
    "mask_token_id", "max_trained_positions", "mlp_bias", "mlp_dropout", "mm_tokens_per_image",
    "model_type", "moe_drop_tokens", "moe_norm_min", "moe_random_routing_dropped_token",
    "norm_type", "normalization_function",
    "num_experts_per_tok", "num_hidden_layers", "num_media_embeds", "order_of_interleaved_layers",
    "org_vocab_size", "output_attentions", "output_hidden_states", "output_router_logits", "pad_id",
    "pad_token", "pad_token_id", "pad_vocab_size_multiple", "pool_type", "position_embedding_type",
    "position_embedding_xdrope", "pretraining_tp", "problem_type", "qkv_bias", "reference_compile",
    "repad_logits_with_grad", "resid_pdrop", "residual_dropout", "return_dict",
    "router_aux_loss_coef", "router_jitter_noise", "sentence_transformers", "sep_token_id",
    "seq_aux", "sparse_pred_ignore_index", "sparse_prediction", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "text_end_id", "text_start_id", "time_step_limit", "tokenizer_class",
    "torch_dtype", "torchscript", "transformers_version", "type_vocab_size", "unk_token_id",
    "use_bias", "use_cache", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
    "use_parallel_embedding", "use_rotary_pos_emb", "video_token_id", "vision_config",
    "vision_end_token_id", "vision_start_token_id", "vision_token_id",
};
// clang-format on
static_assert(std::ranges::is_sorted(kWithoutEffect));

}  // namespace

bool has_no_effect(std::string_view key) { return std::ranges::binary_search(kWithoutEffect, key); }

}  // namespace akunu
