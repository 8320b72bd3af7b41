// Steps of optimisers, of many tensors at once.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/optim/step_words.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::kernels {

enum class OptimizerRule : std::uint8_t { adamw, adam, sgd, lion, direction, average, decoupled };

/// Hyperparameters as torch.optim names them. On the device, `steps` (one int64) is added to
/// `step`, `words` (seven float64) stand for the numbers from `rate` to `dampening`, `rates` (one
/// float32) for the rate, `scale` (one float32) is a factor of all gradients, and unless `skip`
/// (one int32) is 0 nothing changes: what a graph replays reads them anew.
struct OptimizerOptions {
  OptimizerRule rule = OptimizerRule::adamw;
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  double momentum = 0, dampening = 0;
  double gain = 1;  ///< a factor of the rate, of decoupled
  bool nesterov = false, maximize = false, amsgrad = false;
  std::int64_t step = 1;  ///< with `steps`, if any, from 1 on
  std::optional<Array> steps = std::nullopt, rates = std::nullopt, scale = std::nullopt;
  std::optional<Array> words = std::nullopt, skip = std::nullopt;
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
///   m = beta2 m + (1 - beta2) g;
/// - pieces of Muon: direction writes into p the momentum with g, without a change of m (p = m' or,
///   nesterov, g + momentum (m' - g), where m' = m + (g - m) (1 - momentum)); average makes p, a
///   momentum, that m'; decoupled: p = p (1 - rate decay) - rate gain g.
/// Everything is read and written once, by one launch for up to 48 tensors of equal types; the
/// table of tensors is a parameter of the kernel, as in apex' multi_tensor_apply. Arithmetic is in
/// float32, in float64 where the states are. Parameters, gradients: float16, bfloat16, float32,
/// float64. Gradients may have any strides, the rest none. Queued on `stream`. Throws
/// InvalidArgument, before anything is changed, for what does not fit together.
void optimizer_step(const OptimizerTensors& tensors, const OptimizerOptions& options,
                    const Stream& stream = {});

/// The parameters of one step that share their hyperparameters.
struct OptimizerPart {
  OptimizerTensors tensors;
  OptimizerOptions options;
};

/// Several of these as one step, with advance_step() in front of them where `words` are given.
/// Everything is checked, allocated and compiled before the first launch: when it throws, nothing
/// has changed.
void optimizer_steps(const std::vector<OptimizerPart>& parts,
                     const std::optional<AdvanceWords>& words, const Stream& stream = {});

}  // namespace kernwright::kernels
