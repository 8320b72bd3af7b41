// Numbers of the host as operands: they travel as parameters of the kernel.
#pragma once

#include "base/scalar_type.h"
#include "core/number.h"
#include "kernels_src/elementwise/promotion.h"

#include <cstdint>

namespace kernwright::kernels {

/// A number with a type, or a weak number, which takes the type of the arrays beside it.
struct ScalarOperand {
  Number value;
  Weak weak = Weak::none;
  ScalarType type = ScalarType::boolean;  ///< when not weak

  static ScalarOperand make(bool value) noexcept;
  static ScalarOperand make(std::int64_t value) noexcept;  ///< weak, as the next one
  static ScalarOperand make(double value) noexcept;
};

/// Writes `number` as `type`, at most 16 bytes. Reals are rounded to nearest, ties to even, and
/// become infinite beyond the range. To bool: whether it is not 0. Throws ArgumentRangeError for a
/// value outside of an integer `type`.
void encode(const ScalarOperand& number, ScalarType type, void* to);

}  // namespace kernwright::kernels
