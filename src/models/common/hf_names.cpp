#include "models/common/hf_names.h"

namespace akunu::hf {
namespace {

constexpr NameRules kUsualRules{"layers.", kModel<Transform::none>, kLayer<Transform::none>,
                                kLeftOut};
constexpr NameRules kSharedMlpRules{"layers.", kModel<Transform::none>, kSharedMlpLayer, kLeftOut};
constexpr NameRules kMixersRules{"layers.", kMixersModel, kMixersLayer, kLeftOut};
constexpr NameRules kGemmaRules{"layers.", kModel<Transform::add_one>, kLayer<Transform::add_one>,
                                kLeftOut};
constexpr NameRules kLaterGemmaRules{"layers.", kModel<Transform::add_one>, kLaterGemmaLayer,
                                     kLeftOut};
constexpr NameRules kGemma4Rules{"layers.", kGemma4Model, kGemma4Layer, kLeftOut};
constexpr NameRules kNormsBehindRules{"layers.", kModel<Transform::none>, kNormsBehindLayer,
                                      kLeftOut};

}  // namespace

constinit const HfNames kUsualNames{.rules = &kUsualRules};
constinit const HfNames kCentredNormsNames{.rules = &kGemmaRules, .of_mlx = &kUsualNames};
constinit const HfNames kGemmaNames{.rules = &kGemmaRules};
constinit const HfNames kLaterGemmaNames{.rules = &kLaterGemmaRules};
constinit const HfNames kGemma4Names{.rules = &kGemma4Rules};
constinit const HfNames kNormsBehindNames{.rules = &kNormsBehindRules};
constinit const HfNames kSharedMlpNames{.rules = &kSharedMlpRules};
constinit const HfNames kMixersNames{.rules = &kMixersRules, .embedding = "embeddings.weight"};

}  // namespace akunu::hf
