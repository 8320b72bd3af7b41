// Checks and launches of permute.cu.
#include "kernels_src/experts/permute.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/experts/permute.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostPermutedExperts = 2048;
constexpr std::int64_t kMostPairs = 1 << 30;
constexpr std::int64_t kBlockPairs = 4096, kMostPairBlocks = 512;
constexpr std::int64_t kPermuteThreads = 256, kPermuteWarps = 8;

/// As the kernel has it.
struct ExpertPairs {
  CUdeviceptr experts;
  std::int32_t count, kinds, each;
};

const Family& permute_family() {
  static const auto& family = *new Family("permute.cu", text::permute_cu);
  return family;
}
const LazyKernel& pairs_kernel(bool places) {
  return permute_family().instance(InstanceKey().add(places, 2), [&] {
    return std::string(places ? "place_pairs<int>" : "count_pairs<int>");
  });
}
const LazyKernel& spread_kernel(int bytes) {
  return permute_family().instance(InstanceKey().add(2, 2).add(bytes, 5), [&] {
    const char* unit = bytes == 16  ? "Unit16"
                       : bytes == 8 ? "unsigned long long"
                       : bytes == 4 ? "unsigned int"
                       : bytes == 2 ? "unsigned short"
                                    : "unsigned char";
    return format("spread_rows<{}>", unit);
  });
}
const LazyKernel& gather_sums_kernel(ScalarType type, int width) {
  return permute_family().instance(InstanceKey().add(3, 2).type(type).add(width, 5), [&] {
    return format("gather_sums<{}, {}>", device_type(type), width);
  });
}

/// A block for each token, more along the columns.
LaunchConfig token_grid(const Device& device, std::int64_t tokens, std::int64_t packs,
                        const Stream& on) {
  const std::int64_t parts = std::clamp<std::int64_t>(ceil_div(packs, kPermuteThreads), 1, 1024);
  return {.grid = {static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(parts)},
          .block = {kPermuteThreads},
          .stream = on,
          .programmatic_dependent = overlaps_launches(device, tokens * parts)};
}

void require_pairs(const Array& pairs, const char* name, std::int64_t tokens) {
  if (pairs.type() != ScalarType::int32 && pairs.type() != ScalarType::int64) {
    throw ArgumentError(format("{} are int32 or int64, not {}", name, pairs.identify()));
  }
  if (pairs.ndim() != 2 || (tokens >= 0 && pairs.shape()[0] != tokens)) {
    throw InvalidArgument(format("Incompatible dimensions: {} are (tokens, k), {}not {}", name,
                                 tokens >= 0 ? format("of {} tokens, ", tokens) : "",
                                 pairs.identify()));
  }
  if (pairs.size() > kMostPairs) {
    throw InvalidArgument(format("{} are at most 2^30, not {}", name, pairs.identify()));
  }
}

/// Pairs of a block, and the blocks: one for few pairs, at most kMostPairBlocks, as each reads the
/// counts of all.
std::pair<std::int64_t, std::int64_t> block_shares(std::int64_t count) {
  const auto whole = [](std::int64_t pairs) {
    return ceil_div(pairs, kPermuteThreads) * kPermuteThreads;
  };
  if (count <= kBlockPairs) return {whole(count), 1};
  const std::int64_t share = ceil_div(count, kMostPairBlocks);
  const std::int64_t each = std::max(kBlockPairs, whole(share));
  return {each, ceil_div(count, each)};
}

/// Offsets, positions and sources.
void sort_pairs(const Array& experts, const Permuted& result, const Stream& on) {
  Device& device = experts.device();
  const auto count = static_cast<std::int32_t>(experts.size());
  const auto kinds = static_cast<std::int32_t>(result.offsets.size());
  const auto [each, blocks] = block_shares(count);
  const ExpertPairs pairs{experts.address(), count, kinds, static_cast<std::int32_t>(each)};
  LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                      .block = {kPermuteThreads},
                      .shared_bytes = static_cast<std::uint32_t>(kPermuteWarps * kinds * 4),
                      .stream = on,
                      .programmatic_dependent = overlaps_launches(device, blocks)};
  CUdeviceptr counts = 0;
  Array table;
  if (blocks > 1) {
    table = Array::empty(device, {blocks, kinds}, ScalarType::int32, on);
    counts = table.address();
    launch(pairs_kernel(false).on(device), config, pairs, counts);
  }
  config.shared_bytes += static_cast<std::uint32_t>(kinds * 4);
  launch(pairs_kernel(true).on(device), config, pairs, counts, result.offsets.address(),
         result.positions.address(), result.sources.address());
  if (counts != 0) table.use_on(on);
}

/// The rows of x where their pairs are.
void spread_tokens(const Array& x, const Permuted& result, const Stream& on) {
  const RowView view = row_view(x, on);
  const auto item = static_cast<std::int64_t>(scalar_size(x.type()));
  const std::int64_t line = view.cols * item, stride = view.stride * item;
  const auto bits = view.array.address() | result.rows.address() |
                    static_cast<std::uint64_t>(line) | static_cast<std::uint64_t>(stride) | 16u;
  const std::int64_t unit = std::int64_t{1} << std::countr_zero(bits);
  const auto chosen = static_cast<std::int32_t>(result.positions.shape()[1]);
  const auto pairs = static_cast<std::int32_t>(result.sources.size());
  const CUdeviceptr end =
      result.offsets.address() + static_cast<CUdeviceptr>(result.offsets.size() - 1) * 4;
  launch(spread_kernel(static_cast<int>(unit)).on(x.device()),
         token_grid(x.device(), view.rows, line / unit, on), view.array.address(),
         result.rows.address(), result.positions.address(), end, pairs, chosen, stride / unit,
         static_cast<std::int32_t>(line / unit));
  view.array.use_on(on);
}

}  // namespace

Permuted permute(const Array& x, const Array& experts, std::int64_t expert_count,
                 const Stream& stream) {
  require_one_device(x, "x", experts, "experts");
  if (x.ndim() != 2) {
    throw InvalidArgument(format("x is (tokens, columns), not {}", x.identify()));
  }
  require_pairs(experts, "experts", x.shape()[0]);
  if (expert_count < 1 || expert_count > kMostPermutedExperts || x.shape()[1] > INT32_MAX) {
    throw InvalidArgument(
        format("permute() sorts by 1 to {} experts, not {}, rows of at most "
               "2^31 - 1 elements: {}",
               kMostPermutedExperts, expert_count, x.identify()));
  }
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t pairs = experts.size();
  const Permuted result{Array::empty(device, {pairs, x.shape()[1]}, x.type(), on),
                        Array::empty(device, {expert_count + 1}, ScalarType::int32, on),
                        Array::empty(device, experts.shape(), ScalarType::int32, on),
                        Array::empty(device, {pairs}, ScalarType::int32, on)};
  const Array numbers = as_int32(experts, on);
  sort_pairs(numbers, result, on);
  if (result.rows.size() > 0) spread_tokens(x, result, on);
  for (const Array* each :
       {&numbers, &result.rows, &result.offsets, &result.positions, &result.sources}) {
    each->use_on(on);
  }
  return result;
}

Array unpermute(const Array& rows, const Array& positions, const std::optional<Array>& weights,
                const std::optional<Array>& out, const Stream& stream) {
  require_floating(rows, "unpermute", "rows");
  require_one_device(rows, "rows", positions, "positions");
  if (rows.ndim() != 2 || rows.shape()[0] > INT32_MAX || rows.shape()[1] > INT32_MAX) {
    throw InvalidArgument(format("rows have two dimensions, not {}", rows.identify()));
  }
  require_pairs(positions, "positions", -1);
  if (weights) {
    require_one_device(*weights, "weights", rows, "rows");
    require_floating(*weights, "unpermute", "weights");
    if (weights->shape() != positions.shape()) {
      throw InvalidArgument(format("Incompatible dimensions: weights are {}, positions {}",
                                   weights->identify(), positions.identify()));
    }
  }
  Device& device = rows.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t tokens = positions.shape()[0], columns = rows.shape()[1];
  const Shape shape = {tokens, columns};
  const ResultForm form{"unpermute", device, shape, rows.type()};
  const std::optional<Array> target = direct_target(out, form, on);
  require_apart(
      out, form,
      {{"rows", &rows}, {"positions", &positions}, {"weights", pointer_or_null(weights)}});
  const Array result = target ? *target : Array::empty(device, shape, rows.type(), on);
  if (result.size() == 0) return deliver(out, result, on);
  const RowView view = row_view(rows, on);
  const Array places = as_int32(positions, on);
  std::optional<Array> factors;
  if (weights) {
    factors = weights->type() == ScalarType::float32 ? contiguous(*weights, on)
                                                     : cast(*weights, ScalarType::float32, on);
  }
  const auto item = static_cast<std::uint64_t>(scalar_size(rows.type()));
  const int width =
      pack_width(rows.type(), {view.array.address(), static_cast<std::uint64_t>(view.stride) * item,
                               static_cast<std::uint64_t>(columns) * item});
  launch(gather_sums_kernel(rows.type(), width).on(device),
         token_grid(rows.device(), tokens, columns / width, on), view.array.address(),
         places.address(), factors ? factors->address() : CUdeviceptr{0}, result.address(),
         static_cast<std::int32_t>(rows.shape()[0]),
         static_cast<std::int32_t>(positions.shape()[1]), view.stride,
         static_cast<std::int32_t>(columns));
  view.array.use_on(on);
  places.use_on(on);
  if (factors) factors->use_on(on);
  result.use_on(on);
  return deliver(out, result, on);
}

}  // namespace kernwright::kernels
