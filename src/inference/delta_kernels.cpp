#include "inference/delta_kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/floats.h"

namespace akunu {

ModelSource with_joined_kernels(ModelSource source) {
  constexpr std::string_view kEnds[] = {".delta.kernel_q.weight", ".delta.kernel_k.weight",
                                        ".delta.kernel_v.weight"};
  std::map<std::string, std::array<SourceTensor, 3>> found;
  std::vector<SourceTensor> others;
  for (SourceTensor& tensor : source.tensors) {
    size_t which = 0;
    while (which < 3 && !tensor.name.ends_with(kEnds[which])) ++which;
    if (which == 3) {
      others.push_back(std::move(tensor));
      continue;
    }
    refuse_quantised_vector(tensor);
    const std::string layer = tensor.name.substr(0, tensor.name.size() - kEnds[which].size());
    found[layer][which] = std::move(tensor);
  }
  for (auto& [layer, three] : found) {
    const auto values = std::make_shared<std::vector<float>>();
    for (const SourceTensor& each : three)  // of one that is missing there are no numbers
      for (uint64_t i = 0; !each.name.empty() && i < each.k(); ++i)
        values->push_back(float_at(each.format, each.parts[0].bytes, i));
    const auto* const first =
        std::ranges::find_if(three, [](const SourceTensor& each) { return !each.name.empty(); });
    SourceTensor joined = *first;
    joined.name = layer + ".delta.kernel.weight";
    joined.format = Format::f32;
    joined.shape = {1, 1, values->size()};
    joined.parts = {};
    joined.parts[0] = {.bytes = std::as_bytes(std::span(*values)), .owner = values};
    others.push_back(std::move(joined));
  }
  source.tensors = std::move(others);
  return source;
}

}  // namespace akunu
