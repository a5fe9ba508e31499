#include "weight/foreign.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "weight/printable.h"

namespace akunu {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kWanted = "akunu loads GGUF files";
constexpr std::string_view kGet =
    "akunu loads GGUF files: download one of the model, or convert it with llama.cpp's "
    "convert_hf_to_gguf.py";

// A file of this kind begins with these bytes.
struct Signature {
  std::string_view magic;
  std::string_view kind;    // "a gzip archive"
  std::string_view advice;  // what to do
  bool is_model;            // of a format that akunu does not read
};

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kOldGgml =
    "a GGML file from before GGUF (whisper.cpp still writes them)";
constexpr std::array kSignatures{
    Signature{"lmgg"sv, kOldGgml, kGet, true},
    Signature{"fmgg"sv, "a GGMF file, older than GGUF", kGet, true},
    Signature{"tjgg"sv, "a GGJT file, older than GGUF", kGet, true},
    Signature{"algg"sv, "a GGLA file, an adapter older than GGUF", kGet, true},
    Signature{"FUGG"sv, "a GGUF file with its bytes in big-endian order",
              "akunu reads little-endian", true},
    Signature{"\x80\x02"sv, "a Python pickle, as older PyTorch saves checkpoints", kGet, true},
    Signature{"\x80\x03"sv, "a Python pickle", kGet, true},
    Signature{"\x80\x04"sv, "a Python pickle", kGet, true},
    Signature{"\x80\x05"sv, "a Python pickle", kGet, true},
    Signature{"\x93NUMPY"sv, "a NumPy array", kGet, true},
    Signature{"\x89HDF\r\n"sv, "an HDF5 file, as Keras saves models", kGet, true},
    Signature{"\x1f\x8b"sv, "compressed with gzip", kUnpack, false},
    Signature{"\xfd"
              "7zXZ\0"sv,
              "compressed with xz", kUnpack, false},
    Signature{"\x28\xb5\x2f\xfd"sv, "compressed with zstd", kUnpack, false},
    Signature{"BZh"sv, "compressed with bzip2", kUnpack, false},
    Signature{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", kUnpack, false},
    Signature{"Rar!\x1a\x07"sv, "a RAR archive", kUnpack, false},
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return result;
}

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// No control characters but white space. (Half a character of UTF-8 at the end is text.)
bool is_text(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char letter) {
    return letter >= 0x20 ? letter != 0x7f : std::isspace(letter) != 0;
  });
}

// A safetensors file is the length of a JSON object, the object, and the numbers.
bool is_safetensors(std::string_view content) {
  if (content.size() < 16 || content[8] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  return length >= 2 && length <= uint64_t{1} << 32;
}

// The first file of a zip archive has its name at byte 30.
bool is_pytorch_zip(std::string_view content) {
  return content.substr(0, 256).find("data.pkl") != std::string_view::npos;
}

struct Finding {
  std::string text;
  bool is_model = false;
};

Finding lfs_pointer(std::string_view content) {
  std::string size;
  if (const size_t at = content.find("\nsize "); at != std::string_view::npos)
    size = " of " + printable(first_line(content.substr(at + 6))) + " bytes";
  return {"this is a Git LFS pointer, a note in the place of a file" + size +
          ": run `git lfs pull` in the repository, or download the file itself"};
}

std::optional<Finding> recognise_text(std::string_view content) {
  const std::string_view text = without_space(content.substr(0, 4096));
  for (const std::string_view tool : {"git-lfs.github.com", "hawser.github.com"})
    if (text.starts_with("version https://" + std::string(tool) + "/spec/"))
      return lfs_pointer(text);
  const std::string start = lower(text.substr(0, 64));
  for (const std::string_view tag : {"<!doctype html", "<html", "<head", "<?xml", "<!--"})
    if (start.starts_with(tag))
      return Finding{
          std::string(tag == "<?xml" ? "this is an XML page" : "this is an HTML page") +
          " in the place of a file, perhaps of a login or an error: download the file itself "
          "(from Hugging Face, by a link with /resolve/ and not /blob/)"};
  if (text.empty()) return std::nullopt;
  const std::string_view begin = text.substr(0, 256);
  if (!is_text(begin)) return std::nullopt;
  const std::string quoted = "\"" + printable(first_line(begin), 60) + "\"";
  if (text[0] == '{' || text[0] == '[')
    return Finding{"this is JSON text, " + quoted +
                   ": an error in the place of a file, or a model's description; " +
                   std::string(kWanted)};
  return Finding{"this is text, " + quoted + "; " + std::string(kWanted)};
}

Finding recognise(std::string_view content) {
  if (content.starts_with("PK\x03\x04") || content.starts_with("PK\x05\x06")) {
    if (is_pytorch_zip(content))
      return {"this is a PyTorch checkpoint; " + std::string(kGet), true};
    return {"this is a zip archive; " + std::string(kUnpack)};
  }
  for (const Signature& signature : kSignatures)
    if (content.starts_with(signature.magic))
      return {"this is " + std::string(signature.kind) + "; " + std::string(signature.advice),
              signature.is_model};
  if (is_safetensors(content))
    return {"this is a safetensors file, which akunu does not load yet; " + std::string(kGet),
            true};
  if (content.size() > 262 && content.substr(257, 5) == "ustar")
    return {"this is a tar archive; " + std::string(kUnpack)};
  if (std::optional<Finding> text = recognise_text(content)) return *text;
  const std::string_view begin = content.substr(0, 4096);
  if (begin.size() >= 4 && std::ranges::all_of(begin, [](char byte) { return byte == 0; }))
    return {
        "the file begins with zeros only, like a download that was not finished; download it "
        "again"};
  return {"the file begins with \"" + printable(content.substr(0, 4)) +
          "\"; a GGUF file begins with \"GGUF\""};
}

}  // namespace

void refuse_foreign(const std::string& shown_path, std::span<const std::byte> bytes) {
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (std::string_view("GGUF").starts_with(content))
    throw ModelFormatError(shown_path + ", byte 0: the magic \"GGUF\" needs 4 bytes, " +
                           std::to_string(content.size()) + " are left");
  const Finding finding = recognise(content);
  const std::string message = shown_path + ", byte 0: " + finding.text;
  if (finding.is_model) throw UnsupportedModelError(message);
  throw ModelFormatError(message);
}

void refuse_directory(const std::string& shown_path, const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  const auto with_ending = [&](std::string_view ending) {
    return std::ranges::find_if(
        names, [&](const std::string& name) { return lower(name).ends_with(ending); });
  };
  const auto has = [&](std::string_view name) {
    return std::ranges::binary_search(names, std::string(name));
  };
  if (const auto gguf = with_ending(".gguf"); gguf != names.end())
    throw ArgumentError(shown_path +
                        ": is a directory; name the file in it that shall be loaded, " +
                        "for example " + printable(*gguf));
  const std::string what =
      has("config.json") ? "a Hugging Face or MLX model directory" : "a directory";
  if (with_ending(".safetensors") != names.end())
    throw UnsupportedModelError(shown_path + ": this is " + what +
                                " with safetensors files, which akunu does not load yet; " +
                                std::string(kGet));
  if (has("config.json") || has("pytorch_model.bin"))
    throw UnsupportedModelError(shown_path + ": this is " + what + " without a GGUF file; " +
                                std::string(kGet));
  throw ArgumentError(shown_path + ": is a directory; a regular file is needed");
}

}  // namespace akunu
