#include "models/common/gguf_names.h"

namespace akunu::gguf {

constinit const NameRules kUsualNames{"blk.", kModel, kUsualLayer, kLeftOut};
constinit const NameRules kSeedNames{"blk.", kModel, kSeedLayer, kLeftOut};
constinit const NameRules kDeltaNames{"blk.", kModel, kDeltaLayer, kLeftOut};
constinit const NameRules kChannelsNames{"blk.", kModel, kChannelsLayer, kLeftOut};
constinit const NameRules kBesideScansNames{"blk.", kModel, kUsualLayer, kLeftOut, {}, "ffn_norm"};
constinit const NameRules kLfm2Names{"blk.", kLfm2Model, kUsualLayer, kLeftOut};

}  // namespace akunu::gguf
