// Functions of the library as pipelines, each made once per set of function constants.
#pragma once

#include <Metal/Metal.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "metal/kernel.h"

namespace akunu::metal {

class Pipelines {
 public:
  // Throws DeviceError when the library cannot be read.
  Pipelines(MTL::Device* device, const std::string& library_path, bool for_indirect);

  // The pipeline of a launch whose operand slots in `bound_slots` are bound. Throws
  // UnsupportedModelError where the library has no such function, DeviceError where the system
  // cannot make the pipeline.
  const MTL::ComputePipelineState* get(const Launch& launch, uint32_t bound_slots);

 private:
  using Key = std::pair<std::string, std::vector<std::pair<uint32_t, uint32_t>>>;

  NS::SharedPtr<MTL::ComputePipelineState> make(const Launch& launch, uint32_t bound_slots);

  MTL::Device* device_;
  std::string library_path_;
  bool for_indirect_;
  NS::SharedPtr<MTL::Library> library_;
  std::map<Key, NS::SharedPtr<MTL::ComputePipelineState>> pipelines_;
};

}  // namespace akunu::metal
