// The gradient of softmax and of log_softmax.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// dx for the gradient `dy` of y = softmax(x * scale + mask) along `axis`:
/// dx = scale * y * (dy - sum(dy * y)); with `log`, where y = log_softmax(...):
/// dx = scale * (dy - exp(y) * sum(dy)). dy and y have one shape and type (any strides), which dx
/// takes. Rows of up to 16384 elements are read once, others and few long ones twice; any other
/// axis than the last is walked in columns. Types, stream and errors as softmax().
Array softmax_backward(const Array& dy, const Array& y, int axis, double scale = 1.0,
                       bool log = false, const Stream& stream = {});

}  // namespace kernwright::kernels
