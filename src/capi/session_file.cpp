#include "capi/session_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "capi/file_bytes.h"
#include "core/error.h"
#include "files/printable.h"
#include "text/blake2b.h"

namespace akunu::capi {
namespace {

constexpr std::string_view kMagic = "AKUNUSES";
constexpr uint64_t kVersion = 1;
constexpr size_t kPrefix = 16;
constexpr uint64_t kMostHeader = 1 << 28;

std::string number_bytes(uint32_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

uint32_t number_of(std::span<const std::byte, 4> bytes) {
  uint32_t number = 0;
  for (size_t i = 4; i-- > 0;) number = number << 8 | std::to_integer<uint32_t>(bytes[i]);
  return number;
}

std::string digest_of(std::span<const std::byte> tokens, std::span<const std::byte> positions) {
  Blake2b digest(32);
  digest.update(tokens);
  digest.update(positions);
  return hex(digest.digest());
}

class Reader {
 public:
  explicit Reader(const std::string& path) : name_(printable(path, kPathLimit)), file_(path) {
    if (!file_.is_open()) throw ArgumentError(name_ + " cannot be read");
  }

  const std::string& name() const { return name_; }
  uint64_t size() const { return file_.size(); }
  [[noreturn]] void refuse(const std::string& why) const { throw ModelFormatError(name_ + why); }

  void refuse_cut(uint64_t needed) const {
    if (size() < needed)
      refuse(" is cut off: it has " + std::to_string(size()) + " of " + std::to_string(needed) +
             " bytes");
  }

  std::vector<std::byte> take(uint64_t n) {
    std::vector<std::byte> bytes(n);
    if (!file_.read(place_, bytes)) refuse(" could not be read to its end");
    place_ += n;
    return bytes;
  }

 private:
  std::string name_;
  FileBytes file_;
  uint64_t place_ = 0;  // behind what was taken
};

const JsonValue& entry(const Reader& file, const JsonValue& header, std::string_view name,
                       JsonValue::Kind kind) {
  const JsonValue* found = header.find(name);
  if (found == nullptr || found->kind != kind)
    file.refuse(": '" + std::string(name) + "' of its header is " +
                (found == nullptr ? "missing" : found->shown()));
  return *found;
}

uint64_t count(const Reader& file, const JsonValue& value, std::string_view name, uint64_t most) {
  const std::optional<uint64_t> number = value.unsigned_integer();
  if (!number || *number > most)
    file.refuse(": '" + std::string(name) + "' of its header is " + value.shown() +
                ", expected a count of at most " + std::to_string(most));
  return *number;
}

void check_entries(const Reader& file, const JsonValue& header) {
  using Kind = JsonValue::Kind;
  if (header.kind != Kind::object) file.refuse(": its header is no JSON object");
  for (const auto& [name, kind] : {std::pair{"akunu", Kind::string},
                                   {"model", Kind::object},
                                   {"kv_type", Kind::string},
                                   {"layout", Kind::array},
                                   {"computed_by", Kind::object},
                                   {"n_positions", Kind::number},
                                   {"first_entries", Kind::array},
                                   {"n_tokens", Kind::number},
                                   {"n_bytes", Kind::number},
                                   {"digest", Kind::string}})
    entry(file, header, name, kind);
  const JsonValue* conversation = header.find("conversation");
  if (conversation == nullptr || conversation->kind != Kind::null)
    entry(file, header, "conversation", Kind::object);
}

// Closes the file and, unless it was put in its place, removes it.
class Part {
 public:
  explicit Part(const std::filesystem::path& target) : target_(target) {
    std::array<char, 16> digits;
    std::snprintf(digits.data(), digits.size(), ".%08x", std::random_device()());
    const std::string name = "." + target.filename().string().substr(0, 200) + digits.data();
    path_ = target.parent_path() / (name + ".part");
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw ArgumentError(shown() + " cannot be written: " + strerror(errno));
  }
  ~Part() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!is_placed_) unlink(path_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }

  void put_in_place() {
    if (fsync(descriptor_) != 0) fail();
    if (rename(path_.c_str(), target_.c_str()) != 0) fail();
    is_placed_ = true;
  }

 private:
  std::string shown() const { return printable(target_.string(), kPathLimit); }
  [[noreturn]] void fail() const {
    throw Error(shown() + " could not be written: " + strerror(errno));
  }

  const std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool is_placed_ = false;
};

constexpr int kMostLinks = 40;  // one after the other, as Linux counts them

// The file itself where `path` is a link, also where it is not there yet: weakly_canonical would take the
// link for it.
std::filesystem::path behind_links(std::filesystem::path path, std::error_code& error) {
  for (int n = 0; std::filesystem::is_symlink(path, error); ++n) {
    if (n == kMostLinks) {
      error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
      return {};
    }
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return {};
    path = path.parent_path() / target;
  }
  return std::filesystem::weakly_canonical(path, error);
}

std::filesystem::path checked_target(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = behind_links(path, error);
  const std::string name = printable(path, kPathLimit);
  if (error || target.filename().empty()) throw ArgumentError(name + " is no path of a file");
  if (std::filesystem::is_directory(target, error))
    throw ArgumentError(name + " is a folder; name a file in it");
  // A new file would take the place of the device.
  if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error))
    throw ArgumentError(name + " is a device, a pipe or a socket; name a file");
  if (!std::filesystem::is_directory(target.parent_path(), error))
    throw ArgumentError(printable(target.parent_path().string(), kPathLimit) + " is not a folder");
  return target;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

SessionFile read_session_file(const std::string& path) {
  Reader file(path);
  if (file.size() < kPrefix)
    file.refuse(" is no saved session: it has " + std::to_string(file.size()) + " bytes");
  const std::vector<std::byte> prefix = file.take(kPrefix);
  if (std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0)
    file.refuse(" is no saved session: it does not begin as one");
  const std::span<const std::byte, kPrefix> numbers(prefix);
  const uint32_t version = number_of(numbers.subspan<8, 4>());
  if (version != kVersion)
    file.refuse(" is a session in version " + std::to_string(version) +
                " of the form; this akunu reads " + std::to_string(kVersion));
  const uint64_t n_header = number_of(numbers.subspan<12, 4>());
  if (n_header > kMostHeader)
    file.refuse(": its header would have " + std::to_string(n_header) + " bytes");
  file.refuse_cut(kPrefix + n_header);
  const std::vector<std::byte> text = file.take(n_header);

  SessionFile session;
  session.header =
      parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, file.name(), kPrefix);
  check_entries(file, session.header);
  const JsonValue& header = session.header;
  const uint64_t n_tokens = count(file, *header.find("n_tokens"), "n_tokens", UINT32_MAX);
  const uint64_t n_bytes = count(file, *header.find("n_bytes"), "n_bytes", INT64_MAX);
  session.n_positions =
      static_cast<uint32_t>(count(file, *header.find("n_positions"), "n_positions", n_tokens));
  for (const JsonValue& each : header.find("first_entries")->items)
    session.first_entries.push_back(
        static_cast<uint32_t>(count(file, each, "first_entries", UINT32_MAX)));
  const uint64_t whole = kPrefix + n_header + 4 * n_tokens + n_bytes;
  file.refuse_cut(whole);
  if (file.size() > whole)
    file.refuse(" has " + std::to_string(file.size() - whole) + " bytes more than its header says");
  const std::vector<std::byte> tokens = file.take(4 * n_tokens);
  session.positions = file.take(n_bytes);
  if (digest_of(tokens, session.positions) != header.find("digest")->text)
    file.refuse(" is damaged: its bytes are not the ones that were saved");
  for (size_t i = 0; i < n_tokens; ++i)
    session.tokens.push_back(number_of(std::span(tokens).subspan(4 * i).first<4>()));
  return session;
}

void write_session_file(const std::string& path, const std::string& header,
                        const std::vector<uint32_t>& tokens,
                        const std::vector<std::byte>& positions) {
  Part part(checked_target(path));
  std::string token_bytes;
  for (const uint32_t token : tokens) token_bytes += number_bytes(token);
  const std::string text = "{" + header + ",\"n_tokens\":" + std::to_string(tokens.size()) +
                           ",\"n_bytes\":" + std::to_string(positions.size()) + ",\"digest\":\"" +
                           digest_of(bytes_of(token_bytes), positions) + "\"}";
  part.write(bytes_of(std::string(kMagic) + number_bytes(kVersion) +
                      number_bytes(static_cast<uint32_t>(text.size())) + text));
  part.write(bytes_of(token_bytes));
  part.write(positions);
  part.put_in_place();
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char each : printable(text)) {
    if (each == '"' || each == '\\') out += '\\';
    out += each;
  }
  return out + "\"";
}

}  // namespace akunu::capi
