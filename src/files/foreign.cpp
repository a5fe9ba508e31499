#include "files/foreign.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "files/printable.h"
#include "files/safetensors/safetensors.h"

namespace akunu {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kGet =
    "akunu loads GGUF files and directories with safetensors files: download the model as one of "
    "them, or convert it with llama.cpp's convert_hf_to_gguf.py";

constexpr std::string_view kCTranslate2 =
    "a CTranslate2 model, as faster-whisper has them; akunu loads the directory that it was made "
    "from, for Whisper openai/whisper-tiny or the like";

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

// A zip archive whose first file is a pickle; from older versions the pickle alone, whose second byte is its protocol.
bool is_pytorch(std::string_view content) {
  if (content.starts_with("PK\x03\x04"))
    return content.substr(0, 256).find("data.pkl") != std::string_view::npos;
  return content.size() >= 2 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5;
}

bool is_html(std::string_view content) {
  const std::string start = lower(without_space(content.substr(0, 4096)).substr(0, 16));
  return std::ranges::any_of(std::array<std::string_view, 3>{"<!doctype html", "<html", "<head"},
                             [&](std::string_view tag) { return start.starts_with(tag); });
}

// CTranslate2: the version of its format, then the length and the name of a "spec" such as WhisperSpec.
bool is_ctranslate2(std::string_view content) {
  return content.size() >= 16 && content.substr(1, 3) == std::string_view("\0\0\0", 3) &&
         content.substr(6, 64).find("Spec\0"sv) != std::string_view::npos;
}

struct Finding {
  std::string text;
  bool is_model = false;  // of a format that akunu does not read
};

Finding lfs_pointer(std::string_view content) {
  std::string size;
  if (const size_t at = content.find("\nsize "); at != std::string_view::npos)
    size = " of " + printable(first_line(content.substr(at + 6))) + " bytes";
  return {"this is a Git LFS pointer, a note in the place of a file" + size +
          ": run `git lfs pull` in the repository, or download the file itself"};
}

// What people meet in the place of a model. Anything else is shown by its first bytes.
Finding recognise(std::string_view content, std::string_view expected_begin) {
  if (looks_like_safetensors(content))
    return {"this is a safetensors file, and a GGUF file was asked for", true};
  if (is_pytorch(content))
    return {"this is a PyTorch checkpoint (a Python pickle); " + std::string(kGet), true};
  if (is_ctranslate2(content)) return {"this is " + std::string(kCTranslate2), true};
  if (content.starts_with("version https://git-lfs.github.com/spec/"))
    return lfs_pointer(content.substr(0, 4096));
  if (is_html(content))
    return {
        "this is an HTML page in the place of a file, perhaps of a login or an error: "
        "download the file itself (from Hugging Face, by a link with /resolve/ and not /blob/)"};
  return {"the file begins with \"" + printable(content.substr(0, 32)) + "\"; " +
          std::string(expected_begin)};
}

}  // namespace

std::string beginning_of(const std::string& path, size_t n) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string begin(n, '\0');
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return "";
  begin.resize(std::fread(begin.data(), 1, begin.size(), file.get()));
  return begin;
}

void refuse_foreign(const std::string& shown_path, std::span<const std::byte> bytes,
                    std::string_view expected_begin) {
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (std::string_view("GGUF").starts_with(content))
    throw ModelFormatError(shown_path + ", byte 0: the magic \"GGUF\" needs 4 bytes, " +
                           std::to_string(content.size()) + " are left" + kCutOff);
  const Finding finding = recognise(content, expected_begin);
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
  if (with_ending(".safetensors") != names.end())
    throw ArgumentError(shown_path +
                        ": is a directory with safetensors files, and a GGUF file was asked for");
  for (const std::string_view ending : {".bin", ".pt", ".pth"})
    if (const auto pickle = with_ending(ending); pickle != names.end()) {
      if (is_ctranslate2(beginning_of((std::filesystem::path(path) / *pickle).string(), 96)))
        throw UnsupportedModelError(shown_path + ": this is " + std::string(kCTranslate2));
      throw UnsupportedModelError(shown_path + ": the weights are in " + printable(*pickle) +
                                  ", a Python pickle, which could run any code; " +
                                  std::string(kGet));
    }
  if (has("config.json"))
    throw ModelFormatError(
        shown_path + ": there is a config.json and no file of weights; download the model's " +
        "safetensors files too");
  throw ArgumentError(
      shown_path +
      ": is a directory; a regular file is needed, such as a GGUF file, or a directory with "
      "config.json and safetensors files");
}

}  // namespace akunu
