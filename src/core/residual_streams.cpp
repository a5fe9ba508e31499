#include "core/residual_streams.h"

#include "core/kernel_params.h"

namespace akunu {
namespace {

// The least mean square that a stream is taken to have where its size is matched, as transformers has it.
constexpr float kLeastSquare = 1e-5f;

std::string matrix(const char* direction, uint32_t i) {
  return "streams." + std::string(direction) + "." + std::to_string(i) + ".weight";
}

uint32_t n_others_of(const Emitter& emitter) { return emitter.arch().streams->n - 1; }

StreamsParams params_of(const ArchDescriptor& arch) {
  return {arch.dim, arch.streams->n, arch.streams->active, arch.norm_epsilon};
}

}  // namespace

StreamValues emit_streams(Emitter& emitter, ValueId embedding) {
  const uint32_t dim = emitter.arch().dim, n_others = n_others_of(emitter);
  const StreamValues streams{embedding, emitter.rows("other streams", uint64_t{n_others} * dim)};
  for (uint32_t i = 0; i < n_others; ++i) {
    const std::string name = matrix("in", i), label = "stream " + std::to_string(i + 1);
    const ActivationKind kind = emitter.kind_for(name, dim, dim);
    const ValueId input =
        kind == ActivationKind::f32 ? embedding : emitter.activation("stream input", kind, dim);
    if (input != embedding)
      emitter.emit(Operation::activate, label + " input", {embedding, input},
                   ActivateParams{dim, kActivationNone, 0, 0});
    const ValueId made = emitter.rows("stream made", dim);
    emitter.matmul(label, input, name, dim, dim, made);
    emitter.emit(Operation::match_rms, label + " size", {made, embedding, streams.others},
                 MatchRmsParams{dim, i * dim, n_others * dim, kLeastSquare});
  }
  return streams;
}

void emit_prediction(Emitter& emitter, const StreamValues& streams, const StreamsOfLayer& layer,
                     ValueId residual) {
  const uint64_t dim = emitter.arch().dim, n = emitter.arch().streams->n;
  emitter.emit(
      Operation::predict_streams, layer.label + "prediction",
      {streams.first, streams.others, emitter.vector(layer.name + "router_norm.weight", dim),
       emitter.vector(layer.name + "router.weight", n * dim),
       emitter.vector(layer.name + "predict.weight", n * n * n), residual},
      params_of(emitter.arch()));
}

void emit_correction(Emitter& emitter, const StreamValues& streams, const StreamsOfLayer& layer,
                     ValueId residual) {
  const ResidualStreams& is = *emitter.arch().streams;
  const uint64_t dim = emitter.arch().dim, n = is.n;
  emitter.emit(
      Operation::correct_streams, layer.label + "correction",
      {streams.first, streams.others, emitter.vector(layer.name + "router_norm.weight", dim),
       emitter.vector(layer.name + "router.weight", n * dim),
       emitter.vector(layer.name + "correct.weight", n * n),
       is.is_scaled ? emitter.vector(layer.name + "scale.weight", dim) : kNoValue, residual},
      params_of(emitter.arch()));
}

ValueId emit_mean_of_streams(Emitter& emitter, const StreamValues& streams) {
  const uint32_t dim = emitter.arch().dim, n_others = n_others_of(emitter);
  const Extent of_head = Extent::head_rows;
  const ValueId sum = emitter.rows("head residual", dim, of_head);
  const ValueId first = emitter.rows("head stream", dim, of_head);
  const ValueId others = emitter.rows("head streams", uint64_t{n_others} * dim, of_head);
  for (const ValueId to : {sum, first})
    emitter.emit(Operation::gather_head, "head gather", {streams.first, to}, GatherParams{dim, {}});
  emitter.emit(Operation::gather_head, "head gather others", {streams.others, others},
               GatherParams{n_others * dim, {}});
  for (uint32_t i = 0; i < n_others; ++i) {
    const std::string name = matrix("out", i), label = "head stream " + std::to_string(i + 1);
    const ValueId input = emitter.activation(
        "head stream input", emitter.kind_for(name, dim, dim, RowClass::few), dim, of_head);
    emitter.emit(Operation::activate, label + " input", {others, input},
                 ActivateParams{dim, kActivationNone, i * dim, n_others * dim}, of_head);
    const ValueId made = emitter.rows("head stream made", dim, of_head);
    emitter.matmul(label, input, name, dim, dim, made, of_head);
    const ValueId sized = emitter.rows("head stream sized", dim, of_head);
    emitter.emit(Operation::match_rms, label + " size", {made, first, sized},
                 MatchRmsParams{dim, 0, dim, kLeastSquare}, of_head);
    emitter.emit(Operation::add, label + " add", {sum, sized}, AddParams{dim, 0, {}}, of_head);
  }
  emitter.emit(Operation::scale, "head mean", {sum},
               ScaleParams{dim, 1 / static_cast<float>(n_others + 1), {}}, of_head);
  return sum;
}

}  // namespace akunu
