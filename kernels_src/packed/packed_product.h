// The kernels of products with packed weights.
#pragma once

#include "kernels_src/packed/packed.h"
#include "kernels_src/packed/packed_plan.h"

namespace kernwright::kernels {

/// The result (rows, n) of packed_linear() for rows of 16-bit numbers, by a plan of plan_packed()
/// for call.plan. The operands have passed the checks of packed_linear(). `target`: memory of the
/// result. A norm is one that applies_packed_norm().
Array packed_product(const PackedLinearCall& call, std::int64_t rows, const SkinnyPlan& plan,
                     const std::optional<Array>& target, const Stream& on);

/// Whether the kernel of `plan` applies the call's norm of x; whether it then applies the gate.
bool applies_packed_norm(const PackedLinearCall& call, std::int64_t rows, const SkinnyPlan& plan);
bool applies_packed_gate(const PackedLinearCall& call, const SkinnyPlan& plan);

}  // namespace kernwright::kernels
