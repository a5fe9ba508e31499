#include "capi/handles.h"

namespace akunu::capi {
namespace {

constexpr const char* kKinds[] = {"akunu_model", "akunu_generation", "akunu_tokenizer",
                                  "akunu_gguf",  "akunu_session",    "akunu_transcription"};

}  // namespace

// Never destroyed: threads may still use handles while the process ends.
Handles& Handles::of_process() {
  static Handles& handles = *new Handles;
  return handles;
}

uintptr_t Handles::add(Object object) {
  const std::lock_guard lock(mutex_);
  objects_.emplace(++last_, std::move(object));
  return last_;
}

void Handles::refuse(uintptr_t handle, size_t wanted, const Object* found) {
  const std::string kind = kKinds[wanted];
  if (handle == 0) throw HandleError("the " + kind + " is null");
  if (found != nullptr)
    throw HandleError("an " + kind + " is needed, the handle is an " + kKinds[found->index()]);
  throw HandleError("the " + kind + " is closed, or never was one");
}

}  // namespace akunu::capi
