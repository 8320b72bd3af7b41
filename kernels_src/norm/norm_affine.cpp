// Checks of rows, groups, weights and biases against each other.
#include "kernels_src/norm/norm_affine.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/row_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace kernwright::kernels {
namespace {

void require_affine(const Array& x, const Array& array, const Shape& wanted, const char* what,
                    const char* name) {
  require_computed(array, what, name);
  if (array.shape() == wanted && &array.device() == &x.device()) return;
  throw InvalidArgument(
      format("Incompatible dimensions: {} of {} takes a {} of shape {} on the same device, got {}",
             what, x.identify(), name, shape_to_string(wanted), array.identify()));
}

std::int64_t axis_product(const Shape& shape, int first) {
  return std::accumulate(shape.begin() + first, shape.end(), std::int64_t{1}, std::multiplies<>());
}

NormShape grouped_shape(const Array& x, std::int64_t groups, const char* what) {
  if (x.ndim() < 2) {
    throw InvalidArgument(
        format("{} takes (batch, channels, ...), and x is a {}", what, x.identify()));
  }
  const std::int64_t channels = x.shape()[1];
  if (groups < 0) groups = std::max<std::int64_t>(1, channels);
  if (groups < 1 || channels % groups != 0) {
    throw InvalidArgument(format("{} cannot make {} groups of the {} channels of {}", what, groups,
                                 channels, x.identify()));
  }
  NormShape shape{.groups = groups, .per_row = channels / groups, .channels = true};
  shape.rows = x.shape()[0] * groups;
  shape.spatial = axis_product(x.shape(), 2);
  shape.n = shape.per_row * shape.spatial;
  shape.row_axes = x.ndim();
  return shape;
}

}  // namespace

const char* norm_name(NormKind kind, std::int64_t groups) noexcept {
  if (groups != 0) return groups < 0 ? "instance_norm()" : "group_norm()";
  if (kind == NormKind::rms) return "rms_norm()";
  return kind == NormKind::layer ? "layer_norm()" : "l2_norm()";
}

NormShape norm_shape(const Array& x, const std::optional<Array>& weight,
                     const std::optional<Array>& bias, std::int64_t groups, const char* what) {
  if (x.ndim() == 0)
    throw InvalidArgument(
        format("{} takes arrays of one axis or more, got {}", what, x.identify()));
  NormShape shape;
  Shape wanted;
  if (groups != 0) {
    shape = grouped_shape(x, groups, what);
    wanted = {x.shape()[1]};
  } else {
    const Array* const given = weight ? &*weight : bias ? &*bias : nullptr;
    shape.row_axes = given == nullptr ? 1 : std::clamp(given->ndim(), 1, x.ndim());
    wanted.assign(x.shape().end() - shape.row_axes, x.shape().end());
    shape.n = axis_product(x.shape(), x.ndim() - shape.row_axes);
    shape.rows = shape.n == 0 ? 0 : x.size() / shape.n;
  }
  if (weight) require_affine(x, *weight, wanted, what, "weight");
  if (bias) require_affine(x, *bias, wanted, what, "bias");
  if (weight && bias && weight->type() != bias->type()) {
    throw InvalidArgument(format("{} takes weight and bias of one dtype, got {} and {}", what,
                                 weight->identify(), bias->identify()));
  }
  if (shape.n > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        format("{} takes rows of fewer than 2**31 elements, and those of {} have {}", what,
               x.identify(), shape.n));
  }
  return shape;
}

AffineArguments affine_arguments(const std::optional<Array>& weight,
                                 const std::optional<Array>& bias, const NormShape& shape) {
  return {.weight = weight ? weight->address() : 0,
          .bias = bias ? bias->address() : 0,
          .groups = static_cast<std::int32_t>(shape.groups),
          .per_row = static_cast<std::int32_t>(shape.per_row),
          .spatial = static_cast<std::int32_t>(shape.spatial)};
}

int affine_pack(int pack, const std::optional<Array>& weight, const std::optional<Array>& bias,
                const NormShape& shape) {
  for (const auto* const each : {&weight, &bias}) {
    if (!*each) continue;
    if (shape.channels) {
      while (shape.spatial % pack != 0) pack /= 2;
    } else {
      pack = std::min(pack, common_pack(shape.n, {&**each}, (*each)->ndim()));
    }
  }
  return pack;
}

void use_all_on(const Stream& stream, std::initializer_list<const Array*> arrays,
                std::initializer_list<const std::optional<Array>*> optional_arrays) {
  for (const Array* const each : arrays) each->use_on(stream);
  for (const std::optional<Array>* const each : optional_arrays)
    if (*each) (*each)->use_on(stream);
}

}  // namespace kernwright::kernels
