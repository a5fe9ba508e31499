// Small help with metal-cpp: pools, strings.
#pragma once

#include <Foundation/Foundation.hpp>
#include <string>

namespace akunu::metal {

// Objects that metal-cpp gives without `new` or `alloc` in the name live until the pool ends; every
// entry of the device begins with one.
class AutoreleasePool {
 public:
  AutoreleasePool() : pool_(NS::TransferPtr(NS::AutoreleasePool::alloc()->init())) {}

 private:
  NS::SharedPtr<NS::AutoreleasePool> pool_;
};

inline NS::SharedPtr<NS::String> make_string(const std::string& text) {
  return NS::TransferPtr(NS::String::alloc()->init(text.c_str(), NS::UTF8StringEncoding));
}

inline std::string to_string(const NS::String* text) {
  return text == nullptr ? std::string() : std::string(text->utf8String());
}

// What an error says; "no reason given" where there is none.
inline std::string describe(const NS::Error* error) {
  const std::string text = error == nullptr ? "" : to_string(error->localizedDescription());
  return text.empty() ? "no reason given" : text;
}

}  // namespace akunu::metal
