// Sizes of deflated texts beside those of zlib 1.2.13 (Python's `len(zlib.compress(text))`): texts without
// matches, with matches of all lengths and distances, too random to shrink, of skewed symbols.
#include "speech/deflated_size.h"

#include <cstdint>
#include <string>

#include "unit/check.h"

namespace akunu::test {
namespace {

// `n` bytes out of an alphabet: x' = 1103515245 x + 12345 (32 bits), from its upper 16.
std::string random_text(size_t n, std::string_view alphabet, uint32_t x) {
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    x = 1103515245u * x + 12345u;
    text += alphabet[(x >> 16) % alphabet.size()];
  }
  return text;
}

std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

std::string repeated(std::string_view text, size_t n) {
  std::string all;
  for (size_t i = 0; i < n; ++i) all += text;
  return all;
}

// Of each byte from 'a' on so many as Fibonacci's numbers say: codes as long as they may be.
std::string skewed(size_t n) {
  std::string text;
  size_t count = 1, next = 1;
  for (size_t i = 0; i < n; ++i) {
    text += std::string(count, static_cast<char>('a' + i));
    next += count;
    count = next - count;
  }
  std::string mixed(text.size(), ' ');  // no runs
  for (size_t i = 0; i < text.size(); ++i) mixed[i * 2654435761u % text.size()] = text[i];
  return mixed;
}

void expect(std::string_view text, size_t size) {
  const size_t found = speech::deflated_size(text);
  check(found == size, "a text of " + std::to_string(text.size()) + " bytes has " +
                           std::to_string(found) + " deflated, zlib " + std::to_string(size));
}

void run() {
  const std::string bytes = all_bytes();
  expect("", 8);
  expect("a", 9);
  expect("aa", 10);
  expect("abcabc", 14);
  expect(repeated("a", 1000), 17);
  expect(repeated(" Thank you.", 40), 24);
  expect("Please press 1 to mute or unmute yourself. 2 to lock or unlock the conference.", 71);
  expect(bytes, 267);
  expect(repeated(bytes, 3), 284);
  expect(random_text(200, bytes, 1), 211);
  expect(random_text(3000, bytes, 2), 3011);
  expect(random_text(3000, "abc ", 3), 1010);
  expect(random_text(5000, "ab", 4), 859);
  expect(random_text(900, "etaoin shrdlu", 5), 482);
  expect(random_text(9000, "etaoin shrdlu", 6), 4949);
  expect(random_text(9000, bytes, 7), 9011);
  expect(skewed(12), 56);
  expect(skewed(16), 119);
  expect(skewed(19), 183);
  expect(random_text(5000, "etaoin shrdlu", 8) + random_text(600, "etaoin shrdlu", 8), 2766);
}

}  // namespace
}  // namespace akunu::test

int main() {
  akunu::test::run();
  return akunu::test::summary();
}
