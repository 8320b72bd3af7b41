// Plans the packs of a dropout.
#include "kernels_src/activations/dropout.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/activations/dropout.cu.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

#include <algorithm>
#include <cmath>

namespace kernwright::kernels {
namespace {

const LazyKernel& dropout_kernel(ScalarType type, int width, const PackGrid& grid) {
  static const auto& family = *new Family("dropout.cu", text::dropout_cu);
  const auto key = InstanceKey().type(type).add(width, 5).add(grid.packs_each, 3).add(grid.wide, 1);
  return family.instance(key, [&] {
    return format("dropout<{}, {}, {}, {}>", device_type(type), width, grid.packs_each,
                  index_type(grid.wide));
  });
}

}  // namespace

Array dropout(const Array& x, double p, const RandomState& state, const Stream& stream) {
  require_floating(x, "dropout", "x");
  if (!(p >= 0 && p <= 1)) {
    throw InvalidArgument(format("dropout: p is {}, and must be a chance from 0 to 1", p));
  }
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const CUdeviceptr counter = state.counter_on(x.device());
  if (p == 0) return copy(x, on);
  Array result = Array::empty(x.device(), x.shape(), x.type(), on);
  if (x.size() == 0) return result;
  if (p == 1) {
    fill(x.device(), result.address(), 0, 1, result.nbytes(), on);
    result.use_on(on);
    return result;
  }
  const Array from = contiguous(x, on);
  const int width = pack_width(x.type(), {from.address(), result.address()});
  const PackGrid grid = pack_grid((x.size() + width - 1) / width, width, on);
  const double steps = std::clamp(std::round(p * 4294967296.0), 1.0, 4294967295.0);
  const auto threshold = static_cast<std::uint32_t>(steps);
  const Kernel& kernel = dropout_kernel(x.type(), width, grid).on(x.device());
  dispatch_index(grid.wide, [&](auto zero) {
    dispatch_compute(x.type(), [&](auto real) {
      const auto scale = static_cast<decltype(real)>(1.0 / (1.0 - p));
      launch(kernel, grid.config, from.address(), result.address(),
             static_cast<decltype(zero)>(x.size()), threshold, scale, state.seed, state.offset,
             counter);
    });
  });
  from.use_on(on);
  state.use_on(on);
  result.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
