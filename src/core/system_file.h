// Files in which the system describes itself (/proc, /sys), as text.
//
// No streams: in a library that carries a libstdc++ of its own, loaded into a process that has another
// one, `std::ifstream >> number` leaves the number unchanged and the stream good: the two copies share the
// unique symbol `num_get::id`, the index at which a locale keeps that facet, but each has locales of its
// own. open, read and from_chars share no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

// All of a file; nothing where it cannot be read.
std::optional<std::string> read_system_file(const std::string& path);

// What stands between the separators; views into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

// The number that a text begins with, behind spaces; nothing for "max", "-1" and other words.
std::optional<uint64_t> leading_number(std::string_view text);

}  // namespace akunu
