// Turns q and k in one launch.
#include "kernels_src/rope/rope.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/result_target.h"
#include "kernels_src/rope/rope.cu.h"

#include <algorithm>
#include <numeric>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kRopeHeads = 4;  ///< kHeads of rope.cu

/// RopeTables of rope.cu.
struct RopeTables {
  CUdeviceptr cos, sin;
  std::int64_t rows;
  std::int32_t half;
};

const LazyKernel& rope_kernel(ScalarType type, ScalarType id, int width, bool interleaved) {
  static const auto& family = *new Family("rope.cu", text::rope_cu);
  const auto key = InstanceKey().type(type).type(id).add(width, 5).add(interleaved, 1);
  return family.instance(key, [&] {
    return format("rotate<{}, {}, {}, {}>", device_type(type), device_type(id), width, interleaved);
  });
}

void check_rope(const TokenView& q, const std::optional<TokenView>& k, const CosSin& tables,
                const RopeOptions& options) {
  const Array &cos = tables.cos, &sin = tables.sin;
  require_alike(cos, "cos", sin, "sin");
  require_one_device(q.array, "q", cos, "cos");
  if (cos.type() != ScalarType::float32 || cos.ndim() != 2 || 2 * cos.shape()[1] > q.dim) {
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: cos and sin are of {}, q is a "
               "{}; tables have shape (positions, pairs that turn), float32",
               cos.identify(), q.array.identify()));
  }
  if (k && (k->batches != q.batches || k->tokens != q.tokens || k->dim != q.dim ||
            k->array.type() != q.array.type() || &k->array.device() != &q.array.device())) {
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: q is a {}, k a {}; they must "
               "differ in their heads alone and be on the same device",
               q.array.identify(), k->array.identify()));
  }
  const std::int64_t offset = options.positions.offset, rows = cos.shape()[0];
  if (!options.positions.ids && q.tokens > 0 && (offset < 0 || offset + q.tokens > rows)) {
    throw InvalidArgument(format("positions {} to {} are outside of tables of {} rows", offset,
                                 offset + q.tokens - 1, rows));
  }
}

/// The tables, whole and at a multiple of 16 bytes.
Array aligned_table(const Array& table, const Stream& on) {
  return table.is_contiguous() && table.address() % 16 == 0 ? table : copy(table, on);
}

/// An array of the caller for turned heads. It may be the array `source`, and lies apart from the
/// others.
struct RopeTarget {
  const std::optional<Array>& out;
  const char* name;
  OtherArray source;
  std::initializer_list<OtherArray> others;
};

/// The target of the turned heads.
TokenView rope_target(const TokenView& view, const Array& array, const RopeOptions& options,
                      const RopeTarget& target, const Stream& on) {
  if (target.out) {
    const ResultForm form{"rope", array.device(), array.shape(), array.type(), target.name};
    result_array(target.out, form, on);
    require_apart_or_same(target.out, form, {target.source});
    require_apart(target.out, form, target.others);
    return token_target(*target.out, "rope", target.name, options.heads_first);
  }
  if (!options.in_place) return token_result(view, array, options.heads_first, view.dim, on);
  if (array.read_only() || view.array.address() != array.address()) {
    throw InvalidArgument(
        format("rope in place: {} is {}", array.identify(),
               array.read_only() ? "read-only" : "not contiguous in its last axis"));
  }
  return view;
}

TokenArray token_array(const TokenView& from, const TokenView& to) {
  return {from.array.address(), to.array.address(), from.strides, to.strides,
          static_cast<std::int32_t>(from.heads)};
}

void check_rope_targets(const RopeOptions& options, bool has_k) {
  if ((options.q_out || options.k_out) && (options.in_place || (options.k_out && !has_k))) {
    throw ArgumentError(options.in_place ? "rope: inplace and out exclude each other"
                                         : "rope: out has an array for k, and k is None");
  }
}

/// Pairs that a thread takes at once: accesses of 16 bytes where all addresses allow them.
int pairs_at_once(ScalarType type, std::uint64_t bits, std::int64_t half, std::int64_t rest,
                  bool interleaved) {
  int width = pack_width(type, {bits});
  if (interleaved) width = std::max(1, width / 2);
  while (width > 1 && (half % width != 0 || rest % width != 0)) width /= 2;
  return width;
}

}  // namespace

Rotated rope(const Array& q, const std::optional<Array>& k, const CosSin& tables,
             const RopeOptions& options, const Stream& stream) {
  require_floating(q, "rope", "q");
  Device& device = q.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const TokenView from_q = token_view(q, "q", options.heads_first, on);
  std::optional<TokenView> from_k, to_k;
  if (k) from_k = token_view(*k, "k", options.heads_first, on);
  check_rope(from_q, from_k, tables, options);
  PositionArgument argument = options.positions;
  const Positions positions = require_positions(argument, from_q, on);
  check_rope_targets(options, k.has_value());
  const Array* const ids = pointer_or_null(options.positions.ids);
  const TokenView to_q = rope_target(from_q, q, options,
                                     {options.q_out,
                                      "out",
                                      {"q", &q},
                                      {{"k", pointer_or_null(k)},
                                       {"cos", &tables.cos},
                                       {"sin", &tables.sin},
                                       {"positions", ids},
                                       {"the out of k", pointer_or_null(options.k_out)}}},
                                     on);
  if (k) {
    to_k =
        rope_target(*from_k, *k, options,
                    {options.k_out,
                     "the out of k",
                     {"k", &*k},
                     {{"q", &q}, {"cos", &tables.cos}, {"sin", &tables.sin}, {"positions", ids}}},
                    on);
  }
  Rotated made{to_q.array, std::nullopt};
  if (k) made.k = to_k->array;
  const std::int64_t heads = from_q.heads + (k ? from_k->heads : 0);
  const std::int64_t tokens = from_q.batches * from_q.tokens;
  if (tokens * heads * from_q.dim == 0) return made;
  const CosSin angles{aligned_table(tables.cos, on), aligned_table(tables.sin, on)};
  const std::int64_t half = angles.cos.shape()[1], rest = from_q.dim - 2 * half;
  std::uint64_t bits = from_q.bits() | to_q.bits();
  if (k) bits |= from_k->bits() | to_k->bits();
  const int width = pairs_at_once(q.type(), bits, half, rest, options.interleaved);
  const auto rest_packs = static_cast<std::int32_t>(options.in_place ? 0 : rest / width);
  const std::int64_t items = (half / width + rest_packs) * ceil_div(heads, kRopeHeads);
  if (items > 0) {
    const TokenGrid grid = token_grid(tokens, items, on);
    launch(rope_kernel(q.type(), position_type(argument), width, options.interleaved).on(device),
           grid.config, token_array(from_q, to_q), k ? token_array(*from_k, *to_k) : TokenArray{},
           RopeTables{angles.cos.address(), angles.sin.address(), angles.cos.shape()[0],
                      static_cast<std::int32_t>(half)},
           positions, rest_packs, grid.tokens_each, options.inverse ? -1.0f : 1.0f);
  }
  for (const Array* each : {&from_q.array, &to_q.array, &angles.cos, &angles.sin}) each->use_on(on);
  if (k) from_k->array.use_on(on);
  if (k) to_k->array.use_on(on);
  if (argument.ids) argument.ids->use_on(on);
  return made;
}

}  // namespace kernwright::kernels
