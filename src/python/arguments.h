// What Python passes, as the types of the engine: each function throws ArgumentError for a value that is none.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/arch.h"
#include "core/format.h"
#include "core/rows.h"
#include "inference/adapters.h"
#include "inference/logits_task.h"
#include "native_images.h"
#include "native_speech.h"

namespace akunu::python {

using Tokens = pybind11::array_t<uint32_t, pybind11::array::c_style>;  // [n]

std::vector<uint32_t> to_vector(const Tokens& tokens);

// Of a dict {number of an adapter: weight}.
std::vector<TextAdapter> shares_of(const std::map<uint32_t, float>& adapters);

// The logits of tokens `first` on, which are read as a prompt is; with `aligns`, where in the window
// they are.
LogitsRequest logits_request(const Tokens& tokens, uint32_t first, int32_t priority,
                             const std::map<uint32_t, float>& adapters, const Window& window,
                             bool aligns = false, const GivenImages& images = {});

// The struct of core/rows.h as SamplingOptions.packed (python/akunu) packs it.
Sampling sampling_of(const std::string& packed);

Pooling pooling_of(const std::string& name);  // "mean", "cls", "last", "max" or "none"
const char* name_of(Pooling pooling);

}  // namespace akunu::python
