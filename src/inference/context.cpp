// Makes a context. context.h says what it is. `plan` builds the forward passes without memory (FusedForwards), for sizes
// and to refuse what no kernel computes; programs.cpp builds them again with it. How much memory is planned:
// context_plan.cpp.
#include "inference/context.h"

#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "inference/fused_forwards.h"
#include "inference/rope_factors.h"

namespace akunu {
namespace {

// Refuses a model with a tensor that no operation reads: its results would be computed without that tensor.
void refuse_unused_tensors(const Weights& weights, const FusedForwards& fused) {
  std::set<std::string, std::less<>> used;
  for (size_t i = 0; i < weights.arch.layers.size(); ++i) used.insert(output_scale_name(i));
  // Frequencies::write reads them for the layers that rotate.
  for (const LayerDescriptor& layer : weights.arch.layers)
    if (layer.rotates())
      for (const std::string_view name : {kRopeFactors, kLongRopeFactors, kShortRopeFactors})
        used.emplace(name);
  for (size_t id = 0; id < fused.values.size(); ++id)
    if (fused.used[id]) used.insert(fused.values[id].name);
  for (const auto& [name, weight] : weights.tensors->map())
    if (!used.contains(name))
      throw UnsupportedModelError("tensor " + weights.tensors->name_in_file(name) +
                                  " has no place in what akunu computes for this architecture; "
                                  "without it, the model would be another one");
}

// Decides how many positions and pages there are, and with them the frequencies. Refuses what cannot be computed.
ContextPlan plan_over(const Weights& weights, const Device& device, const StepSizes& sizes,
                      std::span<const GroupShape> groups, Frequencies& frequencies,
                      const LoadOptions& options, const AdapterTargets& adapters) {
  const ArchDescriptor& arch = weights.arch;
  const FusedForwards fused(arch, weights.tensors->map(), frequencies.of_layers(),
                            memory_without_buffers(arch, groups), device, options.observed,
                            adapters);
  refuse_unused_tensors(weights, fused);
  ContextNeeds needs = context_needs(arch, sizes, options, fused.scratch_bytes(sizes));
  for (const MemoryUse& use : weights.device->memory_use())
    if (use.mapped) needs.mapped += use.bytes;
  MemoryLeft left = memory_left(device, options, weights.host_bytes);
  if (left.memory) *left.memory -= std::min(*left.memory, weights.kept_free);
  ContextPlan plan = plan_context(options, needs, left);
  for (std::string& note : frequencies.write(weights, plan.context))
    plan.notes.push_back(std::move(note));
  return plan;
}

SubmissionLimits limits_of(const StepSizes& sizes, std::span<const GroupShape> groups,
                           uint32_t n_positions) {
  const auto n_groups = static_cast<uint32_t>(groups.size());
  // A pass for the body and one for the logits of every group of generated rows and of the prompts; one
  // that samples for the generated rows, and one for the prompts.
  const uint32_t n_row_groups = (sizes.max_generated_rows + kMaxFewRows - 1) / kMaxFewRows + 1;
  return {.max_rows = sizes.max_rows,
          // Records, options, logs, drafted tokens, masks, an image's vectors and page tables.
          .max_updates = sizes.max_texts * (6 + n_groups),
          .max_update_bytes =
              sizes.vectors_bytes +
              max_update_bytes(n_positions, groups, sizes.max_texts, sizes.masks_bytes()),
          .max_passes = 2 * n_row_groups + 2};
}

}  // namespace

Context::Context(std::shared_ptr<const Weights> of, std::shared_ptr<Device> on,
                 const LoadOptions& options, AdaptersOnDevice loaded)
    : weights(std::move(of)),
      device(std::move(on)),
      adapters(std::move(loaded)),
      sizes(weights->arch, device->chip(), options, weights->tensors->bytes()),
      groups(cache_groups(weights->arch, options.kv_format)),
      frequencies(*weights, device),
      plan(plan_over(*weights, *device, sizes, groups, frequencies, options,
                     adapters.get()->targets())),
      cache(device, weights->arch, groups, plan.n_pages),
      sequences(device, sizes.max_texts, plan.context, groups),
      rows(device, uint64_t{sizes.max_rows} * sizeof(Row), "sequences"),
      spans(device, uint64_t{sizes.max_rows} * sizeof(Span), "sequences"),
      picked(device, uint64_t{sizes.max_rows} * sizeof(uint32_t), "sequences"),
      masks(device, sizes.masks_bytes(), "sequences"),
      statuses(device, uint64_t{sizes.max_rows} * sizeof(Status), "sequences"),
      submission_limits(limits_of(sizes, groups, plan.context)) {
  if (weights->arch.audio) frames = OwnedBuffer(device, sizes.frames_bytes, "scratch");
  if (weights->arch.images) {
    patches = OwnedBuffer(device, sizes.patches_bytes, "scratch");
    vectors = OwnedBuffer(device, sizes.vectors_bytes, "scratch");
  }
  if (sizes.alignment_width > 0) alignment = OwnedBuffer(device, sizes.alignment_bytes, "scratch");
  device->set_limits(submission_limits);
}

ForwardMemory Context::forward_memory() const {
  ForwardMemory memory;
  memory.layers = cache.layers();
  memory.states = cache.states();
  memory.cross = cache.cross();
  memory.frames = frames.binding();
  memory.patches = patches.binding();
  memory.image_frequencies = frequencies.of_images();
  memory.vectors = vectors.binding();
  memory.alignment = alignment.binding();
  memory.tokens = {sequences.tokens(), 0};
  memory.log_stride = sequences.log_stride();
  memory.picked = picked.binding();
  memory.masks = masks.binding();
  memory.options = {sequences.options(), 0};
  memory.ones = weights->ones.binding();
  memory.logprobs = {sequences.logprobs(), 0};
  memory.page_table_stride = sequences.page_table_stride();
  for (uint32_t group = 0; group < groups.size(); ++group)
    memory.page_table_bases.push_back(sequences.page_table_base(group));
  return memory;
}

StepMemory Context::step_memory() const {
  return {rows.get(), spans.get(), sequences.pages(), sequences.records(), statuses.get()};
}

}  // namespace akunu
