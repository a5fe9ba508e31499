// What matmuls multiply: the squares of their inputs, column by column, summed over the tokens of
// texts; of a stack of experts, over the tokens that went to each. An importance matrix is made of them (python/akunu/convert/importance.py).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/rows.h"
#include "inference/model.h"

namespace akunu {

struct InputSquares {
  std::vector<double> sums;      // [matrices, k]: one matrix, or the experts of a stack
  std::vector<uint64_t> n_rows;  // of each matrix
};

class Observer {
 public:
  // The model must be loaded to be observed, and have no scheduler; nothing else may use it.
  explicit Observer(Model& model);

  // Computes a text from its beginning. `check` is called between steps; what it throws ends this.
  // ArgumentError for tokens outside the vocabulary and more than the context holds.
  void add(std::span<const uint32_t> tokens, const std::function<void()>& check);

  // By the matrix's name in the file.
  const std::map<std::string, InputSquares>& squares() const { return squares_; }

 private:
  void look(const Observation& observation, uint32_t n_rows, InputSquares& squares);

  Model& model_;
  std::map<std::string, InputSquares> squares_;
  std::vector<float> rows_;
  std::vector<ExpertRoute> routes_;
};

}  // namespace akunu
