// Steps of optimisers and gradient norms, of many tensors at once.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::kernels {

enum class OptimizerRule : std::uint8_t { adamw, adam, sgd, lion };

/// Hyperparameters as torch.optim names them. On the device, `steps` (one int64) is added to
/// `step`, `rates` (one float32) stands for `rate`, and `scale` (one float32) is a factor of all
/// gradients: what a graph replays reads them anew.
struct OptimizerOptions {
  OptimizerRule rule = OptimizerRule::adamw;
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false, maximize = false, amsgrad = false;
  std::int64_t step = 1;  ///< with `steps`, if any, from 1 on
  std::optional<Array> steps = std::nullopt, rates = std::nullopt, scale = std::nullopt;
  bool stochastic_rounding =
      false;  ///< of bfloat16 parameters, with the numbers of `seed` and step
  std::uint64_t seed = 0;
};

/// Tensor i of each list belongs together. `first`, `second` and with amsgrad `third` are exp_avg,
/// exp_avg_sq and max_exp_avg_sq; SGD's momentum and Lion's average are `first`. `masters` (or
/// none) are the parameters in the type of the states, and those of `params` rounded copies of
/// them.
struct OptimizerTensors {
  std::vector<Array> params, grads, first, second, third, masters;
};

/// One step, in place:
/// - adamw: p *= 1 - rate * decay; m += (g - m) (1 - beta1); v = beta2 v + (1 - beta2) g g;
///   p -= rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon). adam: g += decay p
///   instead. With amsgrad u = max(u, v) stands for v in the root;
/// - sgd: g += decay p; m = momentum m + (1 - dampening) g, in step 1 m = g; p -= rate (nesterov ?
///   g + momentum m : m). Without momentum p -= rate g;
/// - lion: c = beta1 m + (1 - beta1) g; p = p (1 - rate decay) - rate sign(c);
///   m = beta2 m + (1 - beta2) g.
/// Everything is read and written once, by one launch for up to 48 tensors of equal types; the
/// table of tensors is a parameter of the kernel, as in apex' multi_tensor_apply. Arithmetic is in
/// float32, in float64 where the states are. Parameters, gradients: float16, bfloat16, float32,
/// float64. Gradients may have any strides, the rest none. Queued on `stream`. Throws
/// InvalidArgument, before anything is changed, for what does not fit together.
void optimizer_step(const OptimizerTensors& tensors, const OptimizerOptions& options,
                    const Stream& stream = {});

struct GradientNorm {
  Array norm;   ///< float32 without axes
  Array scale;  ///< float32 without axes: min(1, limit / (norm + 1e-6)), as torch has it
};

/// The norm of all gradients as one vector: (sum of |g|^order)^(1 / order) for an order above 0, at
/// infinity the largest magnitude. Sums are made in float32 (float64 of float64) by threads of up
/// to 32 elements, beyond in float64, always in the same order. Throws InvalidArgument.
GradientNorm gradient_norm(const std::vector<Array>& grads, double limit, double order,
                           const Stream& stream = {});

/// Multiplies each tensor in place with the one float32 of `scale`; reads nothing where that is 1.
void scale_tensors(const std::vector<Array>& tensors, const Array& scale,
                   const Stream& stream = {});

}  // namespace kernwright::kernels
