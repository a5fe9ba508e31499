// tools/build_time.py measures a build in units of this file, which it compiles again and again during the build. It
// includes nothing of akunu. Do not change it: recorded numbers could no longer be compared.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

template <int kNumber>
struct Counted {
  std::map<std::string, std::vector<std::variant<int, std::string, double>>> values;
  std::unordered_map<int, std::function<int(int)>> functions;

  int count(const std::string& name) {
    auto& found = values[name + std::to_string(kNumber)];
    found.emplace_back(kNumber);
    std::sort(found.begin(), found.end());
    functions[kNumber] = [this](int x) { return x + static_cast<int>(values.size()) + kNumber; };
    std::optional<int> sum;
    for (const auto& [key, function] : functions) sum = sum.value_or(0) + function(key);
    return *sum;
  }
};

template <int kNumber>
int count_all(const std::string& name) {
  if constexpr (kNumber == 0)
    return 0;
  else
    return std::make_unique<Counted<kNumber>>()->count(name) + count_all<kNumber - 1>(name);
}

}  // namespace

int count_to_12(const std::string& name) { return count_all<12>(name); }
