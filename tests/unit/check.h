// The one assertion of the C++ drivers: prints where and what, counts, and lets main return it.
#pragma once

#include <atomic>
#include <cstdio>
#include <source_location>
#include <string>
#include <string_view>

namespace akunu::test {

// Sanitizers are slow, and find races and bad memory accesses in short texts as well as in long ones.
// Drivers therefore generate fewer tokens under them; the plain build runs the full length.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kShort = true;
#else
constexpr bool kShort = false;
#endif

inline std::atomic<int> n_passed{0};
inline std::atomic<int> n_failed{0};

inline void check(bool holds, std::string_view what,
                  const std::source_location& where = std::source_location::current()) {
  (holds ? n_passed : n_failed).fetch_add(1);
  if (!holds)
    std::fprintf(stderr, "%s:%u: failed: %.*s\n", where.file_name(), where.line(),
                 static_cast<int>(what.size()), what.data());
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The message of the exception that `run` throws, or "" when it throws none of that type.
template <class Exception, class Run>
std::string message_of(Run&& run) {
  try {
    run();
  } catch (const Exception& error) {
    return error.what();
  } catch (...) {
  }
  return "";
}

inline int summary() {
  std::printf("%d passed, %d failed\n", n_passed.load(), n_failed.load());
  return n_failed.load() == 0 && n_passed.load() > 0 ? 0 : 1;
}

}  // namespace akunu::test
