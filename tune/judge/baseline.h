// What a baseline does wrong is its task's fault.
#pragma once

#include <functional>

namespace kernwright {

/// Runs a step of the baseline. A step for which a kernel would get a verdict throws
/// InvalidArgument with the reason: such a baseline is no measure. Other exceptions come out as
/// they are.
void baseline_step(const std::function<void()>& step);

}  // namespace kernwright
