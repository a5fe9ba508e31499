#include "Foundation/Foundation.hpp"

#include <deque>
#include <memory>
#include <mutex>

#include "metal/emulator/executor.h"

namespace NS {
namespace {

using akunu::metal::emulator::EmulatorError;

// Objects after their last release, the oldest ones really deleted: what touches one soon after it
// is gone finds out.
class Graveyard {
 public:
  void add(Object* object) {
    std::unique_ptr<Object> oldest;  // deleted outside the lock
    const std::lock_guard lock(mutex_);
    objects_.emplace_back(object);
    if (objects_.size() <= kKept) return;
    oldest = std::move(objects_.front());
    objects_.pop_front();
  }

 private:
  static constexpr size_t kKept = 1024;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Object>> objects_;
};

Graveyard& graveyard() {
  static Graveyard graveyard;
  return graveyard;
}

std::vector<AutoreleasePool*>& pools() {
  thread_local std::vector<AutoreleasePool*> pools;
  return pools;
}

// A string that lives as long as the process does.
String* make_constant(const char* text) { return String::alloc()->init(text, UTF8StringEncoding); }

}  // namespace

void Object::check_alive(const char* method) const {
  if (references_.load() <= 0)
    throw EmulatorError(std::string(method) + " of " + describe() + ", which was released");
}

void Object::add_reference() {
  check_alive("retain");
  ++references_;
}

void Object::remove_reference() {
  const int left = --references_;
  if (left < 0) throw EmulatorError(describe() + " was released once too often");
  if (left > 0) return;
  struct Burial {
    ~Burial() { graveyard().add(object); }
    Object* object;
  } const burial{this};  // also when disposing finds something to throw
  dispose();
}

void Object::add_to_pool() {
  check_alive("autorelease");
  if (pools().empty()) throw EmulatorError(describe() + " is autoreleased, but there is no pool");
  pools().back()->objects_.push_back(this);
}

AutoreleasePool* AutoreleasePool::alloc() { return new AutoreleasePool; }

AutoreleasePool* AutoreleasePool::init() {
  pools().push_back(this);
  return this;
}

void AutoreleasePool::dispose() {
  if (pools().empty() || pools().back() != this)
    throw EmulatorError("an autorelease pool was released that is not the innermost of its thread");
  pools().pop_back();
  for (Object* object : std::exchange(objects_, {})) object->remove_reference();
}

String* String::alloc() { return new String; }

String* String::init(const char* text, StringEncoding) {
  text_ = text;
  return this;
}

String* String::string(const char* text, StringEncoding encoding) {
  return alloc()->init(text, encoding)->autorelease();
}

const char* String::utf8String() const {
  check_alive("utf8String");
  return text_.c_str();
}

Array* Array::array(const Object* const* objects, UInteger count) {
  auto* array = new Array;
  for (UInteger i = 0; i < count; ++i) {
    array->objects_.push_back(const_cast<Object*>(objects[i]));
    array->objects_.back()->add_reference();
  }
  return array->autorelease();
}

UInteger Array::count() const {
  check_alive("count");
  return objects_.size();
}

Object* Array::at(UInteger index) const {
  check_alive("object");
  if (index >= objects_.size())
    throw EmulatorError("object " + std::to_string(index) + " of an NS::Array of " +
                        std::to_string(objects_.size()));
  return objects_[index];
}

void Array::dispose() {
  for (Object* object : std::exchange(objects_, {})) object->remove_reference();
}

Dictionary* Dictionary::dictionary(const Object* const* objects, const Object* const* keys,
                                   UInteger count) {
  auto* dictionary = new Dictionary;
  for (UInteger i = 0; i < count; ++i) {
    auto* object = const_cast<Object*>(objects[i]);
    object->add_reference();
    dictionary->entries_.emplace_back(static_cast<const String*>(keys[i])->utf8String(), object);
  }
  return dictionary->autorelease();
}

Object* Dictionary::at(const Object* key) const {
  check_alive("object");
  for (const auto& [name, object] : entries_)
    if (name == static_cast<const String*>(key)->utf8String()) return object;
  return nullptr;
}

void Dictionary::dispose() {
  for (const auto& entry : std::exchange(entries_, {})) entry.second->remove_reference();
}

Error* Error::error(ErrorDomain, Integer code, Dictionary* information) {
  auto* error = new Error;
  error->code_ = code;
  error->information_ = information->retain();
  return error->autorelease();
}

Integer Error::code() const {
  check_alive("code");
  return code_;
}

Dictionary* Error::userInfo() const {
  check_alive("userInfo");
  return information_;
}

String* Error::localizedDescription() const {
  check_alive("localizedDescription");
  return information_->object<String>(LocalizedDescriptionKey);
}

void Error::dispose() { information_->release(); }

const ErrorUserInfoKey LocalizedDescriptionKey = make_constant("NSLocalizedDescription");

URL* URL::fileURLWithPath(const String* path) {
  auto* url = new URL;
  url->path_ = path->utf8String();
  return url->autorelease();
}

const char* URL::fileSystemRepresentation() const {
  check_alive("fileSystemRepresentation");
  return path_.c_str();
}

}  // namespace NS
