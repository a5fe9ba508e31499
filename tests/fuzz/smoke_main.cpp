// Runs a fuzz target without libFuzzer: every file of the corpus, each shortened to every length,
// then mutations of them.
//   fuzz_x_smoke CORPUS [MUTATIONS [FIRST]]
// Mutation i is the same in every run and on every machine, so FIRST leads back to one that failed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kLongestShortened = 4096;  // every length of a larger file would take minutes

// SplitMix64 (Steele, Lea, Flood, 2014): any seed is a good one.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

// Numbers at which counts, lengths and products go wrong.
uint64_t awkward_number(Random& random, size_t file_size) {
  const uint64_t power = uint64_t{1} << random.below(64);
  switch (random.below(6)) {
    case 0:
      return power - 1;
    case 1:
      return power;
    case 2:
      return ~power;
    case 3:
      return random.below(64);
    case 4:
      return file_size - random.below(64);
    default:
      return random.next();
  }
}

// Values of JSON at which readers of numbers, counts, lists and names go wrong.
constexpr std::array<std::string_view, 20> kAwkwardValues{"0",
                                                          "-1",
                                                          "1",
                                                          "2.5",
                                                          "1e308",
                                                          "1e-320",
                                                          "-0.0",
                                                          "4294967296",
                                                          "18446744073709551615",
                                                          "999999999999999999999",
                                                          "null",
                                                          "true",
                                                          "false",
                                                          "\"\"",
                                                          "\"full_attention\"",
                                                          "[]",
                                                          "{}",
                                                          "[0,-1]",
                                                          "[\"sliding_attention\",3]",
                                                          "{\"rope_type\":\"yarn\",\"factor\":0}"};

// Where the value ends that begins at `at` of a JSON text; its end where it is no whole one.
size_t end_of_value(const Bytes& bytes, size_t at) {
  int depth = 0;
  for (; at < bytes.size(); ++at) {
    const uint8_t letter = bytes[at];
    if (letter == '[' || letter == '{') ++depth;
    if (letter == ']' || letter == '}') --depth;
    if (depth < 0 || (depth == 0 && letter == ',')) break;
  }
  return at;
}

// Another value for the first key behind `at`, in files that have keys.
void change_value(Bytes& bytes, size_t at, Random& random) {
  const auto colon = std::find(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), ':');
  if (colon == bytes.end()) return;
  const auto begin = colon + 1;
  const size_t end = end_of_value(bytes, static_cast<size_t>(begin - bytes.begin()));
  const std::string_view value = kAwkwardValues[random.below(kAwkwardValues.size())];
  bytes.erase(begin, bytes.begin() + static_cast<std::ptrdiff_t>(end));
  bytes.insert(colon + 1, value.begin(), value.end());
}

void put(Bytes& bytes, size_t at, uint64_t number, size_t width) {
  std::memcpy(bytes.data() + at, &number, std::min(width, bytes.size() - at));
}

void mutate(Bytes& bytes, const std::vector<Bytes>& corpus, Random& random) {
  if (bytes.empty()) return;
  const size_t at = random.below(bytes.size());
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(10)) {
    case 0:
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1u << random.below(8)));
      break;
    case 1:
      bytes[at] = static_cast<uint8_t>(random.next());
      break;
    case 2:
      put(bytes, at, awkward_number(random, bytes.size()), 8);
      break;
    case 3:
      put(bytes, at, awkward_number(random, bytes.size()), 4);
      break;
    case 4:
      put(bytes, at, random.below(32), 4);
      break;  // another type
    case 5:
      bytes.resize(at);
      break;
    case 6: {  // lost bytes
      const size_t n = 1 + random.below(std::min<size_t>(bytes.size() - at, 32));
      bytes.erase(place, place + static_cast<std::ptrdiff_t>(n));
      break;
    }
    case 7:
    case 8:
      change_value(bytes, at, random);
      break;
    default: {  // a piece of another file, inserted
      const Bytes& other = corpus[random.below(corpus.size())];
      if (other.empty()) break;
      const size_t from = random.below(other.size());
      const size_t n = 1 + random.below(std::min<size_t>(other.size() - from, 64));
      bytes.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(from + n));
    }
  }
}

// In memory of exactly this size, so that a sanitizer sees the first byte beyond it.
void run(const uint8_t* bytes, size_t size) {
  const auto exact = std::make_unique<uint8_t[]>(size);
  std::copy_n(bytes, size, exact.get());
  LLVMFuzzerTestOneInput(exact.get(), size);
}

std::vector<Bytes> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());  // mutation i must not depend on the file system
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s CORPUS [MUTATIONS [FIRST]]\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no files\n", argv[1]);
    return 2;
  }
  const uint64_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;

  for (const Bytes& bytes : corpus) {
    run(bytes.data(), bytes.size());
    for (size_t size = 0; size < std::min(bytes.size(), kLongestShortened); ++size)
      run(bytes.data(), size);
  }
  std::printf("%zu files of the corpus, at every length up to %zu\n", corpus.size(),
              kLongestShortened);
  for (uint64_t i = first; i < first + n; ++i) {
    if (i % 100'000 == 0) {
      std::printf("mutation %llu\n", static_cast<unsigned long long>(i));
      std::fflush(stdout);
    }
    Random random(i);
    Bytes bytes = corpus[random.below(corpus.size())];
    for (size_t rounds = 1 + random.below(4); rounds > 0; --rounds) mutate(bytes, corpus, random);
    run(bytes.data(), bytes.size());
  }
  std::printf("%llu mutations\n", static_cast<unsigned long long>(n));
  return 0;
}
