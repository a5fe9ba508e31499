#include "Foundation/Foundation.hpp"

#include <memory>

#include "metal/emulator/executor.h"

namespace NS {
namespace {

using akunu::metal::emulator::EmulatorError;

std::vector<AutoreleasePool*>& pools() {
  thread_local std::vector<AutoreleasePool*> pools;
  return pools;
}

// A string that lives as long as the process does.
String* make_constant(const char* text) { return String::alloc()->init(text, UTF8StringEncoding); }

}  // namespace

void Object::remove_reference() {
  if (--references_ > 0) return;
  const std::unique_ptr<Object> last(this);  // also when disposing finds something to throw
  dispose();
}

// Where there is no pool the object is never released, as there.
void Object::add_to_pool() {
  if (!pools().empty()) pools().back()->objects_.push_back(this);
}

AutoreleasePool* AutoreleasePool::alloc() { return new AutoreleasePool; }

AutoreleasePool* AutoreleasePool::init() {
  pools().push_back(this);
  return this;
}

void AutoreleasePool::dispose() {
  const bool is_innermost = !pools().empty() && pools().back() == this;
  std::erase(pools(), this);
  if (!is_innermost)
    throw EmulatorError("an autorelease pool was released that is not the innermost of its thread");
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

const char* String::utf8String() const { return text_.c_str(); }

Array* Array::array(const Object* const* objects, UInteger count) {
  auto* array = new Array;
  for (UInteger i = 0; i < count; ++i) {
    array->objects_.push_back(const_cast<Object*>(objects[i]));
    array->objects_.back()->add_reference();
  }
  return array->autorelease();
}

UInteger Array::count() const { return objects_.size(); }

Object* Array::at(UInteger index) const {
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

Integer Error::code() const { return code_; }

Dictionary* Error::userInfo() const { return information_; }

String* Error::localizedDescription() const {
  return information_->object<String>(LocalizedDescriptionKey);
}

void Error::dispose() { information_->release(); }

const ErrorUserInfoKey LocalizedDescriptionKey = make_constant("NSLocalizedDescription");

URL* URL::fileURLWithPath(const String* path) {
  auto* url = new URL;
  url->path_ = path->utf8String();
  return url->autorelease();
}

const char* URL::fileSystemRepresentation() const { return path_.c_str(); }

}  // namespace NS
