// The tensors of factors on a model's rotary frequencies, by their canonical names.
#pragma once

#include <string_view>

namespace akunu {

inline constexpr std::string_view kRopeFactors = "rope_factors.weight";
// Of long-RoPE: which of them holds depends on the context.
inline constexpr std::string_view kLongRopeFactors = "rope_factors_long.weight";
inline constexpr std::string_view kShortRopeFactors = "rope_factors_short.weight";

}  // namespace akunu
