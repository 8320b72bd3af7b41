// Bounds of an expression's value while some of its names have no value yet.
#pragma once

#include "tune/expression_tree.h"

#include <cstdint>
#include <span>

namespace kernwright {

/// An interval; its ends may be infinite.
struct Bounds {
  double low = 0;
  double high = 0;
  bool known = false;    ///< false: nothing is known (strings, a divisor that may be 0)
  bool certain = false;  ///< known, and no evaluation fails

  static Bounds from(double low, double high) { return {low, high, true, true}; }
  static Bounds from(const Scalar& value);
  /// No value in it is true. Where an evaluation could only fail by overflow, it still counts: the
  /// exact result would be false.
  bool always_false() const { return known && low == 0 && high == 0; }
  /// Every evaluation gives a value, and all are true.
  bool always_true() const { return certain && (low > 0 || high < 0); }
};

/// Bounds of a node for bounds of the slots. May be wider than the truth, never narrower.
Bounds expression_bounds(const ExpressionTree& tree, std::uint32_t node,
                         std::span<const Bounds> slots);

}  // namespace kernwright
