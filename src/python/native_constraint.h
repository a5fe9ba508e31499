#pragma once

#include <memory>
#include <utility>

#include "core/error.h"
#include "inference/constraint.h"

namespace akunu::python {

// A constraint that Python has made, until a text begins with it.
class NativeConstraint {
 public:
  explicit NativeConstraint(std::unique_ptr<Constraint> constraint)
      : constraint_(std::move(constraint)) {
    if (!constraint_) throw ArgumentError("a constraint of neither grammar nor free text");
  }
  Constraint& get() const {
    if (!constraint_) throw ArgumentError("the constraint rules a text already");
    return *constraint_;
  }
  std::unique_ptr<Constraint> take() {
    get();
    return std::move(constraint_);
  }

 private:
  std::unique_ptr<Constraint> constraint_;
};

}  // namespace akunu::python
