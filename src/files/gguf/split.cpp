// Models that are split over several files, the way llama.cpp's gguf-split does it:
//   name-00001-of-00003.gguf, name-00002-of-00003.gguf, ...
// Every part says split.no (from 0), split.count and split.tensors.count (of all parts together).
// The first has the metadata, and its own tensors or none; what else the others say is not used.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/printable.h"
#include "files/sort_by_name.h"

namespace akunu {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr size_t kDigits = 5;  // at least

struct SplitName {
  std::string prefix;
  uint64_t number;  // from 1
  uint64_t count;
};

// Takes a number of at least five digits from the end of `text`.
std::optional<uint64_t> take_last_number(std::string_view& text) {
  const size_t begin = text.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  const std::string_view digits = text.substr(begin);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() < kDigits || error != std::errc{}) return std::nullopt;
  text = text.substr(0, begin);
  return number;
}

bool take_ending(std::string_view& text, std::string_view ending) {
  if (!text.ends_with(ending)) return false;
  text.remove_suffix(ending.size());
  return true;
}

std::optional<SplitName> split_name(std::string_view path) {
  if (!take_ending(path, kExtension)) return std::nullopt;
  const std::optional<uint64_t> count = take_last_number(path);
  if (!count || !take_ending(path, "-of-")) return std::nullopt;
  const std::optional<uint64_t> number = take_last_number(path);
  if (!number || !take_ending(path, "-")) return std::nullopt;
  return SplitName{std::string(path), *number, *count};
}

std::string digits(uint64_t number) {
  const std::string text = std::to_string(number);
  std::string padded(kDigits - std::min(kDigits, text.size()), '0');
  padded += text;
  return padded;
}

std::string ending(uint64_t number, uint64_t count) {
  std::string text("-");
  text += digits(number);
  text += "-of-";
  text += digits(count);
  text += kExtension;
  return text;
}

std::string shown(const GgufFile& part) { return printable(part.path(), kPathLimit); }

// How many files the model has, as this one says.
uint64_t count_of(const GgufFile& part) {
  constexpr uint64_t kMostParts = 65535;  // the key is an integer of 16 bits, and so is split.no
  const uint64_t count = part.get_uint("split.count").value_or(1);
  if (count > kMostParts)
    throw ModelFormatError(shown(part) + ": split.count is " + std::to_string(count) +
                           "; the format allows " + std::to_string(kMostParts));
  return count;
}

// What the name of a part should be, from what is in it; throws where it is another.
SplitName checked_name(const GgufFile& part) {
  const uint64_t count = count_of(part);
  const std::optional<uint64_t> number = part.get_uint("split.no");
  if (!number)
    throw ModelFormatError(shown(part) + ": split.count is " + std::to_string(count) +
                           ", but split.no is missing: which part of the model this is, it does "
                           "not say");
  if (*number >= count)
    throw ModelFormatError(shown(part) + ": split.no is " + std::to_string(*number) +
                           "; the parts of a model that is split over " + std::to_string(count) +
                           " files are counted from 0 to " + std::to_string(count - 1));
  const std::optional<SplitName> name = split_name(part.path());
  const std::string expected = ending(*number + 1, count);
  if (!name || name->number != *number + 1 || name->count != count)
    throw ModelFormatError(shown(part) + ": the file is part " + std::to_string(*number + 1) +
                           " of a model that is split over " + std::to_string(count) +
                           " files; by its name nobody finds the others: it should end in " +
                           expected + ", and theirs likewise");
  return *name;
}

// The numbers of the parts that are not there, e.g. "2, 5 and 9"; empty if all are.
std::string missing_parts(const SplitName& name) {
  constexpr uint64_t kMostNamed = 10;
  std::string text;
  uint64_t n_missing = 0;
  for (uint64_t number = 1; number <= name.count; ++number) {
    std::error_code error;
    if (std::filesystem::exists(name.prefix + ending(number, name.count), error) || error) continue;
    if (++n_missing <= kMostNamed) text += (text.empty() ? "" : ", ") + std::to_string(number);
  }
  if (n_missing > kMostNamed) text += " and " + std::to_string(n_missing - kMostNamed) + " others";
  return text;
}

}  // namespace

GgufFile GgufFile::open(const std::string& path) {
  GgufFile file = open_one(path);
  if (count_of(file) <= 1) return file;
  const SplitName name = checked_name(file);
  const std::string missing = missing_parts(name);
  if (!missing.empty())
    throw ModelFormatError(shown(file) + ": the model is split over " + std::to_string(name.count) +
                           " files, which belong into one folder; missing there: part " + missing +
                           " (names end in " + ending(1, name.count) + " and so on)");
  std::vector<GgufFile> parts;
  for (uint64_t number = 1; number <= name.count; ++number)
    parts.push_back(number == name.number ? std::move(file)
                                          : open_one(name.prefix + ending(number, name.count)));
  return join(std::move(parts));
}

GgufFile GgufFile::join(std::vector<GgufFile> parts) {
  if (parts.empty()) throw ArgumentError("there are no parts to join");
  std::optional<int64_t> n_expected;
  uint64_t n_tensors = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const GgufFile& part = parts[i];
    if (count_of(part) != parts.size())
      throw ModelFormatError(shown(part) + ": split.count is " + std::to_string(count_of(part)) +
                             "; the model has " + std::to_string(parts.size()) + " parts");
    const std::optional<uint64_t> number = part.get_uint("split.no");
    if (!number || *number != i)
      throw ModelFormatError(shown(part) + ": split.no is " +
                             (number ? std::to_string(*number) : "missing") + "; part " +
                             std::to_string(i + 1) + " of " + std::to_string(parts.size()) +
                             " is number " + std::to_string(i) + ", counted from 0");
    const std::optional<int64_t> total = part.get_int("split.tensors.count");
    if (total && n_expected && *total != *n_expected)
      throw ModelFormatError(shown(part) + ": split.tensors.count is " + std::to_string(*total) +
                             ", other parts say " + std::to_string(*n_expected) +
                             ": they are not of one model");
    if (total) n_expected = total;
    n_tensors += part.tensors().size();
  }
  if (n_expected && std::cmp_not_equal(*n_expected, n_tensors))
    throw ModelFormatError(shown(parts.front()) + ": split.tensors.count is " +
                           std::to_string(*n_expected) + ", the " + std::to_string(parts.size()) +
                           " parts hold " + std::to_string(n_tensors) +
                           " tensors together: one of them is of another model");

  GgufFile file = std::move(parts.front());
  for (uint32_t i = 1; i < parts.size(); ++i) {
    for (GgufTensor tensor : parts[i].tensors_) {
      tensor.part = i;
      file.tensors_.push_back(tensor);
    }
    file.parts_.push_back(std::move(parts[i].parts_.front()));
  }
  const GgufTensor* twice = sort_by_name(
      file.tensors_, [](const GgufTensor& tensor) { return tensor.name; }, file.tensors_by_name_);
  if (twice != nullptr) {
    const auto before = std::find_if(file.tensors_.begin(), file.tensors_.end(),
                                     [&](const GgufTensor& t) { return t.name == twice->name; });
    throw ModelFormatError(printable(file.part_of(*twice).path, kPathLimit) + ": tensor " +
                           printable(twice->name) + " is in " +
                           printable(file.part_of(*before).path, kPathLimit) + " as well");
  }
  return file;
}

}  // namespace akunu
