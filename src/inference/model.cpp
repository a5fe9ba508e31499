// Loads a model. model.h says what a Model is.
//
// 1. What it does. `load` goes through the stages in order: weights onto the device (`import`),
//    the layers (`describe_layers`), adapters, how large context and cache are (`plan`),
//    frequencies of rotary positions (`write_frequencies`), memory (`allocate`), programs
//    (`compile`). The forward passes of the row classes are built twice (FusedForwards): in `plan`
//    without memory, for sizes and to refuse what no kernel computes, and in `compile` with it.
// 2. What bounds it. Importing weights, and the device's compiler where it has one. Load times:
//    docs/performance.md.
// 3. What it must not do. Take memory for cache and scratch before `plan` has said that the model
//    can be computed, or leave a tensor unread silently (`refuse_unused_tensors`). A file that was
//    cut meanwhile gets the blame for whatever fails (`blame_damage`).
// 4. Where to change it. What a pass computes: core/forward.cpp. How much memory is planned:
//    context_plan.cpp. What is written down of matmuls' inputs for quantising: fused_forwards.cpp.
#include "inference/model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/key_rotation.h"
#include "core/memory_left.h"
#include "core/table.h"
#include "inference/fused_forwards.h"
#include "inference/latent_weights.h"

namespace akunu {
namespace {

constexpr std::string_view kRopeFactors = "rope_factors.weight";
// Of long-RoPE: which of them holds depends on the context.
constexpr std::string_view kLongRopeFactors = "rope_factors_long.weight";
constexpr std::string_view kShortRopeFactors = "rope_factors_short.weight";

// Windows of speech, each with a text, for which there is a cache where nobody says how large it is.
constexpr uint32_t kUsualWindows = 6;
// Of each. With pages for fewer, beams of one window would push out those of another at every step.
constexpr uint32_t kUsualBeams = 5;

// Where `context` is not given, the cache gets room for this many positions before weights get the rest of a device's own
// memory.
constexpr uint32_t kContextBesideWeights = 8192;
// Bytes of a device's own memory that are left to the workspaces of commands, whose size is known only when programs
// are compiled.
constexpr uint64_t kKeptForWorkspaces = 64ull << 20;

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

std::string output_scale_name(size_t layer) {
  return "layers." + std::to_string(layer) + ".output_scale.weight";
}

// A tensor that no operation reads would be left out of what is computed: its model is refused.
void refuse_unused_tensors(const Weights& weights, const ArchDescriptor& arch,
                           const FusedForwards& fused) {
  std::set<std::string, std::less<>> used;
  for (size_t i = 0; i < arch.layers.size(); ++i) used.insert(output_scale_name(i));
  // write_frequencies reads them for the layers that rotate.
  for (const LayerDescriptor& layer : arch.layers)
    if (layer.rope_style != RopeStyle::none)
      for (const std::string_view name : {kRopeFactors, kLongRopeFactors, kShortRopeFactors})
        used.emplace(name);
  for (size_t id = 0; id < fused.values.size(); ++id)
    if (fused.used[id]) used.insert(fused.values[id].name);
  for (const auto& [name, weight] : weights.tensors())
    if (!used.contains(name))
      throw UnsupportedModelError("tensor " + weights.name_in_file(name) +
                                  " has no place in what akunu computes for this architecture; "
                                  "without it, the model would be another one");
}

// Dynamic NTK: a longer context turns slow frequencies slower still, by a larger base.
double stretched_theta(const LayerDescriptor& layer, uint32_t trained, uint32_t context) {
  const double theta = static_cast<double>(layer.rope_theta);
  const double factor = static_cast<double>(layer.rope_dynamic_factor);
  if (factor == 1 || context <= trained || layer.rope_dim <= 2) return theta;
  const double stretch = factor * context / trained - (factor - 1);
  return theta * std::pow(stretch, layer.rope_dim / (layer.rope_dim - 2.0));
}

// Bindings are empty: good for sizes and names only.
ForwardMemory memory_without_buffers(const ArchDescriptor& arch,
                                     const std::vector<GroupShape>& groups) {
  ForwardMemory memory;
  memory.layers = layers_without_memory(arch, groups);
  memory.cross = cross_without_memory(groups);
  memory.states = states_without_memory(groups);
  memory.page_table_bases.assign(groups.size(), 0);
  return memory;
}

}  // namespace

std::unique_ptr<Model> Model::load(const std::string& path, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  return load(open_model(path), std::move(device), options);
}

std::unique_ptr<Model> Model::load(const ModelSource& source, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  std::unique_ptr<Model> model(new Model(std::move(device)));
  model->is_observed_ = options.observed;
  model->import(source, options);
  // A file that was cut meanwhile makes nonsense of the rest: why is the better answer.
  const auto blame_damage = [&] {
    if (const std::optional<std::string> damage = model->weights_->damage())
      throw ModelFormatError(*damage);
  };
  try {
    blaming(source.path, [&] {
      model->describe_layers();
      model->find_alignment_heads(options);
      model->import_adapters(options);
      model->plan(options);
      model->write_frequencies();
      model->allocate();
      model->compile();
    });
  } catch (const Error&) {
    blame_damage();
    throw;
  }
  blame_damage();
  return model;
}

void Model::check_files() const {
  if (const std::optional<std::string> damage = weights_->damage()) throw DeviceError(*damage);
}

Model::~Model() {
  for (const Program& program : compiled_) device_->release_program(program);
}

void Model::import(const ModelSource& source, const LoadOptions& options) {
  const ModelSource readable = with_latent_floats(source);
  config_ = readable.config;
  if (options.gpu_memory && !device_->has_own_memory())
    throw ArgumentError("gpu_memory is for GPUs that have memory of their own; the device " +
                        std::string(device_->backend()) + " uses the host's");
  WeightPlacement placement;
  blaming(source.path, [&] {
    arch_ = describe(config_);
    size_steps(options);
    if (device_->has_own_memory()) placement = place(readable, options);
  });
  try {
    weights_ = std::make_unique<Weights>(  // keeps the files that the device reads
        device_, readable, placement.in_host_memory);
  } catch (const Error&) {
    if (const std::optional<std::string> damage = source.damage()) throw ModelFormatError(*damage);
    throw;
  }
}

// Decides, before any weight is loaded, which ones stay in the host's memory: those that do not fit on the device
// beside scratch and the cache of a context.
WeightPlacement Model::place(const ModelSource& source, const LoadOptions& options) {
  const TensorMap tensors = outlines(source);
  const FusedForwards fused(arch_, tensors, std::vector<Binding>(arch_.layers.size()),
                            memory_without_buffers(arch_, groups_), *device_, is_observed_, {});
  const ContextNeeds needs =
      context_needs(Scratch::bytes(fused.values, fused.used, max_scratch_rows(), max_head_rows()));
  const uint32_t context =
      options.context.value_or(std::min(arch_.context_length, kContextBesideWeights));
  const uint64_t left = memory_left(options).memory.value_or(UINT64_MAX);
  const uint64_t besides = context_bytes(options, needs, context);
  const uint64_t room = left - std::min(left, besides + kKeptForWorkspaces);
  WeightPlacement placement = place_weights(source.tensors, room);
  kept_free_ = kKeptForWorkspaces + placement.staged_bytes;
  if (placement.in_host_memory.empty()) return placement;
  host_weight_bytes_ = placement.host_bytes;
  notes_.push_back(
      "the GPU has no room for " + mebibytes(placement.host_bytes) + " of " +
      mebibytes(placement.host_bytes + placement.device_bytes) +
      " of weights, which stay in the host's memory, where it reads them: " + placement.what);
  return placement;
}

// Of the device, as far as the model may take it.
MemoryLeft Model::memory_left(const LoadOptions& options) const {
  MemoryLeft left = device_->memory_left();
  if (!options.gpu_memory) return left;
  uint64_t used = 0;
  for (const MemoryUse& use : device_->memory_use())
    if (!use.mapped) used += use.bytes;
  used -= std::min(used, host_weight_bytes_);
  const uint64_t allowed = *options.gpu_memory - std::min(*options.gpu_memory, used);
  left.memory = std::min(left.memory.value_or(allowed), allowed);
  return left;
}

void Model::describe_layers() {
  notes_.insert(notes_.begin(), config_.notes.begin(), config_.notes.end());
  note_threads();
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
  read_output_scales();
  place_ones();
  layer_frequencies_ = place_frequencies();
}

// The numbers that some models multiply the residual by behind a layer: kernels have them as parameters.
void Model::read_output_scales() {
  for (size_t i = 0; i < arch_.layers.size(); ++i) {
    const std::string name = output_scale_name(i);
    const auto found = weights_->tensors().find(name);
    if (found == weights_->tensors().end()) continue;
    const Weight& weight = found->second;
    if (weight.format != Format::f32 || weight.rows != 1 || weight.k != 1)
      throw ModelFormatError("tensor " + weights_->name_in_file(name) + " is [" +
                             std::to_string(weight.rows) + ", " + std::to_string(weight.k) +
                             "]; akunu has one number there");
    float scale = 0;
    device_->read(weight.planes[0], std::as_writable_bytes(std::span(&scale, 1)));
    if (!std::isfinite(scale))
      throw ModelFormatError("tensor " + weights_->name_in_file(name) + " holds no number");
    arch_.layers[i].output_scale = scale;
  }
}

void Model::place_ones() {
  uint32_t n = 0;
  for (const LayerDescriptor& layer : arch_.layers)
    if (layer.value_norms) n = std::max(n, layer.head_dim);
  if (n == 0) return;
  ones_ = OwnedBuffer(device_, n * sizeof(float), "constants");
  const std::vector<float> ones(n, 1.0f);
  device_->write(ones_.binding(), std::as_bytes(std::span(ones)));
}

void Model::import_adapters(const LoadOptions& options) {
  if (options.adapters.empty()) return;
  if (is_observed_) throw ArgumentError("a model that is observed takes no adapters");
  std::vector<AdapterSource> sources;
  for (const AdapterPath& each : options.adapters)
    sources.push_back(open_adapter(each, config_, arch_));
  adapters_ = Adapters(device_, sources, weights_->tensors());
}

// Threads that wait for a processor hold up the others at the end of every command.
void Model::note_threads() {
  const ChipConfig& chip = device_->chip();
  if (chip.processors == 0 || chip.workers <= chip.processors) return;
  notes_.push_back("threads is " + std::to_string(chip.workers) + ", and this process may use " +
                   std::to_string(chip.processors) +
                   (chip.processors == 1 ? " processor" : " processors") +
                   ": threads that have to wait for one slow all of them down; ask for " +
                   std::to_string(chip.processors) + ", or leave it out");
}

// One buffer for layers that rotate alike. write_frequencies fills them once the context is known.
std::vector<Binding> Model::place_frequencies() {
  std::map<std::tuple<uint32_t, float, float, float, bool>, Binding> made;
  std::vector<Binding> bindings;
  for (const LayerDescriptor& layer : arch_.layers) {
    Binding& binding = made[{layer.rope_dim, layer.rope_theta, layer.rope_linear_factor,
                             layer.rope_dynamic_factor, layer.rope_factors}];
    if (!binding && layer.rope_style != RopeStyle::none) {
      frequencies_.emplace_back(device_, layer.rope_dim / 2 * sizeof(float), "constants");
      binding = frequencies_.back().binding();
    }
    bindings.push_back(binding);
  }
  return bindings;
}

// The tensor of factors that holds for this context, if the file has any: the one there is, or of two
// the long one where the context goes beyond what the model was first trained on. It is chosen by the
// context and not by a text's length: rows of texts of all lengths share steps and prefixes.
std::optional<std::string_view> Model::rope_factors() {
  const TensorMap& tensors = weights_->tensors();
  const bool has_long = tensors.contains(kLongRopeFactors);
  if (has_long != tensors.contains(kShortRopeFactors))
    throw ModelFormatError(
        "tensor " + weights_->name_in_file(has_long ? kLongRopeFactors : kShortRopeFactors) +
        " is there, its twin for " + (has_long ? "short" : "long") + " contexts is not");
  if (tensors.contains(kRopeFactors)) {
    if (has_long)
      throw ModelFormatError("tensor " + weights_->name_in_file(kRopeFactors) +
                             " is there, and long and short ones besides");
    return kRopeFactors;
  }
  if (!has_long) return std::nullopt;
  const uint32_t original =
      config_.rope_original_context != 0 ? config_.rope_original_context : config_.context_length;
  if (context_ <= original) return kShortRopeFactors;
  notes_.push_back("positions turn by the factors for contexts beyond " + std::to_string(original) +
                   " (long-RoPE), in short texts too: context is " + std::to_string(context_));
  return kLongRopeFactors;
}

// inverse_frequency[i] = theta^(-2i / rope_dim) / factor[i] / linear factor (Su et al., 2021; the
// factors are Llama 3.1's, computed by whoever made the file, or long-RoPE's).
void Model::write_frequencies() {
  std::vector<float> factors;
  const std::optional<std::string_view> name = rope_factors();
  if (name) {
    const Weight& found = weights_->tensors().find(*name)->second;
    if (found.format != Format::f32 || found.rows != 1)
      throw UnsupportedModelError("tensor " + weights_->name_in_file(*name) +
                                  " is a matrix; akunu has a vector there");
    factors.resize(found.k);
    device_->read(found.planes[0], std::as_writable_bytes(std::span(factors)));
  }
  for (size_t n = 0; n < arch_.layers.size(); ++n) {  // layers that rotate alike share a buffer
    const LayerDescriptor& layer = arch_.layers[n];
    if (layer.rope_style == RopeStyle::none) continue;
    const uint32_t n_pairs = layer.rope_dim / 2;
    if (name && layer.rope_factors && factors.size() != n_pairs)
      throw ModelFormatError("tensor " + weights_->name_in_file(*name) + " has " +
                             std::to_string(factors.size()) + " factors; the rotary dimension " +
                             std::to_string(layer.rope_dim) + " asks for " +
                             std::to_string(n_pairs));
    const double theta = stretched_theta(layer, config_.context_length, context_);
    std::vector<float> inverse(n_pairs);
    for (uint32_t i = 0; i < n_pairs; ++i) {
      const double factor =
          factors.empty() || !layer.rope_factors ? 1.0 : static_cast<double>(factors[i]);
      if (!(factor > 0) || !std::isfinite(factor))
        throw ModelFormatError("tensor " + weights_->name_in_file(*name) + " holds " +
                               std::to_string(factor) + " at " + std::to_string(i) +
                               "; factors must be positive");
      inverse[i] = static_cast<float>(std::pow(theta, -2.0 * i / layer.rope_dim) / factor /
                                      static_cast<double>(layer.rope_linear_factor));
    }
    device_->write(layer_frequencies_[n], std::as_bytes(std::span(inverse)));
  }
}

std::vector<std::byte> Model::frequencies() const {
  std::vector<std::byte> all;
  for (const OwnedBuffer& each : frequencies_) {
    const size_t n = all.size();
    all.resize(n + each.get().size);
    device_->read(each.binding(), std::span(all).subspan(n));
  }
  return all;
}

void Model::size_steps(const LoadOptions& options) {
  if (options.context && *options.context == 0)
    throw ArgumentError("context is 0; it must be at least 1 position");
  groups_ = cache_groups(arch_, options.kv_format);
  max_prompt_rows_ = device_->chip().max_prompt_rows;
  if (arch_.embeds) {
    const uint32_t context = options.context.value_or(arch_.context_length);
    if (context > arch_.context_length)
      throw ArgumentError("context is " + std::to_string(context) + "; this encoder has " +
                          std::to_string(arch_.context_length) + " positions");
    max_prompt_rows_ = std::max(max_prompt_rows_, context);
  }
}

ContextNeeds Model::context_needs(uint64_t scratch_bytes) const {
  ContextNeeds needs{.trained_context = arch_.context_length,
                     .groups = groups_,
                     .n_rows = max_rows_in_flight(),
                     .max_texts = max_texts(),
                     .masks = max_head_rows() * mask_bytes(),
                     .usual_contexts = arch_.audio ? kUsualWindows : 1,
                     .branches = arch_.audio ? kUsualBeams - 1 : 0};
  needs.fixed =
      scratch_bytes +
      uint64_t{max_rows()} * (sizeof(Row) + sizeof(Span) + sizeof(Status) + sizeof(uint32_t)) +
      needs.masks + frames_bytes() + alignment_bytes();
  return needs;
}

// Decides context_ and n_pages_, and refuses what cannot be computed, before taking any memory.
void Model::plan(const LoadOptions& options) {
  const FusedForwards fused(arch_, weights_->tensors(), layer_frequencies_,
                            memory_without_buffers(arch_, groups_), *device_, is_observed_,
                            adapters_.targets());
  refuse_unused_tensors(*weights_, arch_, fused);

  ContextNeeds needs =
      context_needs(Scratch::bytes(fused.values, fused.used, max_scratch_rows(), max_head_rows()));
  for (const MemoryUse& use : device_->memory_use())
    if (use.mapped) needs.mapped += use.bytes;
  MemoryLeft left = memory_left(options);
  if (left.memory) *left.memory -= std::min(*left.memory, kept_free_);
  const ContextPlan plan = plan_context(options, needs, left);
  context_ = plan.context;
  n_pages_ = plan.n_pages;
  notes_.insert(notes_.end(), plan.notes.begin(), plan.notes.end());
}

void Model::find_alignment_heads(const LoadOptions& options) {
  if (!arch_.audio) {
    if (!options.alignment_heads.empty())
      throw ArgumentError(config_.architecture +
                          " has no encoder of audio, so it has no alignment heads");
    return;
  }
  arch_.audio->alignment_heads.assign(arch_.layers.size(), 0);
  for (const AlignmentHead& each : options.alignment_heads) {
    if (each.layer >= arch_.layers.size() || each.head >= arch_.layers[each.layer].n_heads)
      throw ModelFormatError("there is no head " + std::to_string(each.head) + " of layer " +
                             std::to_string(each.layer) + " to align words with");
    if (each.head >= 32) throw UnsupportedModelError("of a layer's heads, the first 32 can align");
    arch_.audio->alignment_heads[each.layer] |= 1u << each.head;
  }
}

uint64_t Model::frames_bytes() const {
  return arch_.audio ? uint64_t{arch_.audio->n_frames()} * arch_.audio->n_mels * sizeof(float) : 0;
}

void Model::allocate() {
  cache_ = std::make_unique<KvCache>(device_, arch_, groups_, n_pages_);
  sequences_ = std::make_unique<SequenceStore>(device_, max_texts(), context_, groups_);
  rows_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(Row), "sequences");
  spans_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(Span), "sequences");
  picked_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(uint32_t), "sequences");
  masks_ = OwnedBuffer(device_, max_head_rows() * mask_bytes(), "sequences");
  statuses_ = OwnedBuffer(device_, uint64_t{max_rows()} * sizeof(Status), "sequences");
  if (arch_.audio) frames_ = OwnedBuffer(device_, frames_bytes(), "scratch");
  if (alignment_width() > 0) alignment_ = OwnedBuffer(device_, alignment_bytes(), "scratch");
}

void Model::compile() {
  const auto n_groups = static_cast<uint32_t>(groups_.size());
  // A pass for the body and one for the logits of every group of generated rows and of the prompts; one
  // that samples for the generated rows, and one for the prompts.
  const uint32_t n_row_groups = (max_generated_rows() + kMaxFewRows - 1) / kMaxFewRows + 1;
  limits_ = {.max_rows = max_rows(),
             // Records, options, logs, drafted tokens, masks and page tables.
             .max_updates = max_texts() * (5 + n_groups),
             .max_update_bytes =
                 max_update_bytes(context_, groups_, max_texts(), max_head_rows() * mask_bytes()),
             .max_passes = 2 * n_row_groups + 2};
  device_->set_limits(limits_);

  ForwardMemory memory;
  memory.layers = cache_->layers();
  memory.cross = cache_->cross();
  memory.states = cache_->states();
  memory.frames = frames_.binding();
  memory.alignment = alignment_.binding();
  memory.tokens = {sequences_->tokens(), 0};
  memory.log_stride = sequences_->log_stride();
  memory.picked = picked_.binding();
  memory.masks = masks_.binding();
  memory.options = {sequences_->options(), 0};
  memory.ones = ones_.binding();
  memory.logprobs = {sequences_->logprobs(), 0};
  memory.page_table_stride = sequences_->page_table_stride();
  for (uint32_t group = 0; group < n_groups; ++group)
    memory.page_table_bases.push_back(sequences_->page_table_base(group));

  const FusedForwards fused(arch_, weights_->tensors(), layer_frequencies_, memory, *device_,
                            is_observed_, adapters_.targets());
  scratch_ = std::make_unique<Scratch>(device_, fused.values, fused.used, max_scratch_rows(),
                                       max_head_rows());
  logits_ = scratch_->bindings()[fused.by_class[0].logits_value];

  const StepMemory step{rows_.get(), spans_.get(), sequences_->pages(), sequences_->records(),
                        statuses_.get()};
  const auto compile_nodes = [&](const std::vector<Node>& nodes, RowClass row_class,
                                 bool is_another = false) {
    DispatchTable table =
        build_table(nodes, fused.values, scratch_->bindings(), *device_, row_class);
    std::vector<std::string>& labels = labels_[static_cast<size_t>(row_class)];
    if (!is_another) labels.insert(labels.end(), table.labels.begin(), table.labels.end());
    compiled_.push_back(device_->compile(std::move(table), step));
    return compiled_.back();
  };
  for (const RowClass row_class : kRowClasses) {
    const Forward& from = fused.by_class[static_cast<size_t>(row_class)];
    ClassPrograms& programs = programs_[static_cast<size_t>(row_class)];
    programs.body = compile_nodes(from.body, row_class);
    programs.logits = compile_nodes(from.logits, row_class);
    if (adapters_.targets().empty()) continue;
    const Forward& with = fused.adapted[static_cast<size_t>(row_class)];
    // The head is not adapted.
    adapted_programs_[static_cast<size_t>(row_class)] = {
        .body = compile_nodes(with.body, row_class, true), .logits = programs.logits};
  }
  if (arch_.audio) {
    const Forward& many = fused.by_class[static_cast<size_t>(RowClass::many)];
    first_convolution_ = compile_nodes(many.first_convolution, RowClass::many, true);
    encode_ = compile_nodes(many.encode, RowClass::many, true);
    encoded_ = scratch_->bindings()[many.encoded];
    if (!many.aligned.empty()) aligned_ = compile_nodes(many.aligned, RowClass::many, true);
  }
  const Forward& from = fused.by_class[static_cast<size_t>(RowClass::few)];
  if (arch_.embeds) return;  // an encoder chooses nothing
  compile_rotations(memory, step);
  choose_scored_ = compile_nodes(from.choose_scored, RowClass::few);
  choose_ = compile_nodes(from.choose, RowClass::few);
  if (!is_observed_) return;
  for (const ObservedPart& part : fused.observed) {
    Observation each{.program = compile_nodes(part.nodes, RowClass::many),
                     .weight = weights_->name_in_file(fused.values[part.weight].name),
                     .input = scratch_->bindings()[part.input],
                     .k = part.stack.k,
                     .n_inputs = part.stack.n_inputs,
                     .n_matrices = part.stack.n_experts,
                     .n_chosen = part.stack.n_chosen};
    if (part.routes != kNoValue) each.routes = scratch_->bindings()[part.routes];
    observations_.push_back(std::move(each));
  }
}

// What positions do to keys must be a rotation, and only to keys: not so where
// they have a vector, and where a text's cache is a state or belongs to audio.
// Rows of a convolution would have inputs before them that are not theirs.
void Model::compile_rotations(const ForwardMemory& memory, const StepMemory& step) {
  const auto must_read = [](const GroupShape& group) {
    return group.has_states() || std::holds_alternative<InputCache>(group.kind);
  };
  if (arch_.audio || weights_->tensors().contains("position_embedding.weight") ||
      std::ranges::any_of(groups_, must_read))
    return;
  for (const OwnedBuffer& frequencies : frequencies_)
    turns_.emplace_back(device_, 2 * frequencies.get().size, "constants");
  std::vector<Binding> turns(arch_.layers.size());
  for (size_t i = 0; i < turns.size(); ++i)
    for (size_t j = 0; j < frequencies_.size(); ++j)
      if (layer_frequencies_[i].buffer.handle == frequencies_[j].get().handle)
        turns[i] = turns_[j].binding();
  std::vector<Program> programs;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    Values values;
    const auto nodes = rotation_nodes(arch_, memory, group, turns, *device_, values);
    if (!nodes) return turns_.clear();
    programs.emplace_back();
    if (nodes->empty()) continue;
    compiled_.push_back(device_->compile(
        build_table(*nodes, values, ScratchBindings(values.size()), *device_, RowClass::many),
        step));
    programs.back() = compiled_.back();
  }
  rotations_ = std::move(programs);
}

void Model::write_turns(double positions) {
  for (size_t i = 0; i < turns_.size(); ++i) {
    std::vector<float> frequencies(frequencies_[i].get().size / sizeof(float));
    device_->read(frequencies_[i].binding(), std::as_writable_bytes(std::span(frequencies)));
    std::vector<float> turn;
    for (const float frequency : frequencies) {
      const double angle = positions * static_cast<double>(frequency);
      turn.push_back(static_cast<float>(std::cos(angle)));
      turn.push_back(static_cast<float>(std::sin(angle)));
    }
    device_->write(turns_[i].binding(), std::as_bytes(std::span(turn)));
  }
}

}  // namespace akunu
