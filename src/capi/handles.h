// Handles of the C API: numbers that a table turns into objects, so that one that is closed, null or of
// another kind is refused and never followed. A call keeps its object for as long as it runs.
//
// The table belongs to the process: whoever gets a handle may use it anywhere in it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>

namespace akunu::capi {

struct HandleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A session is in use by another call.
struct BusyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ModelObject;
struct GenerationObject;
struct TokenizerObject;
struct GgufObject;
struct SessionObject;
struct TranscriptionObject;

class Handles {
 public:
  using Object = std::variant<std::shared_ptr<ModelObject>, std::shared_ptr<GenerationObject>,
                              std::shared_ptr<TokenizerObject>, std::shared_ptr<GgufObject>,
                              std::shared_ptr<SessionObject>, std::shared_ptr<TranscriptionObject>>;

  static Handles& of_process();

  // Never a number that was given before.
  uintptr_t add(Object object);

  // Throws HandleError.
  template <class Kind>
  std::shared_ptr<Kind> get(uintptr_t handle) {
    const std::lock_guard lock(mutex_);
    return std::get<std::shared_ptr<Kind>>(find<Kind>(handle)->second);
  }

  // Takes the object out of the table. Throws HandleError.
  template <class Kind>
  std::shared_ptr<Kind> take(uintptr_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = find<Kind>(handle);
    std::shared_ptr<Kind> object = std::get<std::shared_ptr<Kind>>(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  using Objects = std::unordered_map<uintptr_t, Object>;

  template <class Kind>
  Objects::iterator find(uintptr_t handle) {
    const auto found = objects_.find(handle);
    const size_t wanted = Object(std::shared_ptr<Kind>()).index();
    if (found == objects_.end() || found->second.index() != wanted)
      refuse(handle, wanted, found == objects_.end() ? nullptr : &found->second);
    return found;
  }
  [[noreturn]] static void refuse(uintptr_t handle, size_t wanted, const Object* found);

  std::mutex mutex_;
  uintptr_t last_ = 0;
  Objects objects_;
};

template <class Kind, class Handle>
std::shared_ptr<Kind> object_of(Handle handle) {
  return Handles::of_process().get<Kind>(reinterpret_cast<uintptr_t>(handle));
}

template <class Kind, class Handle>
std::shared_ptr<Kind> take_object(Handle handle) {
  return Handles::of_process().take<Kind>(reinterpret_cast<uintptr_t>(handle));
}

template <class Handle, class Kind>
Handle new_handle(std::shared_ptr<Kind> object) {
  return reinterpret_cast<Handle>(Handles::of_process().add(std::move(object)));
}

}  // namespace akunu::capi
