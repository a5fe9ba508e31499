#include "models/common/hf_names.h"

#include "weight/names.h"

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
constexpr auto kWithImagesModel = joined(kModel<Transform::add_one>, kGemma3ImagesModel);
constexpr auto kWithImagesLayer = joined(kLaterGemmaLayer, kSiglipLayer);
constexpr auto kWithImagesLeftOut = joined(kAlwaysLeftOut, kGemma3ImagesLeftOut);
constexpr NameRules kGemma3ImagesRules{"layers.", kWithImagesModel, kWithImagesLayer,
                                       kWithImagesLeftOut, "vision_tower.encoder.layers."};
constexpr NameRules kGemma4Rules{"layers.", kGemma4Model, kGemma4Layer, kLeftOut};
constexpr NameRules kGemma3nRules{"layers.", kGemma3nModel, kGemma3nLayer, kLeftOut};
constexpr NameRules kNormsBehindRules{"layers.", kModel<Transform::none>, kNormsBehindLayer,
                                      kLeftOut};
constexpr NameRules kGptOssRules{"layers.", kModel<Transform::none>, kGptOssLayer, kLeftOut};
constexpr NameRules kBertRules{"encoder.layer.", kBertModel, kBertLayer, kBertLeftOut};
constexpr auto kBertHeadModel = joined(kBertModel, kHead);
constexpr NameRules kBertHeadRules{"encoder.layer.", kBertHeadModel, kBertLayer,
                                   kBertClassifierLeftOut};
constexpr NameRules kNomicRules{"encoder.layers.", kNomicModel, kNomicLayer, kBertLeftOut};
constexpr NameRules kModernRules{"layers.", kModernBertModel, kModernBertLayer, kModernBertLeftOut};
constexpr auto kModernHeadModel = joined(kModernBertModel, kHead);
constexpr NameRules kModernHeadRules{"layers.", kModernHeadModel, kModernBertLayer,
                                     kBertClassifierLeftOut};
constexpr HfNames kGemma3ImagesNames{.rules = &kGemma3ImagesRules};

}  // namespace

constinit const HfNames kUsualNames{.rules = &kUsualRules};
constinit const HfNames kCentredNormsNames{.rules = &kGemmaRules, .of_mlx = &kUsualNames};
constinit const HfNames kGemmaNames{.rules = &kGemmaRules};
constinit const HfNames kLaterGemmaNames{.rules = &kLaterGemmaRules,
                                         .with_images = &kGemma3ImagesNames};
constinit const HfNames kGemma4Names{.rules = &kGemma4Rules};
constinit const HfNames kGemma3nNames{.rules = &kGemma3nRules};
constinit const HfNames kNormsBehindNames{.rules = &kNormsBehindRules};
constinit const HfNames kBertNames{.rules = &kBertRules,
                                   .embedding = "embeddings.word_embeddings.weight",
                                   .of_classifier = &kBertHeadRules};
constinit const HfNames kNomicBertNames{.rules = &kNomicRules,
                                        .embedding = "embeddings.word_embeddings.weight"};
constinit const HfNames kModernBertNames{.rules = &kModernRules,
                                         .embedding = "embeddings.tok_embeddings.weight",
                                         .of_classifier = &kModernHeadRules};
constinit const HfNames kSharedMlpNames{.rules = &kSharedMlpRules};
constinit const HfNames kMixersNames{.rules = &kMixersRules, .embedding = "embeddings.weight"};
constinit const HfNames kGptOssNames{.rules = &kGptOssRules};

}  // namespace akunu::hf
