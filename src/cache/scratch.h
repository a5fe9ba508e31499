// Memory for the values of a forward pass that live only within a step.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/forward.h"
#include "core/table.h"

namespace akunu {

class Scratch {
 public:
  Scratch() = default;
  // `used[i]`: value i is an operand of some program.
  // Values that `other` has, which must outlive this, lie there.
  Scratch(const std::shared_ptr<Device>& device, const Values& values,
          const std::vector<bool>& used, uint32_t max_rows, uint32_t max_head_rows,
          const Scratch* other = nullptr);

  const ScratchBindings& bindings() const { return bindings_; }

  static uint64_t bytes(const Values& values, const std::vector<bool>& used, uint32_t max_rows,
                        uint32_t max_head_rows);

 private:
  std::vector<OwnedBuffer> buffers_;
  ScratchBindings bindings_;
  std::map<std::string, Binding> by_name_;
};

}  // namespace akunu
