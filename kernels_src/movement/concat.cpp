// Concatenation by one copy for each array, into a part of the result.
#include "kernels_src/movement/concat.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"

namespace kernwright::kernels {

Array concat(const std::vector<Array>& arrays, int axis, const Stream& stream) {
  if (arrays.empty()) throw InvalidArgument("there is no array to join");
  const Array& first = arrays.front();
  if (first.ndim() == 0) {
    throw InvalidArgument(
        format("{} has no axis to join along: reshape(1) it first", first.identify()));
  }
  const auto along = static_cast<std::size_t>(normalize_axis(axis, first.ndim()));
  Shape shape = first.shape();
  shape[along] = 0;
  for (const Array& each : arrays) {
    if (&each.device() != &first.device()) {
      throw InvalidArgument(
          format("arrays must be on the same device: {} and {}; copy one with "
                 ".to(device)",
                 first.identify(), each.identify()));
    }
    Shape other = each.shape();
    if (other.size() == shape.size()) other[along] = shape[along];
    if (other != shape || each.type() != first.type()) {
      throw InvalidArgument(
          format("Incompatible dimensions: {} and {} cannot be joined along axis "
                 "{}: types and all other extents must be the same",
                 first.identify(), each.identify(), along));
    }
    shape[along] += each.shape()[along];
  }
  Array result = Array::empty(first.device(), std::move(shape), first.type(), stream);
  std::int64_t start = 0;
  for (const Array& each : arrays) {
    const std::int64_t extent = each.shape()[along];
    if (each.size() > 0) {
      copy_elements(result.slice(static_cast<int>(along), start, extent, 1), each, stream);
    }
    start += extent;
  }
  return result;
}

}  // namespace kernwright::kernels
