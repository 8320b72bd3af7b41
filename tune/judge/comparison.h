// A kernel's results against a reference in float64.
#pragma once

#include "tune/judge/host_value.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

/// An element is right when |got - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// For a task without tolerances: torch.testing's for floats, 0 for integers and bool.
Tolerance default_tolerance(ScalarType dtype) noexcept;

/// The first wrong element, and the number of wrong ones.
struct Difference {
  std::int64_t index = 0;  ///< of the first, in C order
  std::string place;       ///< "[3, 4]"
  std::string got;
  std::string expected;
  std::int64_t count = 0;       ///< wrong elements
  std::int64_t elements = 0;    ///< of all
  double largest_error = 0;     ///< |got - expected| over all finite wrong ones
  std::int64_t not_finite = 0;  ///< wrong elements without such a number: NaN, infinities

  /// "[3, 4] is 1.5, expected 2 (7 of 12 elements differ, by at most 0.5)"
  std::string to_string() const;
};

/// Compares arrays of the same shape; `got` has the type of the kernel's array, `expected` any.
/// NaN equals NaN, an infinity one of the same sign. Expected values beyond the range of `got`'s
/// type become infinities. Below its smallest normal number, 0 is right if a relative tolerance is
/// allowed: kernels may flush denormal numbers. Integers are compared as integers without a
/// tolerance. A bool of `got` is the byte 0 or 1. Throws InvalidArgument for different shapes.
std::optional<Difference> compare(const HostValue& got, const HostValue& expected,
                                  Tolerance tolerance);

/// Why no kernel can write the expected values into an array of `type`: integers for floats (their
/// fractions were cut off), complex numbers for real ones, a number beyond an integer type and the
/// tolerance. Empty: a kernel can.
std::string why_unreachable(const HostValue& expected, ScalarType type, Tolerance tolerance);

}  // namespace kernwright
