#include "metal/failure.h"

#include "metal/objects.h"

namespace akunu::metal {
namespace {

// The command that was running, as far as the encoders tell: the last one that an encoder which
// faulted had come to.
std::string find_label(const NS::Error* error) {
  const auto* infos = error->userInfo()->object<NS::Array>(MTL::CommandBufferEncoderInfoErrorKey);
  if (infos == nullptr) return "";
  for (NS::UInteger i = 0; i < infos->count(); ++i) {
    const auto* info = infos->object<MTL::CommandBufferEncoderInfo>(i);
    if (info->errorState() != MTL::CommandEncoderErrorStateFaulted) continue;
    const NS::Array* signposts = info->debugSignposts();
    if (signposts != nullptr && signposts->count() > 0)
      return to_string(signposts->object<NS::String>(signposts->count() - 1));
    return to_string(info->label());
  }
  return "";
}

std::string advice(NS::Integer code) {
  switch (code) {
    case MTL::CommandBufferErrorOutOfMemory:
      return "there is too little memory: end other programs, or load with a smaller context";
    case MTL::CommandBufferErrorTimeout:
      return "a command took too long: load the model again";
    case MTL::CommandBufferErrorNotPermitted:
      return "the system does not let this process use the GPU now, as in the background";
    default:
      return "load the model again; if it happens again, AKUNU_METAL_ENCODING=plain names the "
             "command, and a report with that name is welcome";
  }
}

}  // namespace

std::string describe_failure(const MTL::CommandBuffer* commands) {
  const NS::Error* error = commands->error();
  if (error == nullptr) return "the GPU failed without a reason; load the model again";
  const std::string label = find_label(error);
  return "the GPU failed" + (label.empty() ? "" : " in " + label) + ": " + describe(error) + "; " +
         advice(error->code());
}

}  // namespace akunu::metal
