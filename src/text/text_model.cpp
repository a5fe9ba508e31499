#include "text/text_model.h"

#include "core/error.h"

namespace akunu {

std::unique_ptr<const TextModel> make_text_model(const Vocabulary& vocabulary) {
  switch (vocabulary.model) {
    case TokenizerModel::byte_level:
      return make_byte_level(vocabulary);
    case TokenizerModel::sentencepiece:
    case TokenizerModel::gemma4:
      return make_sentencepiece(vocabulary);
    case TokenizerModel::wordpiece:
      return make_wordpiece(vocabulary);
    case TokenizerModel::unigram:
      return make_unigram(vocabulary);
  }
  throw UnsupportedModelError("a tokenizer model that nothing encodes with");
}

bool is_ordinary(const Vocabulary& vocabulary, uint32_t id) {
  const TokenType type = vocabulary.types[id];
  if (const AddedToken* added = vocabulary.find_added(id); added && !added->is_piece) return false;
  return vocabulary.is_text[id] && !vocabulary.tokens[id].empty() && type != TokenType::control &&
         type != TokenType::unknown && type != TokenType::byte;
}

}  // namespace akunu
