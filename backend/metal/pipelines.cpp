#include "metal/pipelines.h"

#include "core/error.h"
#include "metal/objects.h"

namespace akunu::metal {

Pipelines::Pipelines(MTL::Device* device, const std::string& library_path, bool for_indirect)
    : device_(device), library_path_(library_path), for_indirect_(for_indirect) {
  NS::Error* error = nullptr;
  const NS::URL* url = NS::URL::fileURLWithPath(make_string(library_path).get());
  library_ = NS::TransferPtr(device->newLibrary(url, &error));
  if (!library_)
    throw DeviceError(library_path + ": the compiled kernels cannot be read: " + describe(error) +
                      "; install akunu again");
}

const MTL::ComputePipelineState* Pipelines::get(const Launch& launch, uint32_t bound_slots) {
  Key key{launch.function, {{kConstantBoundSlots, bound_slots}}};
  for (const FunctionConstant& constant : launch.constants)
    key.second.emplace_back(constant.index, constant.value);
  NS::SharedPtr<MTL::ComputePipelineState>& pipeline = pipelines_[std::move(key)];
  if (!pipeline) pipeline = make(launch, bound_slots);
  return pipeline.get();
}

NS::SharedPtr<MTL::ComputePipelineState> Pipelines::make(const Launch& launch,
                                                         uint32_t bound_slots) {
  const auto constants = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  constants->setConstantValue(&bound_slots, MTL::DataTypeUInt, kConstantBoundSlots);
  for (const FunctionConstant& constant : launch.constants) {
    const bool truth = constant.value != 0;
    if (constant.is_bool)
      constants->setConstantValue(&truth, MTL::DataTypeBool, constant.index);
    else
      constants->setConstantValue(&constant.value, MTL::DataTypeUInt, constant.index);
  }
  NS::Error* error = nullptr;
  const NS::SharedPtr<NS::String> name = make_string(launch.function);
  const auto function = NS::TransferPtr(library_->newFunction(name.get(), constants.get(), &error));
  if (!function)
    throw UnsupportedModelError(
        "the kernel " + launch.function + " is not in " +
        (library_path_.empty() ? std::string("the emulator") : library_path_) + ": " +
        describe(error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  descriptor->setLabel(name.get());
  descriptor->setComputeFunction(function.get());
  descriptor->setSupportIndirectCommandBuffers(for_indirect_);
  auto pipeline = NS::TransferPtr(
      device_->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  if (!pipeline)
    throw DeviceError("the kernel " + launch.function +
                      " cannot be prepared for this GPU: " + describe(error));
  return pipeline;
}

}  // namespace akunu::metal
