#include "arguments.h"

#include <cstring>

#include "core/error.h"

namespace akunu::python {

std::vector<uint32_t> to_vector(const Tokens& tokens) {
  if (tokens.ndim() != 1) throw ArgumentError("tokens must be one-dimensional");
  return {tokens.data(), tokens.data() + tokens.size()};
}

std::vector<TextAdapter> shares_of(const std::map<uint32_t, float>& adapters) {
  std::vector<TextAdapter> shares;
  for (const auto& [adapter, weight] : adapters) shares.push_back({adapter, weight});
  return shares;
}

LogitsRequest logits_request(const Tokens& tokens, uint32_t first, int32_t priority,
                             const std::map<uint32_t, float>& adapters, const Window& window,
                             bool aligns, const GivenImages& images) {
  return {.tokens = to_vector(tokens),
          .first = first,
          .chunks = {},
          .generated = false,
          .priority = priority,
          .adapters = shares_of(adapters),
          .window = window,
          .images = placed(images),
          .aligns = aligns};
}

Sampling sampling_of(const std::string& packed) {
  Sampling sampling;
  if (packed.size() != sizeof sampling)
    throw ArgumentError("options of sampling are " + std::to_string(sizeof sampling) +
                        " bytes, got " + std::to_string(packed.size()));
  std::memcpy(&sampling, packed.data(), sizeof sampling);
  return sampling;
}

Pooling pooling_of(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "cls") return Pooling::first;
  if (name == "last") return Pooling::last;
  if (name == "max") return Pooling::max;
  if (name == "none") return Pooling::none;
  throw ArgumentError("pooling is '" + name + "'; possible are mean, cls, last, max and none");
}

const char* name_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::none:
      return "none";
    case Pooling::mean:
      return "mean";
    case Pooling::first:
      return "cls";
    case Pooling::last:
      return "last";
    case Pooling::max:
      return "max";
  }
  __builtin_unreachable();
}

}  // namespace akunu::python
