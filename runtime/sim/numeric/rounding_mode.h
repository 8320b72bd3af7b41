// How instructions round.
#pragma once

#include <cstdint>

namespace kernwright::sim {

/// As PTX names the modes.
enum class Rounding : std::uint8_t { none, rn, rz, rm, rp, rna, rs, rni, rzi, rmi, rpi };

}  // namespace kernwright::sim
