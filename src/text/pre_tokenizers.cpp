#include "text/pre_tokenizers.h"

#include <algorithm>

namespace akunu {

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  static const std::vector<PreTokenizer> families = {
#include "text/pre_tokenizers.inc"
  };
  const auto has_name = [&](const PreTokenizer& family) {
    return std::ranges::find(family.names, name) != family.names.end();
  };
  const auto found = std::ranges::find_if(families, has_name);
  return found == families.end() ? nullptr : &*found;
}

}  // namespace akunu
