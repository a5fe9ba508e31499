// GGUF, in the order of the file: header, values, tensor descriptions, padding, tensor data.
//   header       "GGUF", u32 version, u64 number of tensors, u64 number of values
//   value        string key, u32 type, value; array: u32 type of the elements, u64 count, elements
//   tensor       string name, u32 number of dimensions, u64 each, u32 type, u64 offset in the data
//   string       u64 length, bytes
// Nothing is aligned but the data and each tensor in it.
#include "files/gguf/parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "files/foreign.h"
#include "files/printable.h"
#include "files/sort_by_name.h"

namespace akunu {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are used as they lie in the file");

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kLeastAlignment = 8;     // the specification's; ggml asks for a power of two
constexpr uint64_t kLongestKey = 65535;     // the specification's
constexpr uint64_t kLeastValueBytes = 13;   // length of the key, type, one byte
constexpr uint64_t kLeastTensorBytes = 24;  // length of the name, dimensions, type, offset

std::string number(uint64_t value) { return std::to_string(value); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string path) {
  return GgufParser(bytes, std::move(path)).run();
}

GgufParser::GgufParser(std::span<const std::byte> bytes, std::string path)
    : bytes_(bytes), shown_path_(printable(path, kPathLimit)) {
  file_.parts_.push_back({nullptr, bytes, std::move(path)});
}

GgufFile GgufParser::run() {
  read_header();
  read_values();
  read_alignment();
  read_tensors();
  place_tensors();
  return std::move(file_);
}

void GgufParser::read_header() {
  if (!as_text(bytes_).starts_with(kMagic)) refuse_foreign(shown_path_, bytes_);
  take(kMagic.size(), "the magic");
  const auto version = take_number<uint32_t>("the version");
  if (version != 0 && (version & 0xffff) == 0)
    throw UnsupportedModelError(at(4) + "the file is big-endian GGUF; akunu reads little-endian");
  if (version != 2 && version != 3)
    throw UnsupportedModelError(at(4) + "GGUF version " + number(version) +
                                "; akunu reads versions 2 and 3");
  file_.version_ = version;
  n_tensors_ = take_number<uint64_t>("the number of tensors");
  n_values_ = take_number<uint64_t>("the number of metadata values");
  if (n_values_ > remaining() / kLeastValueBytes)
    throw ModelFormatError(at(16) + number(n_values_) + " metadata values need at least " +
                           number(kLeastValueBytes) + " bytes each, " + number(remaining()) +
                           " are left" + kCutOff);
  if (n_tensors_ > remaining() / kLeastTensorBytes)
    throw ModelFormatError(at(8) + number(n_tensors_) + " tensors need at least " +
                           number(kLeastTensorBytes) + " bytes each, " + number(remaining()) +
                           " are left" + kCutOff);
}

void GgufParser::read_values() {
  for (uint64_t i = 0; i < n_values_; ++i) file_.values_.push_back(read_value());
  const GgufValue* twice = sort_by_name(
      file_.values_, [](const GgufValue& value) { return value.key; }, file_.values_by_key_);
  if (twice != nullptr) {
    const char* start = twice->key.data() - sizeof(uint64_t);  // where its length lies
    throw ModelFormatError(
        at(static_cast<uint64_t>(start - reinterpret_cast<const char*>(bytes_.data()))) + "key " +
        printable(twice->key) + " appears for the second time");
  }
}

GgufValue GgufParser::read_value() {
  const uint64_t start = at_;
  GgufValue value{};
  subject_.clear();
  value.key = take_string("metadata key");
  if (value.key.empty()) throw ModelFormatError(at(start) + "a metadata key is empty");
  if (value.key.size() > kLongestKey)
    throw ModelFormatError(at(start) + "key " + printable(value.key) + " has " +
                           number(value.key.size()) + " bytes, the format allows " +
                           number(kLongestKey));
  subject_ = "key " + printable(value.key) + ": ";
  value.type = read_value_type(value.key);
  value.is_array = value.type == GgufValueType::array;
  value.count = 1;
  if (value.is_array) {
    const uint64_t type_at = at_;
    value.type = read_value_type(value.key);
    if (value.type == GgufValueType::array)
      throw UnsupportedModelError(at(type_at) + "key " + printable(value.key) +
                                  " is an array of arrays, which akunu does not read");
    value.count = take_number<uint64_t>("the array length");
  }
  if (value.type == GgufValueType::string) {
    take_strings(value);
    return value;
  }
  const uint64_t size = size_of(value.type);
  if (value.count > remaining() / size)
    throw ModelFormatError(at(at_) + "key " + printable(value.key) + " needs " +
                           number(value.count) + " values of " + number(size) + " bytes, " +
                           number(remaining()) + " bytes are left" + kCutOff);
  value.offset = at_;
  value.bytes = take(value.count * size, "the value");
  if (value.type == GgufValueType::boolean) check_booleans(value);
  return value;
}

GgufValueType GgufParser::read_value_type(std::string_view key) {
  const uint64_t start = at_;
  const auto type = take_number<uint32_t>("the value type");
  if (type > static_cast<uint32_t>(GgufValueType::float64))
    throw ModelFormatError(at(start) + "key " + printable(key) + " has value type " + number(type) +
                           ", the format knows 0 to 12");
  return static_cast<GgufValueType>(type);
}

void GgufParser::take_strings(GgufValue& value) {
  if (!value.is_array) {
    const std::string_view text = take_string("the string");
    value.offset = at_ - text.size();
    value.bytes = bytes_.subspan(value.offset, text.size());
    return;
  }
  value.offset = at_;
  // Each has at least its length; checked first, so that the message names the count.
  if (value.count > remaining() / sizeof(uint64_t))
    throw ModelFormatError(at(at_) + "key " + printable(value.key) + " needs " +
                           number(value.count) + " strings of at least 8 bytes, " +
                           number(remaining()) + " bytes are left" + kCutOff);
  for (uint64_t i = 0; i < value.count; ++i) take_string("a string of the array");
  value.bytes = bytes_.subspan(value.offset, at_ - value.offset);
}

void GgufParser::check_booleans(const GgufValue& value) const {
  for (uint64_t i = 0; i < value.count; ++i)
    if (const auto byte = static_cast<uint8_t>(value.bytes[i]); byte > 1)
      throw ModelFormatError(at(value.offset + i) + "key " + printable(value.key) +
                             " holds the boolean " + number(byte) + ", possible are 0 and 1");
}

void GgufParser::read_alignment() {
  constexpr std::string_view kKey = "general.alignment";
  const uint64_t alignment = file_.get_uint(kKey).value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment < kLeastAlignment)
    throw ModelFormatError(at(file_.find(kKey)->offset) + "general.alignment is " +
                           number(alignment) + "; a power of two from 8 on is needed");
  file_.alignment_ = alignment;
}

void GgufParser::read_tensors() {
  for (uint64_t i = 0; i < n_tensors_; ++i) {
    tensor_starts_.push_back(at_);
    file_.tensors_.push_back(read_tensor());
  }
  const GgufTensor* twice = sort_by_name(
      file_.tensors_, [](const GgufTensor& tensor) { return tensor.name; }, file_.tensors_by_name_);
  if (twice != nullptr)
    throw ModelFormatError(at(tensor_starts_[static_cast<size_t>(twice - file_.tensors_.data())]) +
                           "tensor " + printable(twice->name) + " appears for the second time");
}

GgufTensor GgufParser::read_tensor() {
  const uint64_t start = at_;
  GgufTensor tensor{};
  subject_.clear();
  tensor.name = take_string("tensor name");
  subject_ = "tensor " + printable(tensor.name) + ": ";
  tensor.n_dims = take_number<uint32_t>("the number of dimensions");
  if (tensor.n_dims > tensor.dims.size())
    throw ModelFormatError(at(start) + "tensor " + printable(tensor.name) + " has " +
                           number(tensor.n_dims) + " dimensions, the format allows 4");
  tensor.dims.fill(1);
  for (uint32_t i = 0; i < tensor.n_dims; ++i)
    tensor.dims[i] = take_number<uint64_t>("a dimension");
  tensor.type = take_number<uint32_t>("the type");
  tensor.offset = take_number<uint64_t>("the offset");
  check_tensor_shape(tensor, start);
  return tensor;
}

// Sets the size.
void GgufParser::check_tensor_shape(GgufTensor& tensor, uint64_t start) const {
  const std::string who = at(start) + "tensor " + printable(tensor.name);
  const std::optional<GgufBlock> block = gguf_block(tensor.type);
  if (!block)
    throw UnsupportedModelError(who + " has type number " + number(tensor.type) +
                                ", whose format akunu does not know");
  if (tensor.dims[0] % block->block_size != 0)
    throw ModelFormatError(who + " has rows of " + number(tensor.dims[0]) +
                           " values, which is no multiple of the " + number(block->block_size) +
                           " in a block of " + std::string(gguf_type_name(tensor.type)));
  uint64_t size = block->block_bytes;
  uint64_t factor = tensor.dims[0] / block->block_size;
  for (uint32_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 0) throw ModelFormatError(who + " has a dimension of 0");
    if (i > 0) factor = tensor.dims[i];
    if (__builtin_mul_overflow(size, factor, &size))
      throw ModelFormatError(who + " has dimensions " + number(tensor.dims[0]) + " x " +
                             number(tensor.dims[1]) + " x " + number(tensor.dims[2]) + " x " +
                             number(tensor.dims[3]) + ": more bytes than 64 bits can count");
  }
  tensor.size = size;
}

// Offsets become positions in the file.
void GgufParser::place_tensors() {
  if (file_.tensors_.empty()) return;  // a file with a vocabulary only may end without padding
  const uint64_t padding = (file_.alignment_ - at_ % file_.alignment_) % file_.alignment_;
  subject_.clear();
  take(padding, "padding before the tensor data");
  for (size_t i = 0; i < file_.tensors_.size(); ++i) {
    GgufTensor& tensor = file_.tensors_[i];
    if (tensor.offset % file_.alignment_ != 0)
      throw ModelFormatError(at(tensor_starts_[i]) + "tensor " + printable(tensor.name) +
                             " has offset " + number(tensor.offset) +
                             ", which is no multiple of the alignment " + number(file_.alignment_));
    if (tensor.offset > remaining() || tensor.size > remaining() - tensor.offset)
      throw ModelFormatError(at(tensor_starts_[i]) + "tensor " + printable(tensor.name) +
                             " needs " + number(tensor.size) + " bytes at " +
                             number(tensor.offset) + " of the tensor data, which has " +
                             number(remaining()) + kCutOff);
    tensor.offset += at_;
  }
  refuse_overlaps();
}

void GgufParser::refuse_overlaps() const {
  const std::vector<GgufTensor>& tensors = file_.tensors_;
  std::vector<size_t> by_offset(tensors.size());
  for (size_t i = 0; i < by_offset.size(); ++i) by_offset[i] = i;
  std::sort(by_offset.begin(), by_offset.end(), [&](size_t a, size_t b) {
    return std::pair(tensors[a].offset, a) < std::pair(tensors[b].offset, b);
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& before = tensors[by_offset[i - 1]];
    const GgufTensor& after = tensors[by_offset[i]];
    if (before.offset + before.size > after.offset)
      throw ModelFormatError(at(after.offset) + "tensor " + printable(after.name) +
                             " begins inside tensor " + printable(before.name) +
                             ", which ends at " + number(before.offset + before.size));
  }
}

std::span<const std::byte> GgufParser::take(uint64_t bytes, std::string_view what) {
  if (bytes > remaining())  // not `at_ + bytes > size`: a hostile length wraps around
    throw ModelFormatError(at(at_) + subject_ + std::string(what) + " needs " + number(bytes) +
                           " bytes, " + number(remaining()) + " are left" + kCutOff);
  const std::span<const std::byte> taken = bytes_.subspan(at_, bytes);
  at_ += bytes;
  return taken;
}

std::string_view GgufParser::take_string(std::string_view what) {
  const auto length = take_number<uint64_t>(what);
  return as_text(take(length, what));
}

template <class Number>
Number GgufParser::take_number(std::string_view what) {
  Number value;
  std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
  return value;
}

std::string GgufParser::at(uint64_t offset) const {
  return shown_path_ + ", byte " + number(offset) + ": ";
}

}  // namespace akunu
