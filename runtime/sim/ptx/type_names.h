// Looks up types and special registers by their PTX spelling.
#pragma once

#include "sim/ptx/ast.h"

#include <string_view>

namespace kernwright::sim::ptx {

/// Type::none when `text` names none ("f32", without a dot).
Type type_from_name(std::string_view text) noexcept;

/// SpecialRegister::none when unknown; `text` as written, "%tid.x".
SpecialRegister special_from_name(std::string_view text) noexcept;

/// 32 or 64.
int special_bits(SpecialRegister special) noexcept;

}  // namespace kernwright::sim::ptx
