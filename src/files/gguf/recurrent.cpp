#include "files/gguf/recurrent.h"

#include "core/error.h"

namespace akunu {
namespace {

// The length of a layer's heads, from that of all of them.
uint32_t head_of_inner(const GgufKeys& keys, uint32_t n_heads) {
  const uint32_t inner = keys.required("ssm.inner_size");
  if (n_heads == 0 || inner % n_heads != 0)
    throw ModelFormatError(keys.path() + ": " + keys.key("ssm.inner_size") + " is " +
                           std::to_string(inner) + ", which " + std::to_string(n_heads) +
                           " heads cannot share");
  return inner / n_heads;
}

}  // namespace

// The number of heads is called "time_step_rank".
void read_gguf_scan(const GgufKeys& keys, Scan& scan) {
  scan.n_heads = keys.required("ssm.time_step_rank");
  scan.n_groups = keys.required("ssm.group_count");
  scan.state_dim = keys.required("ssm.state_size");
  scan.width = keys.required("ssm.conv_kernel");
  scan.head_dim = head_of_inner(keys, scan.n_heads);
}

// GGUF calls the numbers of the delta rule what they are in Mamba: the number of key heads is
// "group_count", their length "state_size". One layer of each `full_attention_interval` has attention.
void read_gguf_delta_rule(const GgufKeys& keys, const FamilyTraits& family, ModelConfig& config) {
  DeltaRule& rule = config.delta_rule;
  rule.n_key_heads = keys.required("ssm.group_count");
  rule.n_value_heads = keys.required("ssm.time_step_rank");
  rule.key_dim = keys.required("ssm.state_size");
  rule.width = keys.required("ssm.conv_kernel");
  rule.value_dim = head_of_inner(keys, rule.n_value_heads);
  rule.is_tiled = family.tiles_values;
  const uint32_t period = keys.optional("full_attention_interval").value_or(4);
  if (period == 0)
    throw ModelFormatError(keys.path() + ": " + keys.key("full_attention_interval") + " is 0");
  for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].recurs = (i + 1) % period != 0;
}

// It has as many heads as attention, of queries, keys and values.
void read_gguf_channels(const GgufKeys& keys, ModelConfig& config) {
  const uint32_t n_heads = config.layers.empty() ? 0 : config.layers[0].n_heads;
  const uint32_t head_dim = keys.required("kda.head_dim");
  config.delta_rule = {.n_key_heads = n_heads,
                       .n_value_heads = n_heads,
                       .key_dim = head_dim,
                       .value_dim = head_dim,
                       .width = keys.required("ssm.conv_kernel"),
                       .per_channel = true};
}

}  // namespace akunu
