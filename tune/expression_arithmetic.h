// One operation of an expression on values, with Python's meaning.
#pragma once

#include "tune/expression_tree.h"
#include "tune/value.h"

namespace kernwright {

/// Each returns null and sets `result`, or returns why Python would raise.
const char* compute_unary(Operation operation, const Scalar& operand, Scalar& result);
const char* compute_binary(Operation operation, const Scalar& left, const Scalar& right,
                           Scalar& result);
/// Any but `contained` and `not_contained`.
const char* compare_scalars(Comparison comparison, const Scalar& left, const Scalar& right,
                            bool& result);

}  // namespace kernwright
