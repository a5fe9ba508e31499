// Canonical tensor names: what the rest of the engine calls a tensor, whatever file it came from.
//   token_embedding.weight  output_norm.weight  output.weight  rope_factors.weight
//   layers.N.attention_norm.weight  layers.N.ffn_norm.weight
//   layers.N.attention.{q,k,v,output}.{weight,bias}  layers.N.attention.{q_norm,k_norm}.weight
//   layers.N.ffn.{gate,up,down}.{weight,bias}
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace akunu {

// Nothing for a name that is not in the table.
std::optional<std::string> canonical_from_gguf(std::string_view name);

}  // namespace akunu
