#include "inference/shards.h"

#include <array>
#include <string>
#include <string_view>

#include "core/error.h"

namespace akunu {
namespace {

struct SplitName {
  std::string_view name;  // behind "layers.N."
  Split split;
  bool of_experts = false;
};

// All others lie on every device. What a projection back to the residual adds besides, its bias, is added to the sum.
constexpr SplitName kSplitNames[] = {
    {"attention.q.weight", Split::rows},
    {"attention.k.weight", Split::rows},
    {"attention.v.weight", Split::rows},
    {"attention.q.bias", Split::rows},
    {"attention.k.bias", Split::rows},
    {"attention.v.bias", Split::rows},
    {"attention.output.weight", Split::columns},
    {"ffn.gate.weight", Split::rows},
    {"ffn.up.weight", Split::rows},
    {"ffn.gate.bias", Split::rows},
    {"ffn.up.bias", Split::rows},
    {"ffn.down.weight", Split::columns},
    {"ffn.experts.gate.weight", Split::rows, true},
    {"ffn.experts.up.weight", Split::rows, true},
    {"ffn.experts.down.weight", Split::columns, true},
    {"ffn.shared.gate.weight", Split::rows},
    {"ffn.shared.up.weight", Split::rows},
    {"ffn.shared.down.weight", Split::columns},
};

// Of "layers.3.ffn.up.weight": "ffn.up.weight"; empty where it is no layer's.
std::string_view name_in_layer(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {};
  const size_t dot = name.find('.', kLayers.size());
  return dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
}

[[noreturn]] void refuse(const std::string& why, uint32_t n_ranks) {
  throw UnsupportedModelError(why + "; it cannot be divided among " + std::to_string(n_ranks) +
                              " GPUs. Load it with gpus=1");
}

uint32_t divided(const char* what, uint32_t n, uint32_t n_ranks) {
  if (n % n_ranks != 0) refuse("the model has " + std::to_string(n) + " " + what, n_ranks);
  return n / n_ranks;
}

// What of a model is not divided yet.
const char* whole_part(const ArchDescriptor& arch) {
  if (arch.embeds) return "it makes vectors of texts";
  if (arch.audio) return "it hears speech";
  if (arch.streams) return "its residual is several streams";
  if (arch.per_layer_dim > 0) return "its layers have embeddings of their own";
  if (arch.parallel) return "its attention and feed-forward network are computed beside each other";
  return nullptr;
}

const char* whole_part(const LayerDescriptor& layer) {
  if (layer.has<LatentAttention>()) return "its attention has latents";
  const auto* const attention = layer.find<Attention>();
  if (attention == nullptr) return "layers have something else than attention";
  if (attention->head_norms == HeadNorms::all) return "one norm is of all heads";
  if (attention->has_branch) return "layers have branches";
  if (!layer.feed_forward) return "layers have no feed-forward network";
  if (layer.feed_forward->gate_cut) return "gates are cut by all numbers of a row";
  if (layer.feed_forward->experts && layer.feed_forward->experts->beside_dense)
    return "experts stand beside a dense network";
  return nullptr;
}

}  // namespace

ArchDescriptor share_of(const ArchDescriptor& arch, uint32_t n_ranks) {
  const auto check = [&](const char* whole) {
    if (whole != nullptr)
      refuse("models of this kind are computed by one GPU (" + std::string(whole) + ")", n_ranks);
  };
  check(whole_part(arch));
  ArchDescriptor share = arch;
  for (LayerDescriptor& layer : share.layers) {
    check(whole_part(layer));
    Attention& attention = *layer.attention();
    FeedForward& network = *layer.feed_forward;
    attention.n_heads = divided("heads in a layer", attention.n_heads, n_ranks);
    attention.n_kv_heads =
        divided("heads of keys and values in a layer", attention.n_kv_heads, n_ranks);
    if (!network.experts) {
      network.dim = divided("columns in a feed-forward network", network.dim, n_ranks);
      continue;
    }
    network.experts->dim = divided("columns in an expert", network.experts->dim, n_ranks);
    network.experts->shared_dim =
        divided("columns in an expert of all rows", network.experts->shared_dim, n_ranks);
  }
  return share;
}

void split_tensors(ModelSource& source, uint32_t n_ranks) {
  for (SourceTensor& tensor : source.tensors) {
    const std::string_view name = name_in_layer(tensor.name);
    // Each device would add them: to its share, or to the sum once too often.
    if (name.starts_with("attention.sinks") ||
        (name.starts_with("ffn.experts.") && name.ends_with(".bias")))
      refuse(tensor.label() + " is not divided yet", n_ranks);
    for (const SplitName& each : kSplitNames) {
      if (each.name != name) continue;
      // A vector has one row, and is split as a matrix of that row.
      tensor.split = tensor.n_dims == 1 ? Split::columns : each.split;
      if (each.of_experts) tensor.n_matrices = tensor.shape[0];
      const uint64_t n = tensor.split == Split::rows
                             ? tensor.rows() / tensor.n_matrices
                             : tensor.k() / format_info(tensor.format).block_size;
      if (n % n_ranks != 0)
        refuse(tensor.label() + " has " + std::to_string(n) +
                   (tensor.split == Split::rows ? " rows" : " blocks of numbers in a row"),
               n_ranks);
    }
  }
}

}  // namespace akunu
