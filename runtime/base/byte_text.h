// Sizes in words.
#pragma once

#include <cstdint>
#include <string>

namespace kernwright {

/// "512 B", "1.5 MiB", "64 MiB": a whole number of the unit has no decimal.
std::string describe_bytes(std::uint64_t bytes);

}  // namespace kernwright
