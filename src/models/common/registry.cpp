#include "models/registry.h"

namespace akunu {
namespace {

void add(std::string& names, std::string_view name) {
  if (!names.empty()) names += ", ";
  names += name;
}

}  // namespace

const Family* find_family(std::string_view architecture) {
  for (const Family* family : families())
    if (family->architecture == architecture) return family;
  return nullptr;
}

FoundHfModel find_hf_model(std::string_view model_type) {
  for (const Family* family : families())
    for (const HfModel& model : family->directories)
      if (model.model_type == model_type) return {family, &model};
  return {};
}

const ImageModel* find_image_model(std::string_view model_type) {
  for (const Family* family : families())
    for (const ImageModel& model : family->with_images)
      if (model.model_type == model_type) return &model;
  return nullptr;
}

const HfNames& names_of(const Family& family) {
  return family.directories.empty() ? hf::kUsualNames : *family.directories.front().names;
}

std::string known_architectures() {
  std::string names;
  for (const Family* family : families()) add(names, family->architecture);
  return names;
}

std::string known_model_types() {
  std::string names;
  for (const Family* family : families())
    for (const HfModel& model : family->directories) add(names, model.model_type);
  for (const Family* family : families())
    for (const ImageModel& model : family->with_images) add(names, model.model_type);
  return names;
}

}  // namespace akunu
