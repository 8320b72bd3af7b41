// The kernels of products with packed weights.
#pragma once

#include "kernels_src/packed/packed.h"
#include "kernels_src/packed/packed_plan.h"

namespace kernwright::kernels {

/// The result (rows, n) of packed_linear() for rows of 16-bit numbers, by a plan of plan_packed()
/// for call.plan. The operands have passed the checks of packed_linear(). `target`: memory of the
/// result.
Array packed_product(const PackedLinearCall& call, std::int64_t rows, const SkinnyPlan& plan,
                     const std::optional<Array>& target, const Stream& on);

}  // namespace kernwright::kernels
