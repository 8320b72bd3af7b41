// How memory is accessed.
#pragma once

#include <cstdint>

namespace kernwright::sim {

/// Two atomic accesses never conflict with each other.
enum class AccessKind : std::uint8_t { read, write, atomic };

}  // namespace kernwright::sim
