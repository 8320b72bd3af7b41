// The second shared parameter of attention's gradient kernels, made of checked arrays.
#pragma once

#include "kernels_src/attention/attention_call.h"

namespace kernwright::kernels {

/// Gradients of attention_gradient.cuh.
struct GradientCall {
  CUdeviceptr grad = 0, delta = 0, bases = 0, dq = 0, dk = 0, dv = 0;
  HeadStrides grad_at{}, dq_at{}, dk_at{}, dv_at{};
};

/// A checked call of attention_backward().
struct PreparedGradient {
  PreparedAttention forward;
  GradientCall call{};
  Array grad;
  int extras = 0;  ///< as the kernels' template has it
};

}  // namespace kernwright::kernels
