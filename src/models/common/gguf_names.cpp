#include "models/common/gguf_names.h"

namespace akunu::gguf {

constinit const NameRules kUsualNames{"blk.", kModel, kUsualLayer, kLeftOut};
constinit const NameRules kSeedNames{"blk.", kModel, kSeedLayer, kLeftOut};
constinit const NameRules kDeltaNames{"blk.", kModel, kDeltaLayer, kLeftOut};

}  // namespace akunu::gguf
