// In the order of the file, all little-endian:
//   magic        u32 0x67676d6c, "lmgg"
//   numbers      11 x i32, as WhisperCppNumbers; the last is the type plus 1000 times its version
//   mel filters  i32 bands, i32 bins, float32 each
//   words        i32 how many; each u32 length, bytes
//   tensors      to the end; each i32 dimensions, i32 length of the name, i32 type, i32 each
//                dimension (the contiguous one first), name, data
#include "files/whisper_cpp/file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "files/foreign.h"
#include "files/printable.h"
#include "files/sort_by_name.h"

namespace akunu {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are used as they lie in the file");

constexpr std::string_view kMagic = "lmgg";
constexpr uint32_t kVersions = 1000;  // the type is behind its version's thousands
constexpr uint32_t kVersion = 2;      // ggml's blocks since May 2023
constexpr uint32_t kF16 = 1;
constexpr uint32_t kLongestName = 255;
constexpr uint32_t kLongestWord = 256;  // twice GPT-2's longest

std::string number(uint64_t value) { return std::to_string(value); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// Nothing from the file is believed before it is checked against the bytes that are left, and
// nothing is allocated for a count.
class WhisperCppParser {
 public:
  WhisperCppParser(std::span<const std::byte> bytes, std::string path)
      : bytes_(bytes), shown_path_(printable(path, kPathLimit)) {
    file_.path_ = std::move(path);
    file_.bytes_ = bytes;
  }

  WhisperCppFile run() {
    if (!WhisperCppFile::begins(as_text(bytes_)))
      refuse_foreign(shown_path_, bytes_, "a model of whisper.cpp begins with \"lmgg\"");
    take(kMagic.size(), "the magic");
    read_numbers();
    read_filters();
    read_words();
    read_tensors();
    return std::move(file_);
  }

 private:
  void read_numbers() {
    WhisperCppNumbers& is = file_.numbers_;
    is.n_vocab = take_count("n_vocab");
    is.n_audio_ctx = take_count("n_audio_ctx");
    is.n_audio_state = take_count("n_audio_state");
    is.n_audio_head = take_count("n_audio_head");
    is.n_audio_layer = take_count("n_audio_layer");
    is.n_text_ctx = take_count("n_text_ctx");
    is.n_text_state = take_count("n_text_state");
    is.n_text_head = take_count("n_text_head");
    is.n_text_layer = take_count("n_text_layer");
    is.n_mels = take_count("n_mels");
    const uint64_t begin = at_;
    const auto type = take_number<uint32_t>("ftype");
    is.file_type = type % kVersions;
    if (is.file_type > kF16 && type / kVersions != kVersion)
      throw UnsupportedModelError(at(begin) + "ftype is " + number(type) + ": blocks of version " +
                                  number(type / kVersions) +
                                  "; akunu reads version 2, which whisper.cpp writes since 2023");
  }

  void read_filters() {
    const uint64_t begin = at_;
    const uint32_t n_mels = take_count("the number of mel filters");
    const uint32_t n_bins = take_count("the length of a mel filter");
    if (n_mels != file_.numbers_.n_mels || n_bins != WhisperCppFile::kBins)
      throw ModelFormatError(at(begin) + "the mel filters are " + number(n_mels) + " of " +
                             number(n_bins) + " numbers; the model asks for " +
                             number(file_.numbers_.n_mels) + " of " +
                             number(WhisperCppFile::kBins));
    const uint64_t data_at = at_;
    const std::span<const std::byte> data =
        take(uint64_t{n_mels} * n_bins * sizeof(float), "the mel filters");
    file_.mel_filters_.resize(data.size() / sizeof(float));
    std::memcpy(file_.mel_filters_.data(), data.data(), data.size());
    for (const float weight : file_.mel_filters_)
      if (!std::isfinite(weight))
        throw ModelFormatError(at(data_at) + "a mel filter has a number that is not finite");
  }

  void read_words() {
    const uint64_t begin = at_;
    const auto n_words = take_number<uint32_t>("the number of words");
    if (n_words > file_.numbers_.n_vocab)
      throw ModelFormatError(at(begin) + "there are " + number(n_words) +
                             " words, and n_vocab is " + number(file_.numbers_.n_vocab));
    for (uint32_t i = 0; i < n_words; ++i) {
      const uint64_t word_at = at_;
      const auto length = take_number<uint32_t>("the length of a word");
      if (length > kLongestWord)
        throw ModelFormatError(at(word_at) + "word " + number(i) + " has " + number(length) +
                               " bytes; at most " + number(kLongestWord) + " are possible");
      file_.words_.push_back(as_text(take(length, "a word")));
    }
  }

  void read_tensors() {
    while (remaining() > 0) file_.tensors_.push_back(read_tensor());
    if (file_.tensors_.empty())
      throw ModelFormatError(at(at_) + "the file ends before its tensors");
    std::vector<size_t> by_name;
    const GgufTensor* twice =
        sort_by_name(file_.tensors_, [](const GgufTensor& tensor) { return tensor.name; }, by_name);
    if (twice != nullptr)
      throw ModelFormatError(at(twice->offset) + "tensor " + printable(twice->name) +
                             " appears for the second time");
  }

  GgufTensor read_tensor() {
    const uint64_t begin = at_;
    GgufTensor tensor{};
    tensor.n_dims = take_number<uint32_t>("the number of dimensions of a tensor");
    const auto name_length = take_number<uint32_t>("the length of a tensor's name");
    tensor.type = take_number<uint32_t>("the type of a tensor");
    if (tensor.n_dims == 0 || tensor.n_dims > 3)
      throw ModelFormatError(at(begin) + "a tensor has " + number(tensor.n_dims) +
                             " dimensions; one to three are possible");
    if (name_length == 0 || name_length > kLongestName)
      throw ModelFormatError(at(begin) + "the name of a tensor has " + number(name_length) +
                             " bytes; 1 to " + number(kLongestName) + " are possible");
    tensor.dims.fill(1);
    for (uint32_t i = 0; i < tensor.n_dims; ++i) tensor.dims[i] = take_count("a dimension");
    tensor.name = as_text(take(name_length, "the name of a tensor"));
    const std::string who = at(begin) + "tensor " + printable(tensor.name);
    const std::optional<GgufBlock> block = gguf_block(tensor.type);
    if (!block)
      throw UnsupportedModelError(who + " has type number " + number(tensor.type) +
                                  ", whose format akunu does not know");
    if (tensor.dims[0] % block->block_size != 0)
      throw ModelFormatError(who + " has rows of " + number(tensor.dims[0]) +
                             " values, which is no multiple of the " + number(block->block_size) +
                             " in a block of " + std::string(gguf_type_name(tensor.type)));
    // Dimensions are below 2^31, so the product of two fits; that of three may not.
    uint64_t size = tensor.dims[0] / block->block_size * block->block_bytes;
    if (__builtin_mul_overflow(size, tensor.dims[1], &size) ||
        __builtin_mul_overflow(size, tensor.dims[2], &size))
      throw ModelFormatError(who + " has more bytes than 64 bits can count");
    tensor.offset = at_;
    tensor.size = size;
    take(size, "the data of tensor " + printable(tensor.name));
    return tensor;
  }

  std::span<const std::byte> take(uint64_t bytes, std::string_view what) {
    if (bytes > remaining())  // not `at_ + bytes > size`: a hostile length wraps around
      throw ModelFormatError(at(at_) + std::string(what) + " needs " + number(bytes) + " bytes, " +
                             number(remaining()) + " are left" + kCutOff);
    const std::span<const std::byte> taken = bytes_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }
  template <class Number>
  Number take_number(std::string_view what) {
    Number value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  uint32_t take_count(std::string_view what) {
    const uint64_t begin = at_;
    const auto value = take_number<int32_t>(what);
    if (value <= 0)
      throw ModelFormatError(at(begin) + std::string(what) + " is " + std::to_string(value) +
                             "; it must be above 0");
    return static_cast<uint32_t>(value);
  }
  uint64_t remaining() const { return bytes_.size() - at_; }
  std::string at(uint64_t offset) const { return shown_path_ + ", byte " + number(offset) + ": "; }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  std::string shown_path_;
  WhisperCppFile file_;
};

bool WhisperCppFile::begins(std::string_view bytes) { return bytes.starts_with(kMagic); }

WhisperCppFile WhisperCppFile::parse(std::span<const std::byte> bytes, std::string path) {
  return WhisperCppParser(bytes, std::move(path)).run();
}

WhisperCppFile WhisperCppFile::open(const std::string& path) {
  std::shared_ptr<const MappedFile> mapping = MappedFile::open(path);
  try {
    WhisperCppFile file = parse(mapping->bytes(), path);
    file.mapping_ = std::move(mapping);
    return file;
  } catch (const Error&) {
    if (const std::optional<std::string> damage = mapping->damage())
      throw ModelFormatError(*damage);
    throw;
  }
}

std::optional<std::string> WhisperCppFile::damage() const {
  return mapping_ ? mapping_->damage() : std::nullopt;
}

}  // namespace akunu
