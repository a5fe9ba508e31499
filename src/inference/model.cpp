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
//    context_plan.cpp. How positions turn: model_rotations.cpp. What is written down of matmuls' inputs for quantising: fused_forwards.cpp.
#include "inference/model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/memory_left.h"
#include "core/table.h"
#include "files/gguf/images.h"
#include "inference/delta_kernels.h"
#include "inference/fused_forwards.h"
#include "inference/latent_weights.h"
#include "inference/rope_factors.h"
#include "inference/shards.h"
#include "models/common/describe.h"

namespace akunu {
namespace {

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

// Bindings are empty: good for sizes and names only.
ForwardMemory memory_without_buffers(const ArchDescriptor& arch,
                                     const std::vector<GroupShape>& groups) {
  ForwardMemory memory;
  memory.layers = layers_without_memory(arch, groups);
  memory.states = states_without_memory(groups);
  memory.cross = cross_without_memory(groups);
  memory.page_table_bases.assign(groups.size(), 0);
  return memory;
}

void refuse_without_head(const ModelSource& source) {
  if (source.config.n_ahead > 0) return;
  const uint32_t n = source.config.experts.n_layers_ahead;
  throw UnsupportedModelError(
      source.path + ": a prediction head was asked for, and the model has " +
      (n > 1 ? std::to_string(n) + " of them; akunu runs one"
             : "none that akunu knows: those of Qwen3.5 and Qwen3-Next, mtp.* or nextn.*") +
      "; load it without");
}

}  // namespace

std::unique_ptr<Model> Model::load(const std::string& path, std::shared_ptr<Device> device,
                                   const LoadOptions& options) {
  ModelSource source = open_model(path, options.prediction_head);
  if (options.prediction_head) refuse_without_head(source);
  if (!options.mmproj.empty()) add_gguf_images(source, options.mmproj);
  return load(source, std::move(device), options);
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
  ModelSource readable = with_joined_kernels(with_latent_floats(source));
  config_ = readable.config;
  if (options.gpu_memory && !device_->has_own_memory())
    throw ArgumentError("gpu_memory is for GPUs that have memory of their own; the device " +
                        std::string(device_->backend()) + " uses the host's");
  WeightPlacement placement;
  blaming(source.path, [&] {
    arch_ = describe(config_);
    if (device_->n_ranks() > 1) divide(readable, options);
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

// What one of several devices computes takes the place of the whole model.
void Model::divide(ModelSource& source, const LoadOptions& options) {
  const uint32_t n_ranks = device_->n_ranks();
  if (is_observed_ || !options.adapters.empty())
    throw ArgumentError(
        std::string(is_observed_ ? "a model that is observed" : "a model with adapters") +
        " is computed by one GPU: gpus must be 1, got " + std::to_string(n_ranks));
  if (arch_.images) {
    arch_.images.reset();
    std::erase_if(source.tensors, [](const SourceTensor& tensor) {
      return std::string_view(tensor.name).starts_with("encoder.");
    });
    notes_.push_back("images are not read: models do that with gpus=1");
  }
  arch_ = share_of(arch_, n_ranks);
  split_tensors(source, n_ranks);
}

// Decides, before any weight is loaded, which ones stay in the host's memory: those that do not fit on the device
// beside scratch and the cache of a context.
WeightPlacement Model::place(const ModelSource& source, const LoadOptions& options) {
  const TensorMap tensors = outlines(source, device_->n_ranks());
  const FusedForwards fused(arch_, tensors, std::vector<Binding>(arch_.layers.size()),
                            memory_without_buffers(arch_, groups_), *device_, is_observed_, {});
  const ContextNeeds needs =
      context_needs(Scratch::bytes(fused.values, fused.used, max_scratch_rows(), max_head_rows()));
  const uint32_t context =
      options.context.value_or(std::min(arch_.context_length, kContextBesideWeights));
  const uint64_t left = memory_left(options).memory.value_or(UINT64_MAX);
  const uint64_t besides = context_bytes(options, needs, context);
  const uint64_t room = left - std::min(left, besides + kKeptForWorkspaces);
  WeightPlacement placement = place_weights(source.tensors, room, device_->n_ranks());
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

void Model::size_steps(const LoadOptions& options) {
  if (options.context && *options.context == 0)
    throw ArgumentError("context is 0; it must be at least 1 position");
  groups_ = cache_groups(arch_, options.kv_format);
  max_prompt_rows_ = device_->chip().max_prompt_rows;
  if (arch_.embeds) {
    const uint32_t context = options.context.value_or(arch_.context_length);
    max_prompt_rows_ = std::max(max_prompt_rows_, std::min(context, arch_.context_length));
  }
  // An image's rows see each other: they are in one step.
  if (arch_.images) max_prompt_rows_ = std::max(max_prompt_rows_, arch_.images->n_tokens());
}

ContextNeeds Model::context_needs(uint64_t scratch_bytes) const {
  ContextNeeds needs{.trained_context = arch_.context_length,
                     .has_no_more = arch_.embeds,
                     .groups = groups_,
                     .n_rows = max_rows_in_flight(),
                     .max_texts = max_texts(),
                     .masks = max_head_rows() * mask_bytes(),
                     .usual_contexts = arch_.audio ? kUsualWindows : 1,
                     .branches = arch_.audio ? kUsualBeams - 1 : 0};
  needs.fixed =
      scratch_bytes +
      uint64_t{max_rows()} * (sizeof(Row) + sizeof(Span) + sizeof(Status) + sizeof(uint32_t)) +
      needs.masks + frames_bytes() + alignment_bytes() + patches_bytes() + vectors_bytes();
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

uint64_t Model::patches_bytes() const {
  if (!arch_.images) return 0;
  return uint64_t{arch_.images->n_patches()} * arch_.images->patch_numbers() * sizeof(float);
}

uint64_t Model::vectors_bytes() const {
  return arch_.images ? uint64_t{max_step_rows()} * arch_.dim * sizeof(float) : 0;
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
  if (arch_.images) {
    patches_ = OwnedBuffer(device_, patches_bytes(), "scratch");
    vectors_ = OwnedBuffer(device_, vectors_bytes(), "scratch");
  }
  if (alignment_width() > 0) alignment_ = OwnedBuffer(device_, alignment_bytes(), "scratch");
}

void Model::compile() {
  const auto n_groups = static_cast<uint32_t>(groups_.size());
  // A pass for the body and one for the logits of every group of generated rows and of the prompts; one
  // that samples for the generated rows, and one for the prompts.
  const uint32_t n_row_groups = (max_generated_rows() + kMaxFewRows - 1) / kMaxFewRows + 1;
  limits_ = {.max_rows = max_rows(),
             // Records, options, logs, drafted tokens, masks, an image's vectors and page tables.
             .max_updates = max_texts() * (6 + n_groups),
             .max_update_bytes = vectors_bytes() + max_update_bytes(context_, groups_, max_texts(),
                                                                    max_head_rows() * mask_bytes()),
             .max_passes = 2 * n_row_groups + 2};
  device_->set_limits(limits_);

  ForwardMemory memory;
  memory.layers = cache_->layers();
  memory.states = cache_->states();
  memory.cross = cache_->cross();
  memory.frames = frames_.binding();
  memory.patches = patches_.binding();
  memory.vectors = vectors_.binding();
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
    if (row_class == RowClass::few)
      for (const Command& command : table.commands)
        generated_rows_per_pass_ = std::min(generated_rows_per_pass_, command.pipeline.most_rows);
    if (!is_another) labels.insert(labels.end(), table.labels.begin(), table.labels.end());
    compiled_.push_back(device_->compile(std::move(table), step));
    return compiled_.back();
  };
  generated_rows_per_pass_ = device_->chip().generated_rows_per_pass;
  for (const RowClass row_class : kRowClasses) {
    const Forward& from = fused.by_class[static_cast<size_t>(row_class)];
    ClassPrograms& programs = programs_[static_cast<size_t>(row_class)];
    programs.body = compile_nodes(from.body, row_class);
    programs.logits = compile_nodes(from.logits, row_class);
    if (has_prediction_head()) {
      programs.ahead = compile_nodes(from.ahead, row_class, true);
      programs.ahead_logits = compile_nodes(from.ahead_logits, row_class, true);
    }
    if (adapters_.targets().empty()) continue;
    const Forward& with = fused.adapted[static_cast<size_t>(row_class)];
    // The output is not adapted, and nor is a prediction head.
    adapted_programs_[static_cast<size_t>(row_class)] = programs;
    adapted_programs_[static_cast<size_t>(row_class)].body =
        compile_nodes(with.body, row_class, true);
  }
  if (arch_.audio || arch_.images) {
    const Forward& many = fused.by_class[static_cast<size_t>(RowClass::many)];
    encoder_ = compile_encoder(arch_, many, [&](const std::vector<Node>& nodes) {
      return compile_nodes(nodes, RowClass::many, true);
    });
    encoder_.input = arch_.audio ? frames_.binding() : patches_.binding();
    if (arch_.images) encoder_.output = scratch_->bindings()[many.image_vectors];
    if (!many.aligned.empty()) aligned_ = compile_nodes(many.aligned, RowClass::many, true);
  }
  const Forward& from = fused.by_class[static_cast<size_t>(RowClass::few)];
  if (arch_.embeds) return;  // an encoder chooses nothing
  compile_rotations(memory, step);
  choose_scored_ = compile_nodes(from.choose_scored, RowClass::few);
  choose_ = compile_nodes(from.choose, RowClass::few);
  if (has_prediction_head()) choose_ahead_ = compile_nodes(from.ahead_choose, RowClass::few);
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

}  // namespace akunu
