// Advice for an array refused by a kernel's pointer; following it loses no writes.
#pragma once

#include "bindings/arguments/argument.h"
#include "bindings/array/foreign.h"

#include <string>

namespace kernwright::python {

/// Who holds the array: its type says how a view of it is spelled.
enum class Holder { ours, foreign, host };

/// How messages call the parameter: its name, or "it".
std::string named(const ArgumentPlan& plan);

/// "; pass x.view(...)" for an array of another element type than `wanted`, or "". What the kernel
/// may write goes to memory of the array itself, or is copied back to it.
std::string type_advice(const ArgumentPlan& plan, const ArrayArgument& array, ScalarType wanted,
                        Holder holder);

/// The same for an array that is not contiguous.
std::string contiguity_advice(const ArgumentPlan& plan);

}  // namespace kernwright::python
