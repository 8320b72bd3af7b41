// PoPE and the temperatures of iRoPE.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/reduce/reduce.h"
#include "kernels_src/rope/pope.cu.h"
#include "kernels_src/rope/rope.h"

#include <algorithm>
#include <vector>

namespace kernwright::kernels {
namespace {

const Family& pope_family() {
  static const auto& made = *new Family("pope.cu", text::pope_cu);
  return made;
}

const LazyKernel& pope_kernel(ScalarType type, ScalarType id, bool backward) {
  return pope_family().instance(InstanceKey().add(0, 2).type(type).type(id).add(backward, 5), [&] {
    return format("pope<{}, {}, {}>", device_type(type), device_type(id), backward);
  });
}

const LazyKernel& shifts_kernel(ScalarType type, ScalarType id) {
  return pope_family().instance(InstanceKey().add(2, 2).type(type).type(id).add(0, 5), [&] {
    return format("pope_shifts<{}, {}>", device_type(type), device_type(id));
  });
}

const LazyKernel& scale_kernel(ScalarType type, ScalarType id, int width) {
  return pope_family().instance(InstanceKey().add(1, 2).type(type).type(id).add(width, 5), [&] {
    return format("scale_tokens<{}, {}, {}>", device_type(type), device_type(id), width);
  });
}

void check_pope(const TokenView& x, const CosSin& tables, const std::optional<Array>& shifts,
                const PositionArgument& positions) {
  const Array& cos = tables.cos;
  require_alike(cos, "cos", tables.sin, "sin");
  require_one_device(x.array, "x", cos, "cos");
  if (cos.type() != ScalarType::float32 || cos.ndim() != 2 || cos.shape()[1] != x.dim) {
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: cos and sin are of {}, x is a "
               "{}; tables have shape (positions, head_dim), float32",
               cos.identify(), x.array.identify()));
  }
  if (shifts) {
    require_one_device(x.array, "x", *shifts, "shifts");
    const bool fits = shifts->ndim() >= 1 && shifts->ndim() <= 2 &&
                      shifts->shape().back() == x.dim &&
                      (shifts->ndim() == 1 || shifts->shape()[0] == x.heads);
    if (!fits || shifts->type() != ScalarType::float32) {
      throw InvalidArgument(
          format("Incompatible dimensions or dtypes: shifts is a {}, and must be "
                 "of float32 and shape ({},) or ({}, {})",
                 shifts->identify(), x.dim, x.heads, x.dim));
    }
  }
  if (!positions.ids && x.tokens > 0 &&
      (positions.offset < 0 || positions.offset + x.tokens > cos.shape()[0])) {
    throw InvalidArgument(format("positions {} to {} are outside of tables of {} rows",
                                 positions.offset, positions.offset + x.tokens - 1,
                                 cos.shape()[0]));
  }
}

void check_pope_gradient(const Array& grad, const Array& x) {
  require_one_device(x, "x", grad, "the gradient");
  Shape twice = x.shape();
  twice.back() *= 2;
  if (grad.shape() == twice && grad.type() == x.type()) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: the gradient is a {}, x a {}; "
             "its last axis must have twice the elements",
             grad.identify(), x.identify()));
}

}  // namespace

Array pope(const Array& x, const CosSin& tables, const std::optional<Array>& shifts,
           const std::optional<Array>& grad, const RopeOptions& options, const Stream& stream) {
  require_floating(x, "pope", "x");
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const TokenView from = token_view(x, "x", options.heads_first, on);
  check_pope(from, tables, shifts, options.positions);
  if (grad) check_pope_gradient(*grad, x);
  PositionArgument argument = options.positions;
  const Positions positions = require_positions(argument, from, on);
  const std::int64_t dim = grad ? from.dim : 2 * from.dim;
  const TokenView to = token_result(from, x, options.heads_first, dim, on);
  if (x.size() == 0) return to.array;
  const CosSin angles{contiguous(tables.cos, on), contiguous(tables.sin, on)};
  std::optional<TokenView> above;
  if (grad) above = token_view(*grad, "the gradient", options.heads_first, on);
  std::optional<Array> turned;
  if (shifts) turned = contiguous(*shifts, on);
  const TokenArray array{from.array.address(), to.array.address(), from.strides, to.strides,
                         static_cast<std::int32_t>(from.heads)};
  const TokenGrid grid = token_grid(from.batches * from.tokens, from.heads * from.dim, on);
  launch(pope_kernel(x.type(), position_type(argument), grad.has_value()).on(device), grid.config,
         array, above ? above->array.address() : CUdeviceptr{0},
         above ? above->strides : TokenStrides{}, angles.cos.address(), angles.sin.address(),
         angles.cos.shape()[0], turned ? turned->address() : CUdeviceptr{0},
         static_cast<std::int32_t>(turned && turned->ndim() == 2 ? from.dim : 0), positions,
         static_cast<std::int32_t>(from.dim), grid.tokens_each);
  for (const Array* each : {&from.array, &to.array, &angles.cos, &angles.sin}) each->use_on(on);
  if (above) above->array.use_on(on);
  if (turned) turned->use_on(on);
  if (argument.ids) argument.ids->use_on(on);
  return to.array;
}

Array pope_shifts(const Array& x, const CosSin& tables, const Array& shifts, const Array& grad,
                  const RopeOptions& options, const Stream& stream) {
  require_floating(x, "pope_shifts_backward", "x");
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const TokenView from = token_view(x, "x", options.heads_first, on);
  check_pope(from, tables, shifts, options.positions);
  check_pope_gradient(grad, x);
  PositionArgument argument = options.positions;
  const Positions positions = require_positions(argument, from, on);
  const std::int64_t tokens = from.batches * from.tokens, columns = from.heads * from.dim;
  // At most 1024 chunks, of 64 tokens or more: the order of sums depends on the shape alone.
  const std::int64_t chunk = std::max<std::int64_t>(64, (tokens + 1023) / 1024);
  const std::int64_t chunks = ceil_div(tokens, chunk);
  const Array sums = Array::empty(device, {chunks, from.heads, from.dim}, ScalarType::float32, on);
  if (sums.size() != 0) {
    const CosSin angles{contiguous(tables.cos, on), contiguous(tables.sin, on)};
    const TokenView above = token_view(grad, "the gradient", options.heads_first, on);
    const Array turned = contiguous(shifts, on);
    const TokenArray array{
        from.array.address(), 0, from.strides, {}, static_cast<std::int32_t>(from.heads)};
    const LaunchConfig config{.grid = {static_cast<std::uint32_t>((columns + 255) / 256),
                                       static_cast<std::uint32_t>(chunks)},
                              .block = {256},
                              .stream = on};
    launch(shifts_kernel(x.type(), position_type(argument)).on(device), config, array,
           above.array.address(), above.strides, angles.cos.address(), angles.sin.address(),
           angles.cos.shape()[0], turned.address(),
           static_cast<std::int32_t>(turned.ndim() == 2 ? from.dim : 0), positions,
           static_cast<std::int32_t>(from.dim), chunk, sums.address());
    for (const Array* each : {&from.array, &above.array, &angles.cos, &angles.sin, &turned, &sums})
      each->use_on(on);
    if (argument.ids) argument.ids->use_on(on);
  }
  ReductionCall add;
  add.axes = std::vector<int>{0};
  if (shifts.ndim() == 1) add.axes->push_back(1);
  return reduce(sums, add, on);
}

Array scale_tokens(const Array& x, double floor_scale, double slope, const RopeOptions& options,
                   const Stream& stream) {
  require_floating(x, "attention_temperature", "x");
  if (!(floor_scale > 0)) {
    throw InvalidArgument(format("floor_scale is {}, and must be above 0", floor_scale));
  }
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const TokenView from = token_view(x, "x", options.heads_first, on);
  PositionArgument argument = options.positions;
  const Positions positions = require_positions(argument, from, on);
  const TokenView to = token_result(from, x, options.heads_first, from.dim, on);
  if (x.size() == 0) return to.array;
  const std::uint64_t head_bytes = static_cast<std::uint64_t>(from.dim) * scalar_size(x.type());
  const int width = pack_width(x.type(), {from.bits(), to.bits(), head_bytes});
  const TokenArray array{from.array.address(), to.array.address(), from.strides, to.strides,
                         static_cast<std::int32_t>(from.heads)};
  const TokenGrid grid =
      token_grid(from.batches * from.tokens, from.heads * (from.dim / width), on);
  launch(scale_kernel(x.type(), position_type(argument), width).on(device), grid.config, array,
         positions, floor_scale, slope, static_cast<std::int32_t>(from.dim), grid.tokens_each);
  from.array.use_on(on);
  to.array.use_on(on);
  if (argument.ids) argument.ids->use_on(on);
  return to.array;
}

}  // namespace kernwright::kernels
