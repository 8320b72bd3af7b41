// A task's values as arguments of a compiled kernel.
#pragma once

#include "core/kernel_signature.h"
#include "tune/judge/host_case.h"
#include "tune/judge/task.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kernwright {

/// The bytes of the parameter for a value other than an array. Throws InvalidArgument, naming the
/// parameter, if its type cannot hold the value.
std::vector<std::byte> pack(const Parameter& parameter, const HostValue& value);

/// Throws InvalidArgument, naming argument and parameter, for another count, an array where a
/// number is wanted, elements of another type.
void check_values(const KernelSignature& signature, const HostValues& values);

/// Throws InvalidArgument, naming the case and the parameter, if the expected value of a const
/// parameter differs from its contents.
void check_writable(const KernelSignature& signature, const HostCase& host_case);

/// The difference between these parameters and those of a task's signature, compiled as a kernel
/// `declared`; empty if there is none. Names do not count.
std::string signature_difference(const KernelSignature& found, const KernelSignature& declared);

/// A kernel with the task's signature (without one: no parameters) and no body, from which the
/// compiler reads its types. Throws InvalidArgument for a text other than a list of parameters.
std::string signature_source(const Task& task);

/// Blocks for one thread for each element of the largest written array; at least one.
Dim3 default_grid(const HostValues& inputs, const Expected& expected, const Dim3& block);

}  // namespace kernwright
