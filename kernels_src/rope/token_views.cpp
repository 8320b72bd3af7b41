// Strides of tokens and heads, position ids.
#include "kernels_src/rope/token_views.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/operands.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kTokenThreads = 256;

TokenView make_token_view(const Array& array, bool heads_first) {
  const Array whole = array.ndim() == 3 ? array.insert_axis(0) : array;
  const Shape &shape = whole.shape(), &strides = whole.strides();
  const std::size_t token = heads_first ? 2 : 1, head = heads_first ? 1 : 2;
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  return {array,       shape[0], shape[token],
          shape[head], shape[3], {strides[0] / size, strides[token] / size, strides[head] / size}};
}

bool has_even_heads(const Array& array) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  if (array.shape().back() > 1 && array.strides().back() != size) return false;
  return std::all_of(array.strides().begin(), array.strides().end(),
                     [&](std::int64_t stride) { return stride % size == 0; });
}

}  // namespace

std::uint64_t TokenView::bits() const {
  const std::int64_t all = (batches > 1 ? strides.batch : 0) | (tokens > 1 ? strides.token : 0) |
                           (heads > 1 ? strides.head : 0);
  return static_cast<std::uint64_t>(all) * scalar_size(array.type()) | array.address();
}

TokenView token_view(const Array& array, const char* name, bool heads_first, const Stream& stream) {
  if (array.ndim() != 3 && array.ndim() != 4) {
    throw InvalidArgument(
        format("Incompatible dimensions: {} is a {}, and must have the axes "
               "({}), the batch may be missing",
               name, array.identify(),
               heads_first ? "batch, heads, tokens, head_dim" : "batch, tokens, heads, head_dim"));
  }
  return make_token_view(has_even_heads(array) ? array : copy(array, stream), heads_first);
}

TokenView token_target(const Array& array, const char* function, const char* name,
                       bool heads_first) {
  if (has_even_heads(array)) return make_token_view(array, heads_first);
  throw InvalidArgument(
      format("{} cannot write to {}, a {}: the elements of a head must lie side by side", function,
             name, array.identify()));
}

TokenView token_result(const TokenView& like, const Array& array, bool heads_first,
                       std::int64_t dim, const Stream& stream) {
  Shape shape = array.shape();
  shape.back() = dim;
  return make_token_view(Array::empty(like.array.device(), std::move(shape), array.type(), stream),
                         heads_first);
}

ScalarType position_type(const PositionArgument& argument) {
  return argument.ids ? argument.ids->type() : ScalarType::int64;
}

Positions require_positions(PositionArgument& argument, const TokenView& view,
                            const Stream& stream) {
  Positions made{0, 0, argument.offset, static_cast<std::uint32_t>(view.batches),
                 static_cast<std::uint32_t>(view.tokens)};
  if (!argument.ids) return made;
  const Array& ids = *argument.ids;
  require_one_device(view.array, "the array", ids, "positions");
  if (ids.type() != ScalarType::int32 && ids.type() != ScalarType::int64) {
    throw ArgumentError(format("positions is a {}, and must be of int32 or int64", ids.identify()));
  }
  const bool each = ids.ndim() == 2;
  const bool fits = (ids.ndim() == 1 || (each && ids.shape()[0] == view.batches)) &&
                    ids.shape().back() == view.tokens;
  if (!fits) {
    throw InvalidArgument(
        format("Incompatible dimensions: positions is a {}, and must have shape "
               "({},) or ({}, {})",
               ids.identify(), view.tokens, view.batches, view.tokens));
  }
  argument.ids = contiguous(ids, stream);
  made.ids = argument.ids->address();
  made.batch_stride = each ? view.tokens : 0;
  return made;
}

TokenGrid token_grid(std::int64_t tokens, std::int64_t items, const Stream& stream) {
  TokenGrid grid;
  const std::int64_t each =
      std::max<std::int64_t>(1, kTokenThreads / std::max<std::int64_t>(1, items));
  grid.tokens_each = static_cast<std::uint32_t>(each);
  grid.config.grid = {static_cast<std::uint32_t>(ceil_div(tokens, each))};
  grid.config.block = {static_cast<std::uint32_t>(kTokenThreads)};
  grid.config.stream = stream;
  return grid;
}

}  // namespace kernwright::kernels
