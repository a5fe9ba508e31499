// What a reader takes for one character: extended grapheme clusters (Unicode, annex 29), as far as the
// `tokenizers` library lets them decide something, which looks at clusters of up to five bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace akunu {

// Bytes of the cluster that valid UTF-8 begins with; 0 for an empty text. Clusters of Korean syllables, of
// flags and of Indic conjuncts, which have six bytes and more, may come out as several.
size_t grapheme_length(std::string_view text);

}  // namespace akunu
