// A layer that reads another layer's keys and values (Attention::kv_from): it has none of its
// own, and computes what a layer would that had the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "cache/kv_cache.h"
#include "cache/scratch.h"
#include "cache/sequence_store.h"
#include "core/error.h"
#include "core/fuse.h"
#include "core/table.h"
#include "registry.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

constexpr uint32_t kDim = 24, kHeadDim = 8, kHeads = 3, kKvHeads = 1, kFfn = 32, kVocab = 40;
constexpr uint32_t kTokens = 40;
constexpr std::chrono::milliseconds kWait{600'000};

// Layers 1 and 2 see a window. Layer 1 adds nothing to the residual, and layer 2 projects as it does:
// so layer 2's keys and values are those of layer 1, whether it computes or reads them.
Attention& attention_of(ArchDescriptor& arch, size_t layer) {
  return *arch.layers[layer].attention();
}

ArchDescriptor arch_of(bool reads) {
  const LayerDescriptor layer{
      .mixer = Attention{.n_heads = kHeads,
                         .n_kv_heads = kKvHeads,
                         .head_dim = kHeadDim,
                         .scale = 0.3f,
                         .rope = {.style = RopeStyle::halves, .dim = kHeadDim}},
      .feed_forward = FeedForward{.dim = kFfn}};
  ArchDescriptor arch;
  arch.dim = kDim;
  arch.vocab_size = kVocab;
  arch.norm_epsilon = 0.01f;
  arch.layers.assign(3, layer);
  attention_of(arch, 1).window = attention_of(arch, 2).window = 9;
  if (reads) {
    attention_of(arch, 2).kv_from = 1;
    attention_of(arch, 2).window = 5;
  }
  return arch;
}

class SmallModel {
 public:
  SmallModel(const std::shared_ptr<Device>& device, const ArchDescriptor& arch,
             std::vector<std::string> without = {})
      : device_(device),
        arch_(arch),
        groups_(cache_groups(arch, Format::f32)),
        cache_(device, arch, groups_, std::vector<uint32_t>(groups_.size(), 2)),
        store_(device, 1, 2 * kPagePositions, groups_) {
    for (const std::string name :
         {"token_embedding.weight", "output_norm.weight", "layers.0.", "layers.1.", "layers.2."}) {
      if (!name.ends_with('.')) {
        add(name, name, name.starts_with("output") ? 1 : kVocab);
        continue;
      }
      const std::string like = name == "layers.2." ? "layers.1." : name;  // of what makes its keys
      const float silent = name == "layers.1." ? 0.0f : 1.0f;
      add(name + "attention_norm.weight", like + "attention_norm", 1);
      add(name + "attention.q.weight", name + "q", kHeads * kHeadDim);
      add(name + "attention.k.weight", like + "k", kKvHeads * kHeadDim);
      add(name + "attention.v.weight", like + "v", kKvHeads * kHeadDim);
      add(name + "attention.output.weight", name + "output", kDim, kHeads * kHeadDim, silent);
      add(name + "ffn_norm.weight", name + "ffn_norm", 1);
      add(name + "ffn.gate.weight", name + "gate", kFfn);
      add(name + "ffn.up.weight", name + "up", kFfn);
      add(name + "ffn.down.weight", name + "down", kDim, kFfn, silent);
    }
    for (const std::string& name : without) tensors_.erase(name);
  }

  const KvCache& cache() const { return cache_; }
  const std::vector<std::string>& labels() const { return labels_; }

  // Logits of every token, all of them rows of one step.
  std::vector<float> logits(RowClass row_class, uint32_t n) {
    ForwardMemory memory;
    memory.layers = cache_.layers();
    memory.tokens = {store_.tokens(), 0};
    memory.log_stride = store_.log_stride();
    memory.picked = picked_.binding();
    memory.page_table_stride = store_.page_table_stride();
    for (uint32_t group = 0; group < groups_.size(); ++group)
      memory.page_table_bases.push_back(store_.page_table_base(group));
    std::vector<float> inverse{1.0f, 0.3f, 0.1f, 0.03f};
    const OwnedBuffer frequencies = upload(inverse);

    Values values;
    Forward forward = build_forward(arch_, tensors_, std::vector<Binding>(3, frequencies.binding()),
                                    memory, *device_, row_class, values);
    fuse(forward, values, *device_, row_class);
    const Scratch scratch(device_, values, std::vector<bool>(values.size(), true), n, n);

    std::vector<Row> rows(n);
    for (uint32_t i = 0; i < n; ++i)
      rows[i] = {.sequence = 0,
                 .position = i,
                 .kv_length = i + 1,
                 .draw = 0,
                 .flags = kRowActive,
                 .head_row = i,
                 .span = 0,
                 .adapter = kNone,
                 .last_position = kNone,
                 .second_segment = kNone,
                 .pool = kPoolOwn,
                 .rope_offsets = {},
                 .reserved = {}};
    const std::vector<Span> spans{{0, 0, n, 0}};
    std::vector<uint32_t> tokens(n);
    for (uint32_t i = 0; i < n; ++i) tokens[i] = i * 7 % kVocab;
    device_->write(store_.log(0, 0), std::as_bytes(std::span(tokens)));
    const std::array<uint32_t, 2> pages{1, 0};
    for (uint32_t group = 0; group < groups_.size(); ++group)
      device_->write(store_.page_table(group, 0), std::as_bytes(std::span(pages)));

    device_->set_limits({.max_rows = n, .max_updates = 1, .max_update_bytes = 64, .max_passes = 2});
    const OwnedBuffer row_memory(device_, n * sizeof(Row), "rows");
    const OwnedBuffer span_memory(device_, n * sizeof(Span), "spans");
    const OwnedBuffer status(device_, n * sizeof(Status), "status");
    const StepMemory step{row_memory.get(), span_memory.get(), store_.pages(), store_.records(),
                          status.get()};
    std::array<Pass, 2> passes;
    labels_.clear();
    for (size_t i = 0; i < 2; ++i) {
      DispatchTable table = build_table(i == 0 ? forward.body : forward.logits, values,
                                        scratch.bindings(), *device_, row_class);
      labels_.insert(labels_.end(), table.labels.begin(), table.labels.end());
      passes[i] = {device_->compile(std::move(table), step), 0, n, 0, n, 0, 1};
    }
    Replay replay;
    replay.rows = rows;
    replay.spans = spans;
    replay.passes = passes;
    check(device_->wait(device_->submit(replay), kWait).finished, "a step ends");
    std::vector<float> logits(size_t{n} * kVocab);
    device_->read(scratch.bindings()[forward.logits_value],
                  std::as_writable_bytes(std::span(logits)));
    for (const Pass& pass : passes) device_->release_program(pass.program);
    return logits;
  }

 private:
  OwnedBuffer upload(const std::vector<float>& numbers) {
    OwnedBuffer buffer(device_, numbers.size() * sizeof(float), "numbers");
    device_->write(buffer.binding(), std::as_bytes(std::span(numbers)));
    return buffer;
  }

  // Numbers that depend on `seed` alone.
  void add(const std::string& name, const std::string& seed, uint32_t n, uint32_t k = kDim,
           float scale = 1) {
    std::seed_seq sequence(seed.begin(), seed.end());
    std::mt19937 random(sequence);
    std::vector<float>& numbers = numbers_[name];
    for (uint32_t i = 0; i < n * k; ++i)
      numbers.push_back(scale * (static_cast<float>(random() % 2001) / 1000.0f - 1) /
                        std::sqrt(static_cast<float>(n == 1 ? 1 : k)));
    if (n == 1) {  // a vector
      vectors_.push_back(upload(numbers));
      Weight vector{.format = Format::f32, .rows = 1, .k = k};
      vector.planes[0] = vectors_.back().binding();
      tensors_[name] = vector;
      return;
    }
    WeightSource source{.name = name, .format = Format::f32, .rows = n, .k = k};
    source.parts[0].bytes = std::as_bytes(std::span(numbers));
    weights_.emplace_back(device_, source);
    tensors_[name] = weights_.back().get();
  }

  std::shared_ptr<Device> device_;
  ArchDescriptor arch_;
  std::vector<GroupShape> groups_;
  KvCache cache_;
  SequenceStore store_;
  std::map<std::string, std::vector<float>> numbers_;
  std::vector<OwnedBuffer> vectors_;
  std::vector<OwnedWeight> weights_;
  TensorMap tensors_;
  OwnedBuffer picked_{device_, kTokens * sizeof(uint32_t), "picked"};
  std::vector<std::string> labels_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void test_it_computes_what_a_layer_would_that_had_the_same() {
  const auto device = create_device("cpu", {.threads = 2});
  ArchDescriptor own = arch_of(false);
  attention_of(own, 2).window = 5;  // a group of its own, of the same numbers
  SmallModel computes(device, own);
  SmallModel reads(device, arch_of(true),
                   {"layers.2.attention.k.weight", "layers.2.attention.v.weight"});
  for (const auto& [row_class, n] :
       {std::pair(RowClass::many, kTokens), std::pair(RowClass::few, 16u)}) {
    const std::vector<float> logits = computes.logits(row_class, n);
    check(same_bits(logits, reads.logits(row_class, n)), "the same text, bit for bit");
    check(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }), "of numbers");
    const auto writes = [](const SmallModel& model, const std::string& layer) {
      return std::ranges::count_if(model.labels(), [&](const std::string& label) {
        return label.starts_with(layer) && contains(label, " k");
      });
    };
    check(writes(computes, "layer 2") > 0 && writes(reads, "layer 2") == 0,
          "nothing of it projects or writes keys and values");
  }
  // The test sees what it is about: other keys are another text.
  ArchDescriptor other = arch_of(true);
  attention_of(other, 2).kv_from = 0;
  SmallModel wrong(device, other);
  check(!same_bits(wrong.logits(RowClass::many, kTokens), computes.logits(RowClass::many, kTokens)),
        "another layer's keys and values are another text");
}

void test_it_has_no_memory() {
  const auto device = create_device("cpu", {.threads = 1});
  const SmallModel reads(device, arch_of(true));
  check(reads.cache().groups().size() == 2, "one group that sees everything, and one of a window");
  check(reads.cache().groups()[1].shape.layers.size() == 1, "which holds a single layer");
  const std::vector<LayerCache>& layers = reads.cache().layers();
  check(layers[2].keys.buffer.handle == layers[1].keys.buffer.handle &&
            layers[2].values.buffer.handle == layers[1].values.buffer.handle &&
            layers[2].group == layers[1].group,
        "what it reads is the other's");
}

void test_a_layer_that_cannot_be_read_is_refused() {
  const auto refusal = [](auto&& change) {
    ArchDescriptor arch = arch_of(true);
    change(arch);
    return message_of<ModelFormatError>([&] { cache_groups(arch, Format::f16); });
  };
  check(contains(
            refusal([](auto& arch) { attention_of(arch, 1).kv_from = 2; }),
            "layer 1 reads the keys and values of layer 2, which does not have its own before it"),
        "of a later one");
  check(contains(refusal([](auto& arch) { attention_of(arch, 1).kv_from = 0; }),
                 "layer 2 reads the keys and values of layer 1, which does not have its own"),
        "of one that reads itself");
  check(contains(refusal([](auto& arch) { attention_of(arch, 1).head_dim = 16; }),
                 "whose heads are others"),
        "of other heads");
  check(contains(refusal([](auto& arch) { attention_of(arch, 2).window = 0; }),
                 "which keeps only 9 positions of them"),
        "of a window that is too short");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_it_computes_what_a_layer_would_that_had_the_same();
  test_it_has_no_memory();
  test_a_layer_that_cannot_be_read_is_refused();
  return summary();
}
