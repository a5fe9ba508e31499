// DeepSeek-MoE (2024): llama with experts, and some more for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::deepseek {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

namespace {

// The letters that deepseek-llm keeps together: cased ones, as a table of an older Unicode version lists them (so neither
// \p{L} nor \p{Lu}\p{Ll}\p{Lt} is the same set).
constexpr std::string_view kDeepseekLlmCuts[]{
    R"([\r\n])",
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6"
    "\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a"
    "\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531"
    "-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-"
    "\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-"
    "\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2"
    "-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145"
    "-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-"
    "\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80"
    "-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+",
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    R"(\s+$)",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    R"(\p{N}+)"};
constexpr PreTokenizer kDeepseekLlm{.splits = kDeepseekLlmCuts};
constexpr std::string_view kDeepseekCoderCuts[]{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                                                R"(\p{N})"};
constexpr PreTokenizer kDeepseekCoder{.splits = kDeepseekCoderCuts};
constexpr PreTokenizerName kPreTokenizers[]{{"deepseek-llm", &kDeepseekLlm},
                                            {"deepseek-coder", &kDeepseekCoder}};

}  // namespace

constinit const Family family{
    .architecture = "deepseek",
    .titles = {.with_experts = "DeepSeek-MoE"},
    .describe = describe,
    .traits = {.experts = true},
    .written = {.always_with_experts = true},
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::deepseek
