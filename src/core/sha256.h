// SHA-256 (FIPS 180-4): names things by what they are, so that nobody can make two things with one name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace akunu {

std::array<uint8_t, 32> sha256(std::span<const std::byte> bytes);

}  // namespace akunu
