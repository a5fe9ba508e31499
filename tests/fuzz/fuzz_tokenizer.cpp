// Any bytes are a vocabulary and a text, or are refused with one of our errors. The bytes are a GGUF file;
// what lies behind its last value is the text too. Of what is accepted, every token has an id and
// text comes back where the vocabulary promises it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "text/expression.h"
#include "text/gguf_vocabulary.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace akunu {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a text was encoded although this does not hold: %s\n", what);
  std::abort();
}

// The last bytes, with those that are no UTF-8 replaced.
std::string text_of(std::string_view bytes) {
  std::string text(bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 200)));
  for (size_t bad; (bad = find_invalid_utf8(text)) != std::string::npos;) text[bad] = '?';
  return text;
}

void use(const Tokenizer& tokenizer, const std::string& text) {
  for (const bool special : {false, true}) {
    std::vector<uint32_t> ids;
    try {
      ids = tokenizer.encode(text, special, special);
    } catch (const ArgumentError&) {
      return;  // a byte without a token
    }
    TextStream stream(tokenizer);
    std::string back;
    bool are_normal = true;
    for (const uint32_t id : ids) {
      require(id < tokenizer.size(), "ids are in range");
      are_normal = are_normal && tokenizer.vocabulary().types[id] == TokenType::normal;
      back += stream.push(id);
    }
    back += stream.finish();
    require(find_invalid_utf8(back) == std::string::npos, "text is UTF-8");
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    // A user-defined token is its own spelling, also where that has letters of the alphabet of bytes.
    if (!special && vocabulary.model == TokenizerModel::byte_level && !vocabulary.nfc && are_normal)
      require(back == text, "byte-level tokens are the text");
  }
}

void use_as_expression(std::string_view pattern, std::string_view text) {
  if (find_invalid_utf8(pattern) != std::string_view::npos) return;
  try {
    const Expression expression(pattern);
    const std::u32string characters = to_characters(text);
    std::vector<size_t> ends;
    append_word_ends(expression, characters, 0, characters.size(), ends);
    size_t begin = 0;
    for (const size_t end : ends) {
      require(end > begin, "words are not empty");
      begin = end;
    }
    require(begin == characters.size(), "words are all of the text");
  } catch (const UnsupportedModelError&) {
  }
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace akunu;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = text_of(bytes);
  use_as_expression(bytes.substr(0, std::min<size_t>(size, 24)), text);
  use_as_expression(bytes.substr(size - std::min<size_t>(size, 12)), text);
  try {
    const GgufFile file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzzed.gguf");
    use(Tokenizer(read_vocabulary(file)), text);
  } catch (const ModelFormatError&) {
  } catch (const UnsupportedModelError&) {
  }
  return 0;
}
