// What matmuls multiply: the squares of their inputs, column by column, summed over the tokens of
// texts. In a stack of experts the sum of each is over the tokens that went to it. An importance matrix is made of them (python/akunu/convert/importance.py).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/rows.h"
#include "inference/programs.h"

namespace akunu {

struct InputSquares {
  std::vector<double> sums;      // [matrices, k]: one matrix, or the experts of a stack
  std::vector<uint64_t> n_rows;  // of each matrix
};

// A part of the pass of a prompt, unfused, that ends where the input of a matmul is complete.
struct Observation {
  Program program;
  std::string weight;  // in the file
  Binding input;       // float32 [rows * n_inputs, k]
  uint32_t k = 0;
  uint32_t n_inputs = 1;    // of a row: one for all of its experts, or one for each
  uint32_t n_matrices = 1;  // experts of a stack
  uint32_t n_chosen = 1;    // matrices that a row goes to
  std::optional<Binding> routes = std::nullopt;  // ExpertRoute [rows, n_chosen], of a stack
};

class Observer {
 public:
  // Loads a model for a text of `n_positions`. Throws as load_weights and Context, and UnsupportedModelError where
  // the device rounds the inputs of matmuls.
  static std::unique_ptr<Observer> load(const std::string& path,
                                        const std::shared_ptr<Device>& device,
                                        uint32_t n_positions);
  Observer(std::shared_ptr<const Weights> weights, std::shared_ptr<Device> device,
           const LoadOptions& options);

  // Computes a text from its beginning. `check` is called between steps; what it throws ends this.
  // ArgumentError for tokens outside the vocabulary and more than the context holds.
  void add(std::span<const uint32_t> tokens, const std::function<void()>& check);

  // By the matrix's name in the file.
  const std::map<std::string, InputSquares>& squares() const { return squares_; }

 private:
  void look(const Observation& observation, uint32_t n_rows, InputSquares& squares);

  Context context_;
  std::vector<Observation> observations_;  // of a prompt's body, in order, up to the last matmul
  Programs programs_;
  std::map<std::string, InputSquares> squares_;
  std::vector<float> rows_;
  std::vector<ExpertRoute> routes_;
};

}  // namespace akunu
