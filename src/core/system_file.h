// Files in which the system describes itself (/proc, /sys), as text.
//
// No streams: in a library that carries a libstdc++ of its own, loaded into a process that has another
// one, `std::ifstream >> number` leaves the number as it was and the stream good. The two copies share
// the identity of a facet (`num_get::id`), and each looks for the facet at the place that the other
// gave it. What is here shares nothing with anybody.
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
