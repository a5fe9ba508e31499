#include "cache/groups.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

// Of a text: the ends of its last two prompts, where the next ones usually go on.
constexpr uint32_t kCheckpoints = 2;

CacheKind kind_of_positions(const LayerDescriptor& layer) {
  if (const auto* convolution = layer.find<ShortConvolution>())
    return InputCache{{convolution->width}};
  if (const Attention* attention = layer.attention(); attention && attention->window > 0)
    return WindowCache{attention->window};
  return FullCache{};
}

LayerShape shape_of_state(uint32_t index, const RecurrentState& state) {
  return {.layer = index,
          .n_heads = 1,
          .key_bytes = row_bytes(Format::f32,
                                 uint64_t{RecurrentState::kKept} * state.n_heads * state.head_size),
          .value_bytes = row_bytes(Format::f32, uint64_t{state.kept_inputs()} * state.convolved),
          .n_positions = 1,
          .n_kept_inputs = state.kept_inputs()};
}

LayerShape shape_of_positions(uint32_t index, const CachedRow& row, Format format) {
  return {.layer = index,
          .n_heads = row.n_heads,
          .key_bytes = row_bytes(format_of_keys(format), row.dim),
          .value_bytes = row.has_values ? row_bytes(format, row.dim) : 0,
          .n_positions = kPagePositions};
}

// Refuses a layer that reads the keys and values of another layer with other heads, or of one that keeps too few.
void check_source(const ArchDescriptor& arch, uint32_t index) {
  const LayerDescriptor& layer = arch.layers[index];
  const uint32_t from = *layer.kv_from();
  const std::string who = "layer " + std::to_string(index) +
                          " reads the keys and values of layer " + std::to_string(from);
  if (from >= index || arch.layers[from].kv_from())
    throw ModelFormatError(who + ", which does not have its own before it");
  const Attention* const source = arch.layers[from].attention();
  if (source == nullptr || layer.cached() != source->cached())
    throw ModelFormatError(who + ", whose heads are others");
  const uint32_t window = layer.attention()->window;
  if (source->window != 0 && (window == 0 || window > source->window))
    throw ModelFormatError(who + ", which keeps only " + std::to_string(source->window) +
                           " positions of them");
}

// Blocks lie along a head, and only attention to keys and values of a text reads them.
void check_blocks(const ArchDescriptor& arch, Format format) {
  const FormatInfo& info = format_info(format);
  if (info.block_size == 1) return;
  const std::string wanted = "kv_type is " + std::string(info.name) + "; ";
  const std::string instead = ": choose f16 or f32";
  if (arch.audio) throw ArgumentError(wanted + "models of speech do not have that" + instead);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    const LayerDescriptor& layer = arch.layers[i];
    const std::string who = "layer " + std::to_string(i);
    if (layer.has<LatentAttention>())
      throw ArgumentError(wanted + who + " keeps latents, which are not kept so" + instead);
    // What others keep is F32 anyway, or nothing.
    if (layer.attention() == nullptr) continue;
    const uint32_t dim = layer.attention()->head_dim;
    if (dim % info.block_size != 0)
      throw ArgumentError(wanted + "heads of " + who + " have " + std::to_string(dim) +
                          " numbers, which are no multiple of " + std::to_string(info.block_size) +
                          instead);
  }
}

struct NameOf {
  std::string operator()(const FullCache&) const { return "full"; }
  std::string operator()(const WindowCache& kind) const {
    return "window " + std::to_string(kind.window);
  }
  std::string operator()(const InputCache& kind) const {
    return "inputs " + std::to_string(kind.window);
  }
  std::string operator()(const StateCache&) const { return "states"; }
  std::string operator()(const CrossCache&) const { return "encoder"; }
};

}  // namespace

std::string name_of(const CacheKind& kind) { return std::visit(NameOf{}, kind); }

Entries FullCache::needed(uint32_t, uint32_t n_positions) const {
  return {0, pages_for(n_positions)};
}

uint32_t FullCache::reusable(const Held& held, uint32_t most) const {
  const auto missing = std::ranges::find(held.pages, kNoPage);
  return static_cast<uint32_t>(
      std::min<uint64_t>(most, covered(static_cast<size_t>(missing - held.pages.begin()))));
}

uint32_t FullCache::most_pages(uint32_t n_positions, uint32_t) const {
  return pages_for(n_positions);
}

Entries WindowCache::needed(uint32_t n_done, uint32_t n_positions) const {
  const uint32_t first_seen = n_done < window ? 0 : n_done + 1 - window;
  return {first_seen / kPagePositions, pages_for(n_positions)};
}

uint32_t WindowCache::reusable(const Held& held, uint32_t most) const {
  auto n = static_cast<uint32_t>(std::min<uint64_t>(most, covered(held.pages.size())));
  while (n > 0) {
    const Entries entries = needed(n, n);
    uint32_t end = entries.end;
    while (end > entries.first && held.pages[end - 1] != kNoPage) --end;
    if (end <= entries.first) break;
    n = (end - 1) * kPagePositions;  // before the page that is not there
  }
  return n;
}

uint32_t WindowCache::most_pages(uint32_t n_positions, uint32_t n_rows) const {
  // The first row sees window - 1 positions before its own, and they may lie across pages anyhow.
  return std::min(pages_for(n_positions), pages_for(uint64_t{window} + n_rows - 2) + 1);
}

// The longest of: what an entry has of the last n_kept places up to `last`, its own last one.
uint32_t StateCache::reusable(const Held& held, uint32_t most) const {
  uint32_t best = 0;
  const auto consider = [&](uint32_t last, size_t entry, uint32_t limit) {
    const uint32_t n = std::min({last, most, limit});
    if (n + n_kept > last && entry < held.pages.size() && held.pages[entry] != kNoPage)
      best = std::max(best, n);
  };
  consider(held.n_run, 0, held.n_done);
  for (size_t i = 0; i < held.checkpoints.size(); ++i)
    consider(held.checkpoints[i], 1 + i, held.n_done);
  return best;
}

std::optional<uint32_t> StateCache::entry_of(const Held& held, uint32_t n) const {
  const auto is_there = [&](size_t entry) {
    return entry < held.pages.size() && held.pages[entry] != kNoPage;
  };
  const auto has = [&](uint32_t last) { return n <= last && n + n_kept > last; };
  const auto place = std::ranges::lower_bound(held.checkpoints, n);
  const auto i = static_cast<size_t>(place - held.checkpoints.begin());
  const bool is_checkpoint = place != held.checkpoints.end() && has(*place) && is_there(1 + i);
  // A checkpoint right there has what came before it, too.
  if (is_checkpoint && *place == n) return static_cast<uint32_t>(1 + i);
  if (has(held.n_run) && is_there(0)) return 0;
  if (is_checkpoint) return static_cast<uint32_t>(1 + i);
  return std::nullopt;
}

uint32_t CrossCache::reusable(const Held& held, uint32_t most) const {
  const bool is_whole = held.pages.size() >= pages_for(n_positions) &&
                        std::ranges::find(held.pages, kNoPage) == held.pages.end();
  return is_whole ? most : 0;
}

uint64_t GroupShape::page_bytes() const {
  uint64_t bytes = 0;
  for (const LayerShape& layer : layers) bytes += layer.page_bytes();
  return bytes;
}

uint32_t table_entries(std::span<const GroupShape> groups, uint32_t context) {
  uint32_t most = 0;
  for (const GroupShape& group : groups) most = std::max(most, group.needed(0, context).end);
  return most;
}

std::vector<GroupShape> cache_groups(const ArchDescriptor& arch, Format format) {
  std::vector<GroupShape> groups;
  if (arch.embeds) return groups;
  check_blocks(arch, format);
  for (uint32_t i = 0; i < arch.layers.size(); ++i) {
    const LayerDescriptor& layer = arch.layers[i];
    if (layer.kv_from()) check_source(arch, i);
    const auto group_of = [&](const CacheKind& kind, Format of_group) -> GroupShape& {
      const auto group = std::ranges::find(groups, kind, &GroupShape::kind);
      return group != groups.end() ? *group : groups.emplace_back(GroupShape{kind, of_group, {}});
    };
    if (const std::optional<RecurrentState> state = layer.state())
      group_of(StateCache{.n_checkpoints = kCheckpoints, .n_kept = RecurrentState::kKept},
               Format::f32)
          .layers.push_back(shape_of_state(i, *state));
    if (const std::optional<CachedRow> row = layer.cached(); row && !layer.kv_from()) {
      const Format of_group = layer.has<ShortConvolution>() ? Format::f32 : format;
      group_of(kind_of_positions(layer), of_group)
          .layers.push_back(shape_of_positions(i, *row, of_group));
    }
  }
  if (!arch.audio) return groups;
  GroupShape& cross =
      groups.emplace_back(GroupShape{CrossCache{arch.audio->n_positions}, format, {}});
  for (uint32_t i = 0; i < arch.layers.size(); ++i) {
    const Attention& attention = *arch.layers[i].attention();
    const uint64_t bytes = row_bytes(format, attention.head_dim);
    cross.layers.push_back({i, attention.n_kv_heads, bytes, bytes});
  }
  return groups;
}

}  // namespace akunu
