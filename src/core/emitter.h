// What builds a forward pass out of operations: names of values, tensors by name, and the operations
// that every part of a pass needs.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "core/forward.h"

namespace akunu {

// The number that kernels have for an activation (core/kernel_params.h).
uint32_t number_of(Activation activation);
uint32_t number_of(Scoring scoring);

// Emits operations of one row class. Parts of a pass (the layers, what an encoder ends with) share one.
class Emitter {
 public:
  Emitter(const ArchDescriptor& arch, const TensorMap& tensors, const Device& device,
          RowClass row_class, Values& values)
      : arch_(arch), tensors_(tensors), device_(device), row_class_(row_class), values_(values) {}

  // The encoder of images gets separate scratch values from here on: steps of texts run between its parts, and it has
  // another number of rows.
  void use_own_values(std::string owner, uint32_t most_rows) {
    owner_ = std::move(owner);
    most_rows_ = most_rows;
  }
  const std::string& owner() const { return owner_; }

  // What is emitted from here on goes behind these.
  void emit_to(std::vector<Node>& nodes) { nodes_ = &nodes; }

  const ArchDescriptor& arch() const { return arch_; }
  RowClass row_class() const { return row_class_; }

  // --- tensors: ModelFormatError where one is missing or has another shape ---

  const Weight* find(const std::string& name) const;
  const Weight& tensor(const std::string& name, uint64_t n_rows, uint64_t k) const;
  // The kind of activation that a device wants for this weight, in rows of this or another class.
  ActivationKind kind_for(const std::string& weight_name, uint64_t n, uint64_t k) const {
    return kind_for(weight_name, n, k, row_class_);
  }
  ActivationKind kind_for(const std::string& weight_name, uint64_t n, uint64_t k,
                          RowClass row_class) const {
    return device_.activation_kind(tensor(weight_name, n, k).format, row_class);
  }

  // --- values ---

  ValueId bound(const std::string& name, const Binding& binding, Format format = Format::f32);
  // Scratch values are found by their names: all layers use the same "query". The name includes the
  // width, so that layers of another width get a value of their own.
  ValueId rows(const std::string& name, uint64_t n, Extent per = Extent::rows);
  // `n_each`: of the value's rows, in one of scratch.
  ValueId activation(const std::string& name, ActivationKind kind, uint64_t k,
                     Extent per = Extent::rows, uint64_t n_each = 1);
  ValueId weight(const std::string& name, uint64_t n, uint64_t k);
  ValueId vector(const std::string& name, uint64_t n);

  // --- operations ---

  template <class Struct>
  void emit(Operation operation, const std::string& label, std::initializer_list<ValueId> operands,
            const Struct& params, Extent extent = Extent::rows) {
    Node node;
    node.operation = operation;
    node.extent = extent;
    std::copy(operands.begin(), operands.end(), node.operands.begin());
    node.set(params);
    node.label = label;
    nodes_->push_back(std::move(node));
  }

  // The model's kind of norm. `name`: of its tensors, without ".weight".
  void norm(const std::string& label, ValueId input, const std::string& name, ValueId out,
            Extent extent = Extent::rows);
  void matmul(const std::string& label, ValueId input, const std::string& weight_name, uint32_t n,
              uint32_t k, ValueId out, Extent extent = Extent::rows);
  // Of devices that compute together: `made` becomes the sum of what each of them has made.
  void reduce(const std::string& label, ValueId& made, uint32_t n);
  void bias_if_present(const std::string& label, ValueId data, const std::string& name, uint32_t n,
                       Extent extent = Extent::rows);

 private:
  ValueId scratch(const std::string& name, uint64_t bytes, Extent per, ActivationKind kind);

  const ArchDescriptor& arch_;
  const TensorMap& tensors_;
  const Device& device_;
  const RowClass row_class_;
  Values& values_;
  std::vector<Node>* nodes_ = nullptr;
  std::string owner_;       // what names of scratch values begin with
  uint32_t most_rows_ = 0;  // of them; 0: as many as a step has
};

}  // namespace akunu
