// Looking up what the parser found.
#include "files/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "files/printable.h"

namespace akunu {
namespace {

template <class Number>
Number load(const GgufValue& value, uint64_t index) {
  Number number;
  std::memcpy(&number, value.bytes.data() + index * sizeof number, sizeof number);
  return number;
}

// An integer of any width, as it is in 64 bits; `negative` tells int64 from uint64.
struct Integer {
  uint64_t bits;
  bool negative;
};

template <class Number>
Integer widen(Number number) {
  return {static_cast<uint64_t>(number), std::cmp_less(number, 0)};
}

std::optional<Integer> integer_at(const GgufValue& value, uint64_t i) {
  switch (value.type) {
    case GgufValueType::uint8:
      return widen(load<uint8_t>(value, i));
    case GgufValueType::int8:
      return widen(load<int8_t>(value, i));
    case GgufValueType::uint16:
      return widen(load<uint16_t>(value, i));
    case GgufValueType::int16:
      return widen(load<int16_t>(value, i));
    case GgufValueType::uint32:
      return widen(load<uint32_t>(value, i));
    case GgufValueType::int32:
      return widen(load<int32_t>(value, i));
    case GgufValueType::uint64:
      return widen(load<uint64_t>(value, i));
    case GgufValueType::int64:
      return widen(load<int64_t>(value, i));
    case GgufValueType::float32:
    case GgufValueType::float64:
    case GgufValueType::boolean:
    case GgufValueType::string:
    case GgufValueType::array:
      return std::nullopt;
  }
  __builtin_unreachable();
}

std::string text_of(Integer integer) {
  return integer.negative ? std::to_string(std::bit_cast<int64_t>(integer.bits))
                          : std::to_string(integer.bits);
}

std::optional<int64_t> as_int64(Integer integer) {
  if (!integer.negative && integer.bits > uint64_t{std::numeric_limits<int64_t>::max()})
    return std::nullopt;
  return std::bit_cast<int64_t>(integer.bits);
}

// Integers up to 2^53 are floats too; beyond that, one would be rounded.
std::optional<double> float_at(const GgufValue& value, uint64_t i) {
  if (value.type == GgufValueType::float32) return static_cast<double>(load<float>(value, i));
  if (value.type == GgufValueType::float64) return load<double>(value, i);
  const std::optional<Integer> integer = integer_at(value, i);
  const std::optional<int64_t> small = integer ? as_int64(*integer) : std::nullopt;
  constexpr int64_t kLargest = int64_t{1} << 53;
  if (!small || *small > kLargest || *small < -kLargest) return std::nullopt;
  return static_cast<double>(*small);
}

std::string description(const GgufValue& value) {
  std::string result(name_of(value.type));
  if (value.is_array) result = "an array of " + std::to_string(value.count) + " " + result;
  return result;
}

std::string element(uint64_t i) { return "element " + std::to_string(i); }

template <class Item, class Name>
const Item* find_by_name(const std::vector<Item>& items, const std::vector<size_t>& sorted,
                         Name name, std::string_view wanted) {
  const auto found = std::lower_bound(
      sorted.begin(), sorted.end(), wanted,
      [&](size_t index, std::string_view text) { return name(items[index]) < text; });
  if (found == sorted.end() || name(items[*found]) != wanted) return nullptr;
  return &items[*found];
}

}  // namespace

GgufFile GgufFile::open_one(const std::string& path) {
  std::shared_ptr<const MappedFile> mapping = MappedFile::open(path);
  // A file that is cut while it is read says nonsense first; why it does is the better answer.
  const auto blame_damage = [&] {
    if (const std::optional<std::string> damage = mapping->damage())
      throw ModelFormatError(*damage);
  };
  try {
    GgufFile file = parse(mapping->bytes(), path);
    blame_damage();
    file.parts_.front().mapping = std::move(mapping);
    return file;
  } catch (const Error&) {
    blame_damage();
    throw;
  }
}

std::optional<std::string> GgufFile::damage() const {
  for (const GgufPart& part : parts_)
    if (std::optional<std::string> damage = part.mapping ? part.mapping->damage() : std::nullopt)
      return damage;
  return std::nullopt;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  return find_by_name(
      values_, values_by_key_, [](const GgufValue& value) { return value.key; }, key);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_by_name(
      tensors_, tensors_by_name_, [](const GgufTensor& tensor) { return tensor.name; }, name);
}

void GgufFile::refuse(const GgufValue& value, const std::string& found,
                      std::string_view wanted) const {
  throw ModelFormatError(printable(path(), kPathLimit) + ", byte " + std::to_string(value.offset) +
                         ": key " + printable(value.key) + " is " + found + ", wanted " +
                         std::string(wanted));
}

const GgufValue* GgufFile::find_scalar(std::string_view key, std::string_view wanted) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->is_array) refuse(*value, description(*value), wanted);
  return value;
}

const GgufValue* GgufFile::find_array(std::string_view key, std::string_view wanted) const {
  const GgufValue* value = find(key);
  if (value != nullptr && !value->is_array) refuse(*value, description(*value), wanted);
  return value;
}

std::optional<uint64_t> GgufFile::get_uint(std::string_view key) const {
  constexpr std::string_view kWanted = "an unsigned integer";
  const GgufValue* value = find_scalar(key, kWanted);
  if (value == nullptr) return std::nullopt;
  const std::optional<Integer> integer = integer_at(*value, 0);
  if (!integer) refuse(*value, description(*value), kWanted);
  if (integer->negative) refuse(*value, text_of(*integer), kWanted);
  return integer->bits;
}

std::optional<int64_t> GgufFile::get_int(std::string_view key) const {
  constexpr std::string_view kWanted = "an integer of 64 bits with sign";
  const GgufValue* value = find_scalar(key, kWanted);
  if (value == nullptr) return std::nullopt;
  const std::optional<Integer> integer = integer_at(*value, 0);
  if (!integer) refuse(*value, description(*value), kWanted);
  const std::optional<int64_t> result = as_int64(*integer);
  if (!result) refuse(*value, text_of(*integer), kWanted);
  return result;
}

std::optional<double> GgufFile::get_float(std::string_view key) const {
  constexpr std::string_view kWanted = "a finite number";
  const GgufValue* value = find_scalar(key, kWanted);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> result = float_at(*value, 0);
  if (!result) {
    const std::optional<Integer> integer = integer_at(*value, 0);
    refuse(*value, integer ? text_of(*integer) : description(*value), kWanted);
  }
  if (!std::isfinite(*result)) refuse(*value, std::isnan(*result) ? "NaN" : "infinite", kWanted);
  return result;
}

std::optional<bool> GgufFile::get_bool(std::string_view key) const {
  constexpr std::string_view kWanted = "a BOOL";
  const GgufValue* value = find_scalar(key, kWanted);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::boolean) refuse(*value, description(*value), kWanted);
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufFile::get_string(std::string_view key) const {
  constexpr std::string_view kWanted = "a STRING";
  const GgufValue* value = find_scalar(key, kWanted);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::string) refuse(*value, description(*value), kWanted);
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::optional<uint64_t> GgufFile::array_length(std::string_view key) const {
  const GgufValue* value = find_array(key, "an array");
  if (value == nullptr) return std::nullopt;
  return value->count;
}

std::optional<std::vector<int64_t>> GgufFile::get_int_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of integers of 64 bits with sign";
  const GgufValue* value = find_array(key, kWanted);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> result;
  // A string takes more bytes than a number here, so this reserves what the file can back.
  result.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<Integer> integer = integer_at(*value, i);
    if (!integer) refuse(*value, description(*value), kWanted);
    const std::optional<int64_t> number = as_int64(*integer);
    if (!number) refuse(*value, text_of(*integer) + " in " + element(i), kWanted);
    result.push_back(*number);
  }
  return result;
}

std::optional<std::vector<double>> GgufFile::get_float_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of numbers";
  const GgufValue* value = find_array(key, kWanted);
  if (value == nullptr) return std::nullopt;
  std::vector<double> result;
  result.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<double> number = float_at(*value, i);
    if (!number) {
      const std::optional<Integer> integer = integer_at(*value, i);
      refuse(*value, integer ? text_of(*integer) + " in " + element(i) : description(*value),
             kWanted);
    }
    result.push_back(*number);
  }
  return result;
}

std::optional<std::vector<bool>> GgufFile::get_bool_array(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of BOOL";
  const GgufValue* value = find_array(key, kWanted);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::boolean) refuse(*value, description(*value), kWanted);
  std::vector<bool> result(value->count);
  for (uint64_t i = 0; i < value->count; ++i) result[i] = value->bytes[i] != std::byte{0};
  return result;
}

std::optional<std::vector<std::string_view>> GgufFile::get_string_array(
    std::string_view key) const {
  constexpr std::string_view kWanted = "an array of STRING";
  const GgufValue* value = find_array(key, kWanted);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::string) refuse(*value, description(*value), kWanted);
  std::vector<std::string_view> result;
  result.reserve(value->count);
  const char* at = reinterpret_cast<const char*>(value->bytes.data());
  const char* const end = at + value->bytes.size();
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t length = 0;
    const auto left = static_cast<uint64_t>(end - at);
    if (left >= sizeof length) std::memcpy(&length, at, sizeof length);
    // The parser has walked here; but a mapped file may have been written to since.
    if (left < sizeof length || length > left - sizeof length)
      throw ModelFormatError(printable(path(), kPathLimit) + ": key " + printable(key) +
                             ": the file has changed while it was in use; load it again");
    result.emplace_back(at + sizeof length, length);
    at += sizeof length + length;
  }
  return result;
}

}  // namespace akunu
