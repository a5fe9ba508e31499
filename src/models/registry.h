// The families that there are, by name. CMake makes the table of the files in this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/family.h"

namespace akunu {

// In the order of their files' names.
std::span<const Family* const> families();

// Null where there is none.
const Family* find_family(std::string_view architecture);

struct FoundHfModel {
  const Family* family = nullptr;
  const HfModel* model = nullptr;
};
FoundHfModel find_hf_model(std::string_view model_type);
const ImageModel* find_image_model(std::string_view model_type);

// Of its directories; of a family that has none, those that most have.
const HfNames& names_of(const Family& family);

std::string known_architectures();  // "bert, cohere2, ..."
std::string known_model_types();    // of directories

}  // namespace akunu
