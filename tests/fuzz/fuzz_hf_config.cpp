// Any bytes either are a config.json that describes a model, or are refused with one of our two errors
// about files.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/arch.h"
#include "core/error.h"
#include "core/model_config.h"
#include "files/huggingface/config.h"
#include "files/huggingface/config_object.h"
#include "files/huggingface/quantization.h"
#include "models/common/describe.h"

namespace akunu {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a config was accepted although this does not hold: %s\n", what);
  std::abort();
}

void use(std::string_view text) {
  const JsonValue json = parse_json(text, "config.json");
  const HfConfig config = read_hf_config(json, "config.json");
  const ArchDescriptor arch = describe(config.model);
  require(arch.dim > 0 && arch.vocab_size > 0 && arch.context_length > 0, "there is a model");
  require(!arch.layers.empty(), "it has layers");
  for (const LayerDescriptor& layer : arch.layers) {
    const Attention* const attention = layer.attention();
    if (attention == nullptr) continue;
    require(attention->n_heads > 0 && attention->n_heads % attention->n_kv_heads == 0,
            "heads share evenly");
    const uint32_t rope_dim = attention->rope.dim;
    if (layer.rotates())
      require(rope_dim % 2 == 0 && rope_dim <= attention->head_dim, "a part rotates");
    require(std::isfinite(attention->scale), "attention has a scale");
    for (const std::vector<float>* divisors : {&config.rope_divisors, &config.rope_long_divisors})
      for (const float divisor : *divisors)
        require(std::isfinite(divisor) && divisor > 0, "frequencies are divided");
    require(config.rope_divisors.empty() || config.rope_divisors.size() == rope_dim / 2,
            "each frequency has a divisor");
    require(config.rope_long_divisors.empty() ||
                config.rope_long_divisors.size() == config.rope_divisors.size(),
            "longer contexts have as many");
  }
  ConfigObject whole(json, "config.json");
  const std::string layer = "model.layers.0.mlp.up_proj";
  HfQuantization(whole).mlx_groups(layer, {.words = 16, .scales = 2}, layer);
}

void check_message(const Error& error) {
  const std::string_view message = error.what();
  require(!message.empty() && message.size() < 4096, "a message is short");
  for (const char letter : message)
    require(static_cast<unsigned char>(letter) >= 0x20, "a message is one printable line");
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    akunu::use({reinterpret_cast<const char*>(data), size});
  } catch (const akunu::ModelFormatError& error) {
    akunu::check_message(error);
  } catch (const akunu::UnsupportedModelError& error) {
    akunu::check_message(error);
  }
  return 0;
}
