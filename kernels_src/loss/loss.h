// Losses and their gradients.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::kernels {

class Family;

enum class LossReduction : std::uint8_t { none, mean, sum };
/// By name. Throws ArgumentError that lists the names.
LossReduction loss_reduction_from_name(std::string_view name);

/// A loss, and the gradient of its first array where it was asked for.
struct Loss {
  Array
      value;  ///< without dimensions, or with those of the rows or elements for LossReduction::none
  std::optional<Array> gradient;
};

struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::mean;
  double label_smoothing = 0;
  double z_loss = 0;
  std::int64_t ignore_index = -100;
  bool gradient = false;
  bool in_place = false;                        ///< the gradient is written over the logits
  std::optional<Array> weights = std::nullopt;  ///< (V,) of real floats: of the classes
};

/// Over rows of logits (..., V) and targets (...) of int32 or int64, with s = log(sum(exp(x))):
///   (1 - e) (s - x[t]) + e (s - mean(x)) + z s^2,   e = label_smoothing, z = z_loss,
/// of float32, for float64 logits of float64. With weights w of classes, as torch has them:
///   w[t] ((1 - e) (s - x[t]) + z s^2) + e sum_c w[c] (s - x[c]) / V.
/// LossReduction::mean divides by the targets that are not ignored, or by the sum of their weights.
/// Rows whose target is ignore_index give 0 and a gradient of 0; a target outside of [0, V) reads
/// nothing and gives NaN. The gradient has the type of the logits and is that of the reduced loss,
/// times `upstream` where given: one value, or for LossReduction::none one for each row. Logits are
/// read from memory once. Any strides of rows; in_place wants rows without gaps inside. Queued on
/// `stream`. The same in every run. Throws ArgumentError for other element types, InvalidArgument
/// for shapes that do not fit.
Loss cross_entropy(const Array& logits, const Array& targets, const CrossEntropyOptions& options,
                   const std::optional<Array>& upstream = std::nullopt, const Stream& stream = {});

enum class PointwiseLoss : std::uint8_t { squared, absolute, huber, binary_cross_entropy };
/// By name: "squared", "absolute", "huber", "binary_cross_entropy".
PointwiseLoss pointwise_loss_from_name(std::string_view name);

struct PointwiseOptions {
  PointwiseLoss kind = PointwiseLoss::squared;
  LossReduction reduction = LossReduction::mean;
  double knob = 1;  ///< delta of huber, weight of the positive class of binary_cross_entropy
  bool value = true;
  bool gradient = false;
};

/// The loss of the elements of `x` and `target`, with the same shape, real floating type and
/// device: (x - t)^2, |x - t|, 0.5 d^2 up to delta and delta (d - 0.5 delta) beyond for d = |x -
/// t|, (1 - t) x + (1 + (w - 1) t) log(1 + exp(-x)). Reduced values are float32 (float64 for
/// float64); with LossReduction::none they have the type of `x`. If given, `upstream` has the shape
/// of the value and multiplies the gradient of `x`. Sums run in a fixed order.
Loss pointwise_loss(const Array& x, const Array& target, const PointwiseOptions& options,
                    const std::optional<Array>& upstream = std::nullopt, const Stream& stream = {});

/// The instance launched by total(), for the names of a family with total.cuh in its text.
std::string total_name(ScalarType type);
/// The sum of contiguous float32 or float64 values times `factor` and, where given, `*scale`.
Array total(const Family& family, const Array& values, double factor,
            const std::optional<Array>& scale, const Stream& stream);

}  // namespace kernwright::kernels
