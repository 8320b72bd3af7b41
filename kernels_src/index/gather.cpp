// Reading at positions.
#include "kernels_src/index/gather.h"

#include "core/device.h"
#include "kernels_src/index/indexed_walk.h"

namespace kernwright::kernels {

Array take_at(const Array& x, const IndexedAxes& at, const Stream& stream) {
  Device& device = x.device();
  Array result = Array::empty(device, at.result_shape(x), x.type(), stream);
  if (result.size() == 0) return result;
  IndexedAxes known = at;
  for (Array& index : known.indices) index = as_positions(index, stream);
  IndexedWalk walk = walk_at(x, known);
  if (known.axes.size() > 1) {
    SlotRule rule{.shape = known.common_shape(),
                  .indices = known.indices,
                  .extents = {},
                  .multipliers = {},
                  .base_strides = {},
                  .clamp = true};
    for (const int axis : known.axes) {
      rule.extents.push_back(x.shape()[static_cast<std::size_t>(axis)]);
      rule.multipliers.push_back(x.strides()[static_cast<std::size_t>(axis)]);
    }
    walk.index = positions_to_slots(device, rule, stream);
    walk.offsets = true;
    for (std::size_t d = 0; d < rule.shape.size(); ++d) {
      walk.index_strides[static_cast<std::size_t>(at.position) + d] = walk.index.strides()[d];
    }
  }
  launch_gather(result, x, walk, stream ? stream : Stream::legacy(device));
  return result;
}

Array gather(const Array& x, int axis, const Array& index, const Stream& stream) {
  const IndexedWalk walk = walk_along(x, axis, as_positions(index, stream));
  Device& device = x.device();
  Array result = Array::empty(device, index.shape(), x.type(), stream);
  if (result.size() > 0) launch_gather(result, x, walk, stream ? stream : Stream::legacy(device));
  return result;
}

}  // namespace kernwright::kernels
