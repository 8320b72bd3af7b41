// Mistakes of a baseline are errors of its task.
#pragma once

#include <functional>

namespace kernwright {

/// Runs a step of the baseline. If a kernel would get a verdict for this step, throws
/// InvalidArgument with the reason: such a baseline is no measure. Other exceptions pass through.
void baseline_step(const std::function<void()>& step);

}  // namespace kernwright
