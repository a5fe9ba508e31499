// The forward pass, written once: unfused operations over named values, made from the
// architecture's description, the tensors that are there, and what the device says about
// activations. It knows no architecture's and no backend's name. `fuse` rewrites it; `table` binds
// it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/arch.h"
#include "core/device.h"
#include "core/operation.h"

namespace akunu {

// Every tensor of a model on the device, by canonical name (src/files/names.h). One-dimensional
// tensors are float32 with rows = 1.
using TensorMap = std::map<std::string, Weight, std::less<>>;

// Where a layer's keys and values lie. Layers of one group have the same page numbers.
struct LayerCache {
  Binding keys;
  Binding values;
  Format format = Format::f16;
  uint32_t group = 0;
};

// The low-rank adapters of one weight, those of all adapters stacked: a row's result gets
// scale * B (A x) more, of each adapter that it has.
struct AdapterTarget {
  Weight down;    // A: [rank, k]
  Weight up;      // B transposed: [rank, n]
  Binding parts;  // AdapterPart [adapters]
  uint32_t rank = 0;
};
// By the canonical name of the weight, without ".weight".
using AdapterTargets = std::map<std::string, AdapterTarget, std::less<>>;

// What the forward pass needs besides the weights: memory that outlives a step.
struct ForwardMemory {
  std::vector<LayerCache> layers;
  std::vector<LayerCache> states;  // of recurrent layers; see KvCache::states
  std::vector<LayerCache> cross;   // of what an encoder made
  Binding alignment;               // float32 [max_head_rows, alignment heads, positions]
  Binding frames;                  // float32 [frames, n_mels]: an encoder's input
  Binding patches;                 // float32 [patches, numbers]: that of an encoder of images
  Binding image_frequencies;       // of its layers, where they rotate
  Binding vectors;                 // float32 [rows of a step, dim]: inputs of an image's rows
  Binding tokens;                  // uint32 [max_sequences, log_stride]
  uint32_t log_stride = 0;
  Binding picked;                          // uint32 [max_rows]
  Binding masks;                           // a mask for each head row, as sample has them
  Binding options;                         // uint32 [max_sequences, kMaxOptionWords]
  Binding logprobs;                        // TokenLogprobs [max_sequences, kLogprobPlaces]
  uint32_t page_table_stride = 0;          // entries per sequence
  std::vector<uint32_t> page_table_bases;  // per cache group: its first entry
  Binding ones;  // float32 [longest head], all 1: the weight of norms that have none
};

using ValueId = uint16_t;
constexpr ValueId kNoValue = 0xffff;

// A thing that operations read and write. Scratch values get memory from `table`, the others have
// it.
struct Value {
  std::string name;
  Binding binding;                                       // empty for scratch
  std::array<Binding, kMaxPlanes - 1> more_planes = {};  // of weights, behind `binding`
  uint64_t bytes_per_row = 0;                            // scratch only
  Extent per = Extent::rows;                             // scratch only: rows or head_rows
  uint32_t most_rows = 0;  // scratch only: that are kept; 0: as many as a step has
  ActivationKind activation = ActivationKind::f32;  // kind `activation` only
  Format format = Format::f32;                      // weights and caches
};

struct Node {
  Operation operation = Operation::add;
  Extent extent = Extent::rows;
  std::array<ValueId, kMaxOperands> operands = {};
  CommandParams params;
  std::string label;

  Node() { operands.fill(kNoValue); }
  template <class Struct>
  Struct get() const {
    return params.get<Struct>();
  }
  template <class Struct>
  void set(const Struct& value) {
    params.set(value);
  }
};

// The values of all forward passes of a model: those of one name are one.
class Values {
 public:
  // Throws UnsupportedModelError when there are too many.
  ValueId add(Value value);
  const Value& operator[](size_t id) const { return list_[id]; }
  size_t size() const { return list_.size(); }

 private:
  std::vector<Value> list_;
  std::map<std::string, ValueId> ids_;
};

// The pass is cut into programs, so that logits may be wanted without a choice, and a mask may be
// computed on the host between the two.
struct Forward {
  // The first convolution of a speech encoder. Compiled for row class `many` only; it has a row for each frame.
  std::vector<Node> first_convolution;
  // An encoder of speech or images, likewise: it has a row for each position or patch, and is cut into parts. A part may run a few rows at a
  // time, with other programs between: a row of it needs rows of the parts before, and no other rows of the same part.
  // Results that a later part reads lie in values that no other program writes.
  std::vector<std::vector<Node>> encode;
  // The projection of an encoder of images: vectors made of the patches, a head row for each.
  std::vector<Node> project_image;
  ValueId image_vectors = kNoValue;
  // The rows of an image in the text; see image_rows.h. Empty until the body is fused.
  std::vector<std::vector<Node>> image_rows;
  // The body, which also writes the weights of cross-attention of rows with a head row.
  std::vector<Node> aligned;
  std::vector<Node> body;           // tokens to residual rows
  std::vector<Node> logits;         // residual rows to logits of the head rows; or pools them
  std::vector<Node> choose;         // logits to tokens; moves the chained rows on
  std::vector<Node> choose_scored;  // likewise, and scores rows in between
  // Of a prediction head: the rows of the body, each with the token behind it, to residual rows of its own; those to
  // logits, in logits_value too; and to tokens.
  std::vector<Node> ahead;
  std::vector<Node> ahead_logits;
  std::vector<Node> ahead_choose;
  ValueId logits_value = kNoValue;  // of an encoder: the pooled rows, as wide as the residual

  // All of them, in the order in which they run; of the two that choose one does.
  std::vector<std::vector<Node>*> programs();
  std::vector<const std::vector<Node>*> programs() const;
};

// The pass of one row class: classes differ in the kinds of activations that the device wants.
// `inverse_frequencies[l]` holds rope_dim / 2 float32 for layer l (layers may share one).
// With `adapters`, rows that have some get what they add; all others have the same bits without.
// Throws ModelFormatError where a tensor is missing or has another shape than the description says.
Forward build_forward(const ArchDescriptor& arch, const TensorMap& tensors,
                      const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                      const Device& device, RowClass row_class, Values& values,
                      const AdapterTargets* adapters = nullptr);

// Numbers of an output: logits, the vector of a text, or a classifier's scores.
uint32_t output_width(const ArchDescriptor& arch, const TensorMap& tensors);

}  // namespace akunu
