// Fused queries, keys and values.
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/rope/qkv.cu.h"
#include "kernels_src/rope/rope.h"

namespace kernwright::kernels {
namespace {

const LazyKernel& split_kernel(ScalarType type, int width, bool merge) {
  static const auto& family = *new Family("qkv.cu", text::qkv_cu);
  return family.instance(InstanceKey().type(type).add(width, 5).add(merge, 1), [&] {
    return format("split_heads<{}, {}, {}>", device_type(type), width, merge);
  });
}

TokenArray token_part(const TokenView& view) {
  return {view.array.address(), view.array.address(), view.strides, view.strides,
          static_cast<std::int32_t>(view.heads)};
}

void launch_split(const RowView& rows, const TokenView& q, const TokenView& k, const TokenView& v,
                  bool merge, const Stream& on) {
  const Array& array = rows.array;
  const std::int64_t step = rows.rows > 1 ? rows.stride : 0;
  const std::uint64_t bits = static_cast<std::uint64_t>(q.dim | step) * scalar_size(array.type());
  const int width = pack_width(array.type(), {array.address(), bits, q.bits(), k.bits(), v.bits()});
  const std::int64_t items = (q.heads + k.heads + v.heads) * (q.dim / width);
  if (rows.rows == 0 || items == 0) return;
  const TokenGrid grid = token_grid(rows.rows, items, on);
  const Positions positions{0, 0, 0, static_cast<std::uint32_t>(q.batches),
                            static_cast<std::uint32_t>(q.tokens)};
  launch(split_kernel(array.type(), width, merge).on(array.device()), grid.config, array.address(),
         rows.stride, token_part(q), token_part(k), token_part(v), positions,
         static_cast<std::int32_t>(q.dim), grid.tokens_each);
  for (const Array* each : {&array, &q.array, &k.array, &v.array}) each->use_on(on);
}

/// The shape of a part: that of the rows with the last axis as heads of `dim` elements.
Shape part_shape(const Array& qkv, std::int64_t heads, std::int64_t dim, bool heads_first) {
  Shape shape(qkv.shape().begin(), qkv.shape().end() - 1);
  if (heads_first) {
    shape.insert(shape.end() - 1, heads);
  } else {
    shape.push_back(heads);
  }
  shape.push_back(dim);
  return shape;
}

}  // namespace

SplitHeads split_qkv(const Array& qkv, std::int64_t heads, std::int64_t kv_heads, bool heads_first,
                     const Stream& stream) {
  require_floating(qkv, "split_qkv", "qkv");
  const bool fits = (qkv.ndim() == 2 || qkv.ndim() == 3) && heads > 0 && kv_heads > 0 &&
                    qkv.shape().back() % (heads + 2 * kv_heads) == 0;
  if (!fits) {
    throw InvalidArgument(
        format("Incompatible dimensions: qkv is a {}, and must have the axes "
               "(batch, tokens, (heads + 2 kv_heads) head_dim) for {} heads and "
               "{} kv_heads; the batch may be missing",
               qkv.identify(), heads, kv_heads));
  }
  Device& device = qkv.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t dim = qkv.shape().back() / (heads + 2 * kv_heads);
  const auto part = [&](std::int64_t count) {
    return Array::empty(device, part_shape(qkv, count, dim, heads_first), qkv.type(), on);
  };
  SplitHeads made{part(heads), part(kv_heads), part(kv_heads)};
  launch_split(row_view(qkv, on), token_view(made.q, "q", heads_first, on),
               token_view(made.k, "k", heads_first, on), token_view(made.v, "v", heads_first, on),
               false, on);
  return made;
}

Array merge_qkv(const Array& q, const Array& k, const Array& v, bool heads_first,
                const Stream& stream) {
  require_floating(q, "merge_qkv", "q");
  require_one_device(q, "q", k, "k");
  require_alike(k, "k", v, "v");
  Device& device = q.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const TokenView from_q = token_view(q, "q", heads_first, on);
  const TokenView from_k = token_view(k, "k", heads_first, on);
  const TokenView from_v = token_view(v, "v", heads_first, on);
  if (from_q.batches != from_k.batches || from_q.tokens != from_k.tokens ||
      from_q.dim != from_k.dim || q.ndim() != k.ndim() || q.type() != k.type()) {
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: q is a {}, k a {}; they must "
               "differ in their heads alone",
               q.identify(), k.identify()));
  }
  Shape shape = {from_q.tokens, (from_q.heads + 2 * from_k.heads) * from_q.dim};
  if (q.ndim() == 4) shape.insert(shape.begin(), from_q.batches);
  Array made = Array::empty(device, std::move(shape), q.type(), on);
  launch_split(row_view(made, on), from_q, from_k, from_v, true, on);
  return made;
}

}  // namespace kernwright::kernels
