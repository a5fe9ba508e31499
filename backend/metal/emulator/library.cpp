#include "metal/emulator/library.h"

#include <algorithm>
#include <string>

namespace akunu::metal::emulator {
namespace {

const std::vector<Function>& library() {
  static const std::vector<Function> functions = link(library_files());
  return functions;
}

}  // namespace

std::vector<Function> link(std::span<const FileCode> files) {
  std::vector<Function> functions;
  for (const FileCode& file : files) {
    for (size_t i = 0; i < file.plain.size(); ++i) {
      functions.push_back({file.plain[i], file.checked[i]});
    }
  }
  std::ranges::sort(functions, {}, [](const Function& function) { return function.plain.name; });
  const auto same = std::ranges::adjacent_find(
      functions, {}, [](const Function& function) { return function.plain.name; });
  if (same != functions.end()) {
    throw EmulatorError("two functions are named " + std::string(same->plain.name) + ": " +
                        same->plain.file + " and " + std::next(same)->plain.file);
  }
  return functions;
}

std::span<const Function* const> functions() {
  static const std::vector<const Function*> pointers = [] {
    std::vector<const Function*> result;
    for (const Function& function : library()) result.push_back(&function);
    return result;
  }();
  return pointers;
}

const Function* find_function(std::string_view host_name) {
  const auto& all = library();
  const auto found = std::ranges::lower_bound(
      all, host_name, {}, [](const Function& function) { return function.plain.name; });
  return found != all.end() && found->plain.name == host_name ? &*found : nullptr;
}

std::string_view name_of(const Function& function) { return function.plain.name; }
std::span<const Argument> arguments_of(const Function& function) {
  return function.plain.arguments;
}
std::span<const FunctionConstantInfo> constants_of(const Function& function) {
  return function.plain.constants;
}

}  // namespace akunu::metal::emulator
