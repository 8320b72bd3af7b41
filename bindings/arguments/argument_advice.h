// Advice for an array refused by a kernel's pointer; following it loses no writes.
#pragma once

#include "bindings/arguments/argument.h"
#include "bindings/array/foreign.h"

#include <string>

namespace kernwright::python {

/// The owner of the array: its type decides the spelling of a view.
enum class Holder { ours, foreign, host };

/// How messages call the parameter: its name, or "it".
std::string named(const ArgumentPlan& plan);

/// "; pass x.view(...)" for an array of another element type than `wanted`, or "". What the kernel
/// may write goes to memory of the array itself, or is copied back to it.
std::string type_advice(const ArgumentPlan& plan, const ArrayArgument& array, ScalarType wanted,
                        Holder holder);

/// The same for an array with gaps.
std::string contiguity_advice(const ArgumentPlan& plan);

}  // namespace kernwright::python
