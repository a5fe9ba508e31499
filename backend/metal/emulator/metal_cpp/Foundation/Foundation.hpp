// The part of metal-cpp's Foundation that backend/metal calls, for systems that have none: the same
// names, the same rules of ownership. Objects count their references and are deleted with the last one.
// So what an application must not do (use an object after its last release, release it once more, never
// release it, autorelease it where no pool is) is what AddressSanitizer finds: `.ci/run address_sanitizer`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace NS {

using Integer = std::intptr_t;
using UInteger = std::uintptr_t;

// Whatever `new` or `alloc` gave begins with one reference.
class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  void add_reference() { ++references_; }
  void remove_reference();

 protected:
  Object() = default;
  // What the last release gives back: memory, threads, other objects.
  virtual void dispose() {}

  void add_to_pool();
  UInteger count() const { return static_cast<UInteger>(references_.load()); }

 private:
  friend class AutoreleasePool;
  std::atomic<int> references_{1};
};

template <class Class, class Base = Object>
class Referencing : public Base {
 public:
  Class* retain() {
    this->add_reference();
    return static_cast<Class*>(this);
  }
  void release() { this->remove_reference(); }
  Class* autorelease() {
    this->add_to_pool();
    return static_cast<Class*>(this);
  }
  UInteger retainCount() const { return this->count(); }
};

template <class Class, class Base = Object>
using Copying = Referencing<Class, Base>;

// Messages to null do nothing there either.
template <class Class>
class SharedPtr {
 public:
  SharedPtr() = default;
  SharedPtr(std::nullptr_t) {}
  SharedPtr(const SharedPtr& other) : object_(other.object_) {
    if (object_ != nullptr) object_->retain();
  }
  SharedPtr(SharedPtr&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  SharedPtr& operator=(const SharedPtr& other) {
    if (other.object_ != nullptr) other.object_->retain();
    reset();
    object_ = other.object_;
    return *this;
  }
  SharedPtr& operator=(SharedPtr&& other) {
    if (this == &other) return *this;
    reset();
    object_ = other.object_;
    other.object_ = nullptr;
    return *this;
  }
  ~SharedPtr() { reset(); }

  Class* get() const { return object_; }
  Class* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    Class* object = object_;
    object_ = nullptr;
    if (object != nullptr) object->release();
  }
  void detach() { object_ = nullptr; }

 private:
  template <class Other>
  friend SharedPtr<Other> RetainPtr(Other* object);
  template <class Other>
  friend SharedPtr<Other> TransferPtr(Other* object);
  Class* object_ = nullptr;
};

template <class Class>
SharedPtr<Class> RetainPtr(Class* object) {
  SharedPtr<Class> pointer;
  pointer.object_ = object == nullptr ? nullptr : object->retain();
  return pointer;
}

template <class Class>
SharedPtr<Class> TransferPtr(Class* object) {
  SharedPtr<Class> pointer;
  pointer.object_ = object;
  return pointer;
}

// Pools of a thread lie on top of each other; the last release of one releases what it holds.
class AutoreleasePool : public Referencing<AutoreleasePool> {
 public:
  static AutoreleasePool* alloc();
  AutoreleasePool* init();

 private:
  friend class Object;
  void dispose() override;
  std::vector<Object*> objects_;
};

struct Range {
  Range(UInteger location_, UInteger length_) : location(location_), length(length_) {}
  static Range Make(UInteger location, UInteger length) { return {location, length}; }
  UInteger location;
  UInteger length;
};

enum StringEncoding : UInteger { UTF8StringEncoding = 4 };

class String : public Copying<String> {
 public:
  static String* alloc();
  static String* string(const char* text, StringEncoding encoding);
  String* init(const char* text, StringEncoding encoding);
  const char* utf8String() const;

 private:
  std::string text_;
};

class Array : public Copying<Array> {
 public:
  static Array* array(const Object* const* objects, UInteger count);
  template <class Class = Object>
  Class* object(UInteger index) const {
    return static_cast<Class*>(at(index));
  }
  UInteger count() const;

 private:
  Object* at(UInteger index) const;
  void dispose() override;
  std::vector<Object*> objects_;
};

// Its keys are strings.
class Dictionary : public Copying<Dictionary> {
 public:
  static Dictionary* dictionary(const Object* const* objects, const Object* const* keys,
                                UInteger count);
  template <class Class = Object>
  Class* object(const Object* key) const {
    return static_cast<Class*>(at(key));
  }

 private:
  Object* at(const Object* key) const;
  void dispose() override;
  std::vector<std::pair<std::string, Object*>> entries_;
};

using ErrorDomain = String*;
using ErrorUserInfoKey = String*;

class Error : public Copying<Error> {
 public:
  static Error* error(ErrorDomain domain, Integer code, Dictionary* information);
  Integer code() const;
  Dictionary* userInfo() const;
  String* localizedDescription() const;

 private:
  void dispose() override;
  Integer code_ = 0;
  Dictionary* information_ = nullptr;
};

// In the user information of an error: what localizedDescription says.
extern const ErrorUserInfoKey LocalizedDescriptionKey;

class URL : public Copying<URL> {
 public:
  static URL* fileURLWithPath(const String* path);
  const char* fileSystemRepresentation() const;

 private:
  std::string path_;
};

}  // namespace NS
