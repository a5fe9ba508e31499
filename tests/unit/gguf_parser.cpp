// What C++ asks of a GGUF file: the accessors, on files built here byte by byte, and what they say
// when a value is not what was asked for. (tests/unit/test_gguf.py holds the parser itself against
// the `gguf` package.)
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/printable.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

// A file in the making; numbers are appended as they lie in memory (little-endian).
class Builder {
 public:
  template <class Number>
  Builder& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Builder& string(std::string_view text) {
    number<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  Builder& type(GgufValueType value) { return number(static_cast<uint32_t>(value)); }
  Builder& header(uint64_t n_tensors, uint64_t n_values) {
    bytes_ += "GGUF";
    return number<uint32_t>(3).number(n_tensors).number(n_values);
  }
  template <class Number>
  Builder& scalar(std::string_view key, GgufValueType value_type, Number value) {
    return string(key).type(value_type).number(value);
  }
  template <class Number>
  Builder& array(std::string_view key, GgufValueType value_type,
                 std::initializer_list<Number> values) {
    string(key)
        .type(GgufValueType::array)
        .type(value_type)
        .template number<uint64_t>(values.size());
    for (const Number value : values) number(value);
    return *this;
  }
  Builder& strings(std::string_view key, std::initializer_list<std::string_view> values) {
    string(key).type(GgufValueType::array).type(GgufValueType::string);
    number<uint64_t>(values.size());
    for (const std::string_view value : values) string(value);
    return *this;
  }

  Builder& pad(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }
  GgufFile parse() const { return GgufFile::parse(std::as_bytes(std::span(bytes_)), "small.gguf"); }

 private:
  std::string bytes_;
};

template <class Access>
void check_refused(Access access, std::initializer_list<std::string_view> parts,
                   const std::source_location& where = std::source_location::current()) {
  const std::string message = message_of<ModelFormatError>(access);
  check(!message.empty(), "refused with a ModelFormatError", where);
  check(message.starts_with("small.gguf, byte "), "the message says where: " + message, where);
  for (const std::string_view part : parts)
    check(message.find(part) != std::string::npos,
          "the message has '" + std::string(part) + "': " + message, where);
}

void test_integers_of_every_width_are_unsigned_when_they_fit() {
  using enum GgufValueType;
  Builder builder;
  builder.header(0, 10)
      .scalar<uint8_t>("u8", uint8, 255)
      .scalar<int8_t>("i8", int8, 127)
      .scalar<uint16_t>("u16", uint16, 65535)
      .scalar<int16_t>("i16", int16, 32767)
      .scalar<uint32_t>("u32", uint32, 4294967295u)
      .scalar<int32_t>("i32", int32, 2147483647)
      .scalar<uint64_t>("u64", uint64, std::numeric_limits<uint64_t>::max())
      .scalar<int64_t>("i64", int64, std::numeric_limits<int64_t>::max())
      .scalar<int8_t>("less", int8, -1)
      .scalar<int64_t>("least", int64, std::numeric_limits<int64_t>::min());
  const GgufFile file = builder.parse();
  check(file.get_uint("u8") == 255, "u8");
  check(file.get_uint("i8") == 127, "i8");
  check(file.get_uint("u16") == 65535, "u16");
  check(file.get_uint("i16") == 32767, "i16");
  check(file.get_uint("u32") == 4294967295u, "u32");
  check(file.get_uint("i32") == 2147483647u, "i32");
  check(file.get_uint("u64") == std::numeric_limits<uint64_t>::max(), "u64");
  check(file.get_uint("i64") == 9223372036854775807u, "i64");
  check(!file.get_uint("absent"), "absent");
  check_refused([&] { file.get_uint("less"); },
                {"key less", "is -1", "wanted an unsigned integer"});

  check(file.get_int("less") == -1, "negative");
  check(file.get_int("u32") == 4294967295, "u32 as signed");
  check(file.get_int("least") == std::numeric_limits<int64_t>::min(), "least");
  check(!file.get_int("absent"), "absent");
  check_refused([&] { file.get_int("u64"); },
                {"key u64", "18446744073709551615", "64 bits with sign"});

  check(file.get_float("i8") == 127.0, "an integer is a float");
  check(file.get_float("less") == -1.0, "a negative one too");
  check_refused([&] { file.get_float("i64"); }, {"key i64", "9223372036854775807"});
  check_refused([&] { file.get_float("u64"); }, {"key u64", "18446744073709551615"});
}

void test_floats_are_exact_and_finite() {
  using enum GgufValueType;
  constexpr uint64_t kLargest = uint64_t{1} << 53;
  Builder builder;
  builder.header(0, 7)
      .scalar("f32", float32, 0.1f)
      .scalar("f64", float64, 0.1)
      .scalar("nan", float32, std::numeric_limits<float>::quiet_NaN())
      .scalar("infinite", float64, -std::numeric_limits<double>::infinity())
      .scalar<uint64_t>("exact", uint64, kLargest)
      .scalar<uint64_t>("rounded", uint64, kLargest + 1)
      .scalar<int64_t>("rounded.below", int64, -static_cast<int64_t>(kLargest) - 1);
  const GgufFile file = builder.parse();
  check(file.get_float("f32") == static_cast<double>(0.1f), "float32 is widened");
  check(file.get_float("f64") == 0.1, "float64");
  check(file.get_float("exact") == 0x1p53, "2^53");
  check(!file.get_float("absent"), "absent");
  check_refused([&] { file.get_float("nan"); }, {"key nan is NaN", "a finite number"});
  check_refused([&] { file.get_float("infinite"); }, {"key infinite is infinite"});
  check_refused([&] { file.get_float("rounded"); }, {"9007199254740993"});
  check_refused([&] { file.get_float("rounded.below"); }, {"-9007199254740993"});
  check_refused([&] { file.get_uint("f32"); }, {"key f32 is FLOAT32", "an unsigned integer"});
  check_refused([&] { file.get_int("f64"); }, {"key f64 is FLOAT64"});
}

void test_kinds_are_not_mixed() {
  using enum GgufValueType;
  Builder builder;
  builder.header(0, 4)
      .scalar<uint8_t>("yes", boolean, 1)
      .scalar<uint8_t>("no", boolean, 0)
      .string("text")
      .type(GgufValueType::string)
      .string(std::string_view("a\0b", 3))
      .array<int32_t>("heads", int32, {8, 8, 4});
  const GgufFile file = builder.parse();
  check(file.get_bool("yes") == true && file.get_bool("no") == false, "booleans");
  check(file.get_string("text") == std::string_view("a\0b", 3), "a string keeps its zero byte");
  check(!file.get_bool("absent") && !file.get_string("absent"), "absent");
  check_refused([&] { file.get_uint("yes"); }, {"key yes is BOOL"});
  check_refused([&] { file.get_float("yes"); }, {"key yes is BOOL", "a finite number"});
  check_refused([&] { file.get_bool("text"); }, {"key text is STRING", "wanted a BOOL"});
  check_refused([&] { file.get_string("yes"); }, {"key yes is BOOL", "wanted a STRING"});
  check_refused([&] { file.get_uint("heads"); }, {"key heads is an array of 3 INT32"});
  check_refused([&] { file.get_string("heads"); }, {"an array of 3 INT32"});
  check_refused([&] { file.array_length("text"); }, {"key text is STRING, wanted an array"});
  check_refused([&] { file.get_int_array("yes"); }, {"key yes is BOOL"});
}

void test_arrays() {
  using enum GgufValueType;
  Builder builder;
  builder.header(0, 6)
      .array<int16_t>("int", int16, {-3, 0, 7})
      .array<uint64_t>("huge", uint64, {1, std::numeric_limits<uint64_t>::max()})
      .array<float>("float", float32, {0.5f, std::numeric_limits<float>::infinity()})
      .array<uint8_t>("bool", boolean, {1, 0, 1})
      .strings("string", {"", "ab", "c"})
      .strings("none", {});
  const GgufFile file = builder.parse();
  check(file.array_length("int") == 3 && file.array_length("none") == 0, "lengths");
  check(!file.array_length("absent"), "absent");
  check(file.get_int_array("int") == std::vector<int64_t>{-3, 0, 7}, "integers");
  check(file.get_float_array("int") == std::vector<double>{-3, 0, 7}, "integers as floats");
  check(file.get_float_array("float") ==
            std::vector<double>{0.5, std::numeric_limits<double>::infinity()},
        "floats, infinite ones too");
  check(file.get_bool_array("bool") == std::vector<bool>{true, false, true}, "booleans");
  check(file.get_string_array("string") == std::vector<std::string_view>{"", "ab", "c"}, "strings");
  check(file.get_string_array("none")->empty(), "no strings");
  check(!file.get_int_array("absent") && !file.get_float_array("absent"), "absent numbers");
  check(!file.get_bool_array("absent") && !file.get_string_array("absent"), "absent others");
  check_refused([&] { file.get_int_array("huge"); },
                {"key huge", "18446744073709551615 in element 1"});
  check_refused([&] { file.get_float_array("huge"); }, {"18446744073709551615 in element 1"});
  check_refused([&] { file.get_int_array("float"); }, {"an array of 2 FLOAT32", "of integers"});
  check_refused([&] { file.get_float_array("string"); }, {"an array of 3 STRING", "of numbers"});
  check_refused([&] { file.get_bool_array("int"); }, {"an array of 3 INT16", "of BOOL"});
  check_refused([&] { file.get_string_array("int"); }, {"an array of 3 INT16", "of STRING"});
}

void test_a_file_can_be_moved() {
  Builder builder;
  builder.header(0, 1).strings("key", {"value"});
  GgufFile file = builder.parse();
  const std::string_view before = file.get_string_array("key")->front();
  const GgufFile moved = std::move(file);
  check(moved.get_string_array("key")->front().data() == before.data(),
        "strings stay where they are");
  check(moved.path() == "small.gguf" && moved.parts()[0].mapping == nullptr, "path and mapping");
  check(moved.find_tensor("absent") == nullptr, "no tensors");
}

// A file of its own in the folder for temporary files, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes)
      : path_(std::filesystem::temp_directory_path() / ("akunu_" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void test_a_mapping_outlives_its_reader_and_the_file() {
  Builder builder;
  builder.header(1, 0).string("t").number<uint32_t>(1).number<uint64_t>(2);
  builder.number<uint32_t>(24).number<uint64_t>(0).pad(32).number<uint16_t>(0x0102);
  std::shared_ptr<const MappedFile> mapping;
  std::span<const std::byte> bytes;
  std::string path;
  {
    const TemporaryFile temporary(builder.bytes());
    path = temporary.path();
    const GgufFile file = GgufFile::open(path);
    const GgufTensor* tensor = file.find_tensor("t");
    check(tensor != nullptr && tensor->size == 2 && tensor->offset == 64, "the tensor");
    mapping = file.parts()[0].mapping;
    bytes = file.tensor_bytes(*tensor);
  }
  check(!std::filesystem::exists(path), "the file is gone");
  check(mapping->path() == path && bytes.data() == mapping->bytes().data() + 64,
        "the mapping stays");
  check(bytes[0] == std::byte{2} && bytes[1] == std::byte{1}, "so do its bytes");
}

void test_paths_that_cannot_be_mapped() {
  const auto message = [](const std::string& path) {
    return message_of<ArgumentError>([&] { MappedFile::open(path); });
  };
  check(message("/no/such/file") == "/no/such/file: cannot be opened: No such file or directory",
        "missing: " + message("/no/such/file"));
  check(message("/").starts_with("/: is a directory; a regular file is needed, such as"),
        "folder: " + message("/"));
  check(message("/dev/null") == "/dev/null: is a device; a regular file is needed", "device");
  check(message(std::string("a\0b", 3)) == "a\\x00b: a path cannot contain a zero byte",
        "zero byte");
  check(message(std::string(5000, 'x')).ends_with("File name too long"), "a path that is too long");
  const TemporaryFile empty("");
  check(message_of<ModelFormatError>([&] { MappedFile::open(empty.path()); }) ==
            empty.path() + ": the file is empty; download or copy it again",
        "empty");
}

void test_names_of_types() {
  // GGUF's own spelling of types 0 to 12.
  constexpr std::array<std::string_view, 13> kNames{
      "UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
      "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};
  constexpr std::array<uint32_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  for (uint32_t i = 0; i < kNames.size(); ++i) {
    check(name_of(static_cast<GgufValueType>(i)) == kNames[i], kNames[i]);
    check(size_of(static_cast<GgufValueType>(i)) == kSizes[i], kNames[i]);
  }
  for (const uint32_t type : {4u, 5u, 31u, 33u, 36u, 42u, 4294967295u})
    check(!gguf_block(type), "a withdrawn or unknown type has no size");
}

void test_printable_text() {
  check(printable("plain") == "plain", "plain");
  check(printable("日本語 🦙 é") == "日本語 🦙 é", "UTF-8 stays");
  check(printable(std::string_view("a\0\n\x7f", 4)) == "a\\x00\\x0a\\x7f", "control characters");
  check(printable("\xff\xfe") == "\\xff\\xfe", "no UTF-8");
  check(printable("\xc0\xaf") == "\\xc0\\xaf", "a longer form than needed");
  check(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf", "of three bytes");
  check(printable("\xf0\x80\x80\xaf") == "\\xf0\\x80\\x80\\xaf", "of four bytes");
  check(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80", "a surrogate");
  check(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80", "beyond U+10FFFF");
  check(printable("\xe6\x97") == "\\xe6\\x97", "half a character");
  check(printable("\xe6\x97x") == "\\xe6\\x97x", "a character cut by another");
  check(printable("abcdef", 4) == "abcd... (2 bytes more)", "cut");
  check(printable("abc\xc3\xa9z", 4) == "abc\xc3\xa9... (1 byte more)", "cut after a character");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_integers_of_every_width_are_unsigned_when_they_fit();
  test_floats_are_exact_and_finite();
  test_kinds_are_not_mixed();
  test_arrays();
  test_a_file_can_be_moved();
  test_a_mapping_outlives_its_reader_and_the_file();
  test_paths_that_cannot_be_mapped();
  test_names_of_types();
  test_printable_text();
  return summary();
}
