#include "inference/model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/fuse.h"
#include "core/table.h"
#include "weight/gguf_model.h"

namespace akunu {
namespace {

constexpr std::array kRowClasses{RowClass::single, RowClass::few, RowClass::many};

std::string mebibytes(uint64_t bytes) {
  const uint64_t tenths = (bytes * 10 + (1u << 19)) >> 20;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

// What `run` finds wrong with a model, said of its file.
template <class Run>
void blaming(const std::string& path, Run&& run) {
  try {
    run();
  } catch (const ModelFormatError& error) {
    throw ModelFormatError(path + ": " + error.what());
  } catch (const UnsupportedModelError& error) {
    throw UnsupportedModelError(path + ": " + error.what());
  }
}

// One forward pass per row class: kinds of activations and what fuses depend on it.
struct FusedForwards {
  Values values;
  std::array<Forward, 3> by_class;
  std::vector<bool> used;  // values that are an operand somewhere

  FusedForwards(const ArchDescriptor& arch, const TensorMap& tensors,
                const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                const Device& device) {
    for (const RowClass row_class : kRowClasses) {
      Forward& fused = by_class[static_cast<size_t>(row_class)];
      fused = build_forward(arch, tensors, inverse_frequencies, memory, device, row_class, values);
      fuse(fused, values, device, row_class);
    }
    used.resize(values.size());
    for (const Forward& fused : by_class)
      for (const std::vector<Node>* nodes : {&fused.body, &fused.logits, &fused.choose})
        for (const Node& node : *nodes)
          for (const ValueId id : node.operands)
            if (id != kNoValue) used[id] = true;
  }
};

// Bindings are empty: good for sizes only.
ForwardMemory memory_without_buffers(const ArchDescriptor& arch, Format kv_format) {
  ForwardMemory memory;
  memory.layers.resize(arch.layers.size());
  memory.cache_format = kv_format;
  memory.page_table_bases.assign(1, 0);
  return memory;
}

}  // namespace

std::unique_ptr<Model> Model::load(const std::string& path, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  std::unique_ptr<Model> model(new Model(std::move(device)));
  model->read(path);
  // A file that was cut meanwhile makes nonsense of the rest: why is the better answer.
  const auto blame_damage = [&] {
    if (const std::optional<std::string> damage = model->weights_->damage())
      throw ModelFormatError(*damage);
  };
  try {
    blaming(path, [&] {
      model->describe_layers();
      model->plan_context(options);
      model->allocate(options);
      model->compile();
    });
  } catch (const Error&) {
    blame_damage();
    throw;
  }
  blame_damage();
  model->file_.reset();  // the weights keep the mapping
  return model;
}

void Model::check_files() const {
  if (const std::optional<std::string> damage = weights_->damage()) throw DeviceError(*damage);
}

Model::~Model() {
  for (const Program& program : compiled_) device_->release_program(program);
}

void Model::read(const std::string& path) {
  file_ = GgufFile::open(path);
  try {
    config_ = read_config(*file_);
    weights_ = std::make_unique<Weights>(device_, *file_);
  } catch (const Error&) {
    if (const std::optional<std::string> damage = file_->damage()) throw ModelFormatError(*damage);
    throw;
  }
}

void Model::describe_layers() {
  arch_ = describe(config_);
  // The tensors of layers beyond the last would be ignored silently: refuse them.
  constexpr std::string_view kLayers = "layers.";
  for (const auto& [name, weight] : weights_->tensors()) {
    uint64_t layer = 0;
    if (!name.starts_with(kLayers)) continue;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    if (layer >= arch_.layers.size())
      throw ModelFormatError("there are tensors of layer " + std::to_string(layer) + ", but only " +
                             std::to_string(arch_.layers.size()) + " layers, counted from 0");
  }
  layer_frequencies_ = upload_frequencies();
}

// inverse_frequency[i] = theta^(-2i / rope_dim) / factor[i] / linear factor (Su et al., 2021; the
// factors are Llama 3.1's, computed by whoever made the file).
std::vector<Binding> Model::upload_frequencies() {
  std::vector<float> factors;
  if (const auto found = weights_->tensors().find("rope_factors.weight");
      found != weights_->tensors().end()) {
    factors.resize(found->second.k);
    device_->read(found->second.binding, std::as_writable_bytes(std::span(factors)));
  }
  std::map<std::tuple<uint32_t, float, float>, Binding> made;
  std::vector<Binding> bindings;
  for (const LayerDescriptor& layer : arch_.layers) {
    Binding& binding = made[{layer.rope_dim, layer.rope_theta, layer.rope_linear_factor}];
    if (!binding && layer.rope_style != RopeStyle::none) {
      const uint32_t n_pairs = layer.rope_dim / 2;
      if (!factors.empty() && factors.size() != n_pairs)
        throw ModelFormatError("tensor rope_freqs.weight has " + std::to_string(factors.size()) +
                               " factors; the rotary dimension " + std::to_string(layer.rope_dim) +
                               " asks for " + std::to_string(n_pairs));
      std::vector<float> inverse(n_pairs);
      for (uint32_t i = 0; i < n_pairs; ++i) {
        const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
        if (!(factor > 0) || !std::isfinite(factor))
          throw ModelFormatError("tensor rope_freqs.weight holds " + std::to_string(factor) +
                                 " at " + std::to_string(i) + "; factors must be positive");
        inverse[i] = static_cast<float>(
            std::pow(static_cast<double>(layer.rope_theta), -2.0 * i / layer.rope_dim) / factor /
            static_cast<double>(layer.rope_linear_factor));
      }
      frequencies_.emplace_back(device_, inverse.size() * sizeof(float), "constants");
      binding = frequencies_.back().binding();
      device_->write(binding, std::as_bytes(std::span(inverse)));
    }
    bindings.push_back(binding);
  }
  return bindings;
}

uint64_t Model::bytes_besides_cache(uint32_t context, Format kv_format) const {
  const FusedForwards fused(arch_, weights_->tensors(), layer_frequencies_,
                            memory_without_buffers(arch_, kv_format), *device_);
  return Scratch::bytes(fused.values, fused.used, max_rows(), max_head_rows()) +
         SequenceStore::bytes(kMaxSequences, context, 1) +
         uint64_t{max_rows()} * (sizeof(Row) + sizeof(Span) + sizeof(uint32_t)) + sizeof(Status);
}

// Decides context_ and n_pages_ from what was asked for and what there is, before taking any of it.
void Model::plan_context(const LoadOptions& options) {
  if (options.context && *options.context == 0)
    throw ArgumentError("context is 0; it must be at least 1 position");
  const uint32_t wanted = options.context.value_or(arch_.context_length);
  if (wanted > arch_.context_length)
    notes_.push_back("a context of " + std::to_string(wanted) + " positions is longer than the " +
                     std::to_string(arch_.context_length) + " that the model was trained on");

  uint64_t mapped = 0;  // the file's pages want to stay in memory as well
  for (const MemoryUse& use : device_->memory_use())
    if (use.mapped) mapped += use.bytes;
  const uint64_t available = device_->available_memory();
  const uint64_t page = KvCache::page_bytes(arch_, options.kv_format);
  const uint64_t fixed = bytes_besides_cache(wanted, options.kv_format) + mapped;
  const uint64_t for_cache = available > fixed ? available - fixed : 0;
  const uint64_t budget = options.kv_memory.value_or(for_cache);

  const auto describe_need = [&](uint32_t context) {
    return "a context of " + std::to_string(context) + " positions needs " +
           mebibytes(pages_for(context) * page) + " of cache, besides " + mebibytes(fixed) +
           " for weights and scratch; " + mebibytes(available) + " of memory are available";
  };
  if (options.kv_memory && *options.kv_memory > for_cache)
    throw OutOfMemoryError("kv_memory is " + mebibytes(*options.kv_memory) + "; " +
                           mebibytes(for_cache) + " are available for the cache");
  const uint64_t fitting_pages = std::min<uint64_t>(budget / page, pages_for(wanted));
  if (fitting_pages == 0)
    throw OutOfMemoryError(
        "no memory for a cache: one page of " + std::to_string(kPagePositions) +
        " positions needs " + mebibytes(page) + ", besides " + mebibytes(fixed) +
        " for weights and scratch; " + mebibytes(available) + " are available" +
        (options.kv_memory ? ", kv_memory allows " + mebibytes(*options.kv_memory) : ""));
  if (fitting_pages < pages_for(wanted)) {
    if (options.context)
      throw OutOfMemoryError(
          describe_need(wanted) +
          (options.kv_memory ? ", and kv_memory allows " + mebibytes(*options.kv_memory) : "") +
          "; ask for a shorter context");
    context_ = static_cast<uint32_t>(fitting_pages) * kPagePositions;
    notes_.push_back(
        "context reduced from " + std::to_string(wanted) + " to " + std::to_string(context_) +
        " positions: " + (options.kv_memory ? "kv_memory allows no more" : describe_need(wanted)));
  } else {
    context_ = wanted;
  }
  // The pool holds one full context, or all that kv_memory pays for (several shorter
  // conversations).
  n_pages_ = pages_for(context_);
  if (options.kv_memory)
    n_pages_ = static_cast<uint32_t>(
        std::clamp<uint64_t>(budget / page, n_pages_, uint64_t{n_pages_} * kMaxSequences));
}

void Model::allocate(const LoadOptions& options) {
  cache_ = std::make_unique<KvCache>(device_, arch_, options.kv_format, n_pages_);
  sequences_ = std::make_unique<SequenceStore>(device_, kMaxSequences, context_,
                                               static_cast<uint32_t>(cache_->groups().size()));
  rows_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(Row), "sequences");
  spans_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(Span), "sequences");
  picked_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(uint32_t), "sequences");
  status_ = OwnedBuffer(device_, sizeof(Status), "sequences");
}

void Model::compile() {
  const auto n_groups = static_cast<uint32_t>(cache_->groups().size());
  const uint64_t page_tables = uint64_t{n_groups} * pages_for(context_) * sizeof(uint32_t);
  device_->set_limits({.max_rows = max_rows(),
                       .max_updates = max_updates(),
                       .max_update_bytes = SequenceStore::bytes(1, context_, n_groups) +
                                           kMaxSequences * page_tables,
                       .max_passes = 8});

  ForwardMemory memory;
  memory.layers = cache_->layers();
  memory.cache_format = cache_->groups()[0].format;
  memory.tokens = {sequences_->tokens(), 0};
  memory.log_stride = sequences_->log_stride();
  memory.picked = picked_.binding();
  memory.page_table_stride = sequences_->page_table_stride();
  for (uint32_t group = 0; group < n_groups; ++group)
    memory.page_table_bases.push_back(sequences_->page_table_base(group));

  const FusedForwards fused(arch_, weights_->tensors(), layer_frequencies_, memory, *device_);
  scratch_ =
      std::make_unique<Scratch>(device_, fused.values, fused.used, max_rows(), max_head_rows());
  logits_ = scratch_->bindings()[fused.by_class[0].logits_value];

  const StepMemory step{rows_.get(), spans_.get(), sequences_->pages(), sequences_->records(),
                        status_.get()};
  const auto compile_nodes = [&](const std::vector<Node>& nodes, RowClass row_class) {
    DispatchTable table =
        build_table(nodes, fused.values, scratch_->bindings(), *device_, row_class);
    std::vector<std::string>& labels = labels_[static_cast<size_t>(row_class)];
    labels.insert(labels.end(), table.labels.begin(), table.labels.end());
    compiled_.push_back(device_->compile(std::move(table), step));
    return compiled_.back();
  };
  for (const RowClass row_class : kRowClasses) {
    const Forward& from = fused.by_class[static_cast<size_t>(row_class)];
    ClassPrograms& programs = programs_[static_cast<size_t>(row_class)];
    programs.body = compile_nodes(from.body, row_class);
    programs.logits = compile_nodes(from.logits, row_class);
  }
  const Forward& from = fused.by_class[static_cast<size_t>(RowClass::few)];
  choose_ = compile_nodes(from.choose, RowClass::few);
}

}  // namespace akunu
