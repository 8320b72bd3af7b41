// The partial results of a product, and their epilogue by a separate kernel.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "jit/kernels_ahead.h"
#include "jit/program.h"
#include "kernels_src/epilogue/product_epilogue.h"

#include <utility>

namespace kernwright::kernels {

/// Adds up `parts` of partial results in their order, each part as large as `result`, and does the
/// rest of the work; for float64 there is none. `kernel` is what begin_finish() of these `kernels`
/// gave.
void finish_partials(const Array& partials, const Array& result, const ProductEpilogue& epilogue,
                     int parts, const LazyKernel* kernel, KernelsAhead& kernels, const Stream& on);
/// Begins to compile what finish_partials() launches; null where that is none of ours, for
/// float64.
const LazyKernel* begin_finish(KernelsAhead& kernels, const Array& result,
                               const ProductEpilogue& epilogue);

/// How a product ends. `launch_on(target, ending, kernels)` makes the finished result if `at_once`
/// and there is one part. Else it makes partial results of the shape (parts, ...), and
/// finish_partials() the result.
template <typename LaunchOn>
void run_product(const Array& result, const ProductEpilogue& epilogue, bool at_once,
                 Shape partials_shape, const Stream& on, const LaunchOn& launch_on) {
  const auto parts = static_cast<int>(partials_shape.front());
  KernelsAhead kernels;
  if (at_once && parts == 1) return launch_on(result, epilogue, kernels);
  const bool wide = result.type() == ScalarType::float64;
  const Array partials = Array::empty(result.device(), std::move(partials_shape),
                                      wide ? ScalarType::float64 : ScalarType::float32, on);
  const LazyKernel* const finish = begin_finish(kernels, result, epilogue);
  launch_on(partials, ProductEpilogue{}, kernels);
  finish_partials(partials, result, epilogue, parts, finish, kernels, on);
}

}  // namespace kernwright::kernels
