// What a baseline does wrong is its task's fault.
#pragma once

#include <functional>

namespace kernwright {

/// Runs a step of the baseline. Where a kernel would get a verdict for it, a baseline is no
/// measure: throws InvalidArgument, which says what it did. Other exceptions come out as they are.
void baseline_step(const std::function<void()>& step);

}  // namespace kernwright
