// Constant expressions: literals and operators over 64-bit integers.
#pragma once

#include "sim/ptx/parse/literal.h"
#include "sim/ptx/parse/token_reader.h"

#include <cstdint>

namespace kernwright::sim::ptx {

/// Floating-point numbers stand alone. Throws PtxError for anything but a constant.
Literal read_constant(TokenReader& reader);

/// +constant or -constant; PTX writes `+-4` for negative ones.
std::int64_t read_offset(TokenReader& reader);

}  // namespace kernwright::sim::ptx
