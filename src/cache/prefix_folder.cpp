// Files of runs. prefix_folder.h has their form.
//
// 1. What it does. POSIX calls, one file at a time; what is read is compared with its checksums before
//    anybody believes it.
// 2. What bounds it. The disk; flushing each file costs most. Checksums take a fraction of a second per gigabyte.
#include "cache/prefix_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace akunu {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'A', 'K', 'U', 'N', 'U', 'R', 'U', 'N'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMostWords = 1 << 16;
constexpr std::string_view kSuffix = ".run";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr int64_t kLeftAfter = 3600;  // seconds; nobody writes one file for so long

struct Head {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t n_words = 0;
  uint32_t n_key = 0;
  uint32_t is_state = 0;
  RunName behind;
  uint64_t groups = 0;
  uint64_t n_page_bytes = 0;
  uint64_t page_sum = 0;
  uint64_t head_sum = 0;
};
static_assert(sizeof(Head) == 72);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

  bool read(std::span<std::byte> into) const {
    while (!into.empty()) {
      const ssize_t n = ::read(descriptor_, into.data(), into.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      into = into.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  bool write(std::span<const std::byte> from) const {
    while (!from.empty()) {
      const ssize_t n = ::write(descriptor_, from.data(), from.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      from = from.subspan(static_cast<size_t>(n));
    }
    return true;
  }

 private:
  int descriptor_;
};

// Each step can be undone, so a change of any one word changes the sum; of many, one in 2^64 does not.
uint64_t add_to_sum(uint64_t sum, std::span<const std::byte> bytes) {
  constexpr size_t kLanes = 4;  // so that the processor multiplies several at a time
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::array<uint64_t, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = (sum + i + bytes.size()) * kOdd;
  const auto mix = [&](size_t lane, uint64_t word) {
    lanes[lane] = std::rotl((lanes[lane] ^ word) * kOdd, 29);
  };
  size_t i = 0;
  std::array<uint64_t, kLanes> words{};
  for (; i + sizeof(words) <= bytes.size(); i += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + i, sizeof(words));
    for (size_t lane = 0; lane < kLanes; ++lane) mix(lane, words[lane]);
  }
  words = {};
  std::ranges::copy(bytes.subspan(i), std::as_writable_bytes(std::span(words)).begin());
  for (size_t lane = 0; lane < kLanes; ++lane) mix(lane, words[lane]);
  for (const uint64_t lane : lanes) {
    sum = (sum ^ lane) * kOdd;
    sum ^= sum >> 32;
  }
  return sum;
}

uint64_t sum_of_head(const Head& head, std::span<const uint32_t> words) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&head, 1));
  return add_to_sum(add_to_sum(0, bytes.first(sizeof(Head) - sizeof(head.head_sum))),
                    std::as_bytes(words));
}

std::string reason() { return std::system_category().message(errno); }

// The head and the words of a file; false where they are not what was written.
bool read_head(const File& file, Head& head, std::vector<uint32_t>& words) {
  if (!file.read(std::as_writable_bytes(std::span(&head, 1)))) return false;
  if (head.magic != kMagic || head.version != kVersion || head.n_words > kMostWords ||
      head.n_key > head.n_words || head.is_state > 1)
    return false;
  words.resize(head.n_words);
  return file.read(std::as_writable_bytes(std::span(words))) &&
         sum_of_head(head, words) == head.head_sum;
}

// Opening a pipe without O_NONBLOCK would wait for somebody who writes into it.
constexpr int kReading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// What the system says of a file that was opened for reading; nothing where it is no regular file.
std::optional<struct stat> examine(const File& file, const std::filesystem::path& path,
                                   std::string& problem) {
  struct stat found = {};
  if (!file || fstat(file.get(), &found) != 0) {
    if (errno != ENOENT) problem = path.string() + " cannot be read: " + reason();
    return std::nullopt;
  }
  if (!S_ISREG(found.st_mode)) {
    problem = path.string() + " is no regular file: remove it";
    return std::nullopt;
  }
  return found;
}

}  // namespace

uint64_t file_bytes(const PrefixRun& run, uint64_t n_page_bytes) {
  return sizeof(Head) + run.words.size() * sizeof(uint32_t) + n_page_bytes;
}

uint64_t nanoseconds_now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

PrefixFolder::PrefixFolder(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error)
    throw ArgumentError("the folder " + path_.string() +
                        " for the cache cannot be made: " + error.message());
  if (access(path_.c_str(), R_OK | W_OK | X_OK) != 0)
    throw ArgumentError("the folder " + path_.string() +
                        " for the cache cannot be used: " + reason());
}

std::filesystem::path PrefixFolder::file_of(const RunName& name) const {
  return path_ / (to_text(name) + std::string(kSuffix));
}

std::vector<RunName> PrefixFolder::names() const {
  std::vector<RunName> names;
  DIR* const folder = opendir(path_.c_str());
  if (folder == nullptr) return names;
  while (const dirent* const entry = readdir(folder)) {
    std::string_view text = entry->d_name;
    if (!text.ends_with(kSuffix)) continue;
    text.remove_suffix(kSuffix.size());
    if (const std::optional<RunName> name = run_name_of(text)) names.push_back(*name);
  }
  closedir(folder);
  return names;
}

std::optional<StoredRun> PrefixFolder::look(const RunName& name, std::string& problem) const {
  const std::filesystem::path path = file_of(name);
  const File file(open(path.c_str(), kReading));
  const std::optional<struct stat> found = examine(file, path, problem);
  if (!found) return std::nullopt;
  Head head;
  StoredRun stored;
  stored.name = name;
  if (!read_head(file, head, stored.run.words)) {
    problem = path.string() + " is damaged, or of another version";
    return std::nullopt;
  }
  stored.run.behind = head.behind;
  stored.run.n_key = head.n_key;
  stored.run.groups = head.groups;
  stored.run.is_state = head.is_state == 1;
  stored.n_bytes = static_cast<uint64_t>(found->st_size);
  stored.last_use = static_cast<uint64_t>(found->st_mtime) * 1'000'000'000;
  if (stored.n_bytes != file_bytes(stored.run, head.n_page_bytes) || name_of(stored.run) != name) {
    problem = path.string() + " is damaged: it has " + std::to_string(stored.n_bytes) +
              " bytes, or another run than its name says";
    return std::nullopt;
  }
  return stored;
}

std::optional<std::vector<std::byte>> PrefixFolder::read(const RunName& name, const PrefixRun& run,
                                                         uint64_t n_page_bytes,
                                                         std::string& problem) const {
  const std::filesystem::path path = file_of(name);
  const File file(open(path.c_str(), kReading));
  if (!examine(file, path, problem)) return std::nullopt;
  Head head;
  std::vector<uint32_t> words;
  std::vector<std::byte> pages(n_page_bytes);
  if (!read_head(file, head, words) || words != run.words || head.behind != run.behind ||
      head.groups != run.groups || (head.is_state == 1) != run.is_state ||
      head.n_page_bytes != n_page_bytes || !file.read(pages) ||
      add_to_sum(0, pages) != head.page_sum) {
    problem = path.string() + " is damaged: its bytes are not the ones that were written";
    return std::nullopt;
  }
  return pages;
}

std::string PrefixFolder::write(const RunName& name, const PrefixRun& run,
                                std::span<const std::byte> pages) {
  Head head;
  head.n_words = static_cast<uint32_t>(run.words.size());
  head.n_key = run.n_key;
  head.behind = run.behind;
  head.groups = run.groups;
  head.is_state = run.is_state ? 1 : 0;
  head.n_page_bytes = pages.size();
  head.page_sum = add_to_sum(0, pages);
  head.head_sum = sum_of_head(head, run.words);
  // Its own for every process and file: two may write the same run at a time.
  const std::filesystem::path unfinished =
      path_ / (to_text(name) + "." + std::to_string(getpid()) + "." + std::to_string(++n_written_) +
               std::string(kUnfinished));
  const std::filesystem::path path = file_of(name);
  std::string problem;
  {
    const auto create = [&] {
      return open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    };
    int descriptor = create();
    if (descriptor < 0 && errno == ENOENT) {  // somebody cleared the folder away
      std::error_code error;
      std::filesystem::create_directories(path_, error);
      descriptor = create();
    }
    const File file(descriptor);
    if (!file || !file.write(std::as_bytes(std::span(&head, 1))) ||
        !file.write(std::as_bytes(std::span(run.words))) || !file.write(pages) ||
        fsync(file.get()) != 0)
      problem = unfinished.string() + " cannot be written: " + reason();
  }
  if (problem.empty() && rename(unfinished.c_str(), path.c_str()) != 0)
    problem = path.string() + " cannot be written: " + reason();
  if (!problem.empty()) {
    unlink(unfinished.c_str());
    return problem;
  }
  const File folder(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) fsync(folder.get());
  return {};
}

void PrefixFolder::touch(const RunName& name) const {
  utimensat(AT_FDCWD, file_of(name).c_str(), nullptr, 0);
}

void PrefixFolder::remove(const RunName& name) const { unlink(file_of(name).c_str()); }

void PrefixFolder::remove_leftovers() const {
  DIR* const folder = opendir(path_.c_str());
  if (folder == nullptr) return;
  std::vector<std::filesystem::path> old;
  while (const dirent* const entry = readdir(folder)) {
    if (!std::string_view(entry->d_name).ends_with(kUnfinished)) continue;
    const std::filesystem::path path = path_ / entry->d_name;
    struct stat found = {};
    if (stat(path.c_str(), &found) == 0 && time(nullptr) - found.st_mtime > kLeftAfter)
      old.push_back(path);
  }
  closedir(folder);
  for (const std::filesystem::path& path : old) unlink(path.c_str());
}

}  // namespace akunu
