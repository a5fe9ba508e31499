// A prediction head (multi-token prediction, DeepSeek-V3, 2024; as Qwen3-Next and Qwen3.5 have it): one more layer behind
// the last, which guesses the token after next.
//
// Of row i it reads the last hidden state h, behind the model's last norm, and token i + 1, which is known by then:
//   x = join [norm(embedding of token i + 1) | norm(h)]
// x goes through the layer, whose keys and values are a cache as of any other layer, at position i; a norm of its own, and
// the model's output, make logits of token i + 2.
#include "core/forward_builder.h"
#include "core/kernel_params.h"

namespace akunu {

void ForwardBuilder::predict_ahead() {
  const uint32_t index = n_own_layers(arch_), dim = arch_.dim;
  const Layer layer_ahead{index, arch_.layers[index], "layers." + std::to_string(index) + ".",
                          "ahead "};
  const std::string name = layer_ahead.name + "ahead.";
  emit_to(forward_.ahead);
  // A row's token there is the one behind it.
  Binding behind = memory_.tokens;
  behind.offset += sizeof(uint32_t);
  const ValueId tokens = bound("tokens ahead", behind);
  const ValueId embedded = rows("ahead embedding", dim), hidden = rows("ahead hidden", dim);
  const ValueId first = rows("ahead first", dim), second = rows("ahead second", dim);
  const ValueId joined = rows("ahead joined", uint64_t{2} * dim);
  emit(Operation::embed, "ahead embedding",
       {tokens, weight("token_embedding.weight", arch_.vocab_size, dim), embedded},
       EmbedParams{dim, arch_.vocab_size, memory_.log_stride, arch_.embedding_scale, 0, {}});
  norm("ahead embedding norm", embedded, name + "embedding_norm", first);
  norm("ahead last norm", residual_, "output_norm", hidden);
  norm("ahead hidden norm", hidden, name + "hidden_norm", second);
  emit(Operation::join_rows, "ahead join", {first, second, kNoValue, joined},
       JoinRowsParams{dim, dim, 0, 0});
  const ActivationKind kind = kind_for(name + "join.weight", dim, 2 * dim);
  const ValueId input =
      kind == ActivationKind::f32 ? joined : activation("ahead input", kind, uint64_t{2} * dim);
  if (input != joined)
    emit(Operation::activate, "ahead input", {joined, input},
         ActivateParams{2 * dim, kActivationNone, 0, 0});
  residual_ = rows("ahead residual", dim);
  matmul("ahead join", input, name + "join.weight", dim, 2 * dim, residual_);
  bias_if_present("ahead join bias", residual_, name + "join.bias", dim);
  angles_.clear();
  query_angles_.clear();
  angles();
  layer(layer_ahead);

  emit_to(forward_.ahead_logits);
  head({residual_, name + "output_norm", "ahead "});

  emit_to(forward_.ahead_choose);
  emit(Operation::sample, "ahead sample",
       {forward_.logits_value, tokens, bound("picked", memory_.picked),
        bound("masks", memory_.masks), bound("options", memory_.options)},
       SampleParams{arch_.vocab_size, memory_.log_stride, {}});
}

}  // namespace akunu
