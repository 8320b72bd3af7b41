// A layer of a network with packed weights.
#pragma once

#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

/// activation(x @ weights^T + bias) + residual, of the shape (..., n) and x's type. plan_product()
/// chooses: up to kSkinnyRows rows of 16 bits are one kernel, or one behind another that adds x: it
/// decodes in registers to whole numbers, whose accumulators of a group, in float32, are multiplied
/// with its scale. Up to kPackedRows are one that decodes to numbers of x's type for 64 or 128 rows
/// at a time. More rows: linear() of slabs of weights as numbers of x's type. Where weights have an
/// order, x's columns are gathered before. Throws InvalidArgument, ArgumentError; CompileError,
/// OutOfMemory, DriverError.
Array packed_linear(const PackedLinearCall& call, const Stream& stream = {});

}  // namespace kernwright::kernels
