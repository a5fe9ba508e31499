// A layer is made of blocks: one that mixes the rows of a text (Mixer), then a feed-forward network. Each block is added
// to the residual. Blocks know their own shapes and what the cache keeps for them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "core/blocks/attention.h"
#include "core/blocks/delta_rule.h"
#include "core/blocks/feed_forward.h"
#include "core/blocks/latent_attention.h"
#include "core/blocks/scan.h"
#include "core/blocks/short_convolution.h"

namespace akunu {

// Both read the layer's normed input, and both are added to the residual (Falcon-H1, 2025).
struct AttentionAndScan {
  Attention attention;
  Scan scan;

  CachedRow cached() const { return attention.cached(); }
  RecurrentState state() const { return scan.state(); }
};

// The layer is a feed-forward network alone.
struct NoMixer {};

using Mixer = std::variant<NoMixer, Attention, LatentAttention, ShortConvolution, DeltaRule, Scan,
                           AttentionAndScan>;

struct LayerDescriptor {
  Mixer mixer = NoMixer{};
  std::optional<FeedForward> feed_forward = {};
  float output_scale = 1;  // of the residual after the layer; a tensor says it

  template <class Block>
  bool has() const {
    return std::holds_alternative<Block>(mixer);
  }
  // Null where the mixer is another block.
  template <class Block>
  const Block* find() const {
    return std::get_if<Block>(&mixer);
  }
  // Attention or a scan, also where the layer has both.
  const Attention* attention() const {
    if (const auto* both = find<AttentionAndScan>()) return &both->attention;
    return find<Attention>();
  }
  Attention* attention() { return const_cast<Attention*>(std::as_const(*this).attention()); }
  const Scan* scan() const {
    if (const auto* both = find<AttentionAndScan>()) return &both->scan;
    return find<Scan>();
  }
  // The rotary positions of attention or latent attention; null: the layer has neither.
  const Rope* rope() const {
    if (const auto* latent = find<LatentAttention>()) return &latent->rope;
    const Attention* const found = attention();
    return found != nullptr ? &found->rope : nullptr;
  }
  Rope* rope() { return const_cast<Rope*>(std::as_const(*this).rope()); }
  bool rotates() const { return rope() != nullptr && rope()->style != RopeStyle::none; }
  std::optional<uint32_t> kv_from() const {
    return attention() != nullptr ? attention()->kv_from : std::nullopt;
  }
  // What the cache keeps of each position, and of a text; nothing where the mixer keeps no such thing.
  std::optional<CachedRow> cached() const {
    return std::visit(
        []([[maybe_unused]] const auto& block) -> std::optional<CachedRow> {
          if constexpr (requires { block.cached(); }) return block.cached();
          return std::nullopt;
        },
        mixer);
  }
  std::optional<RecurrentState> state() const {
    return std::visit(
        []([[maybe_unused]] const auto& block) -> std::optional<RecurrentState> {
          if constexpr (requires { block.state(); }) return block.state();
          return std::nullopt;
        },
        mixer);
  }
};

}  // namespace akunu
