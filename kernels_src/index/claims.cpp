// A word of 64 bits for each place, then a walk over the places.
#include "kernels_src/index/claims.h"

#include "base/format.h"
#include "core/device.h"
#include "kernels_src/axes.h"
#include "kernels_src/family.h"
#include "kernels_src/index/claims.cu.h"
#include "kernels_src/walk_plan.h"
#include "memory/transfer.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <string>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kClaimThreads = 256;
/// Threads take four elements each.
constexpr std::int64_t kClaimTile = 4 * kClaimThreads;

const char* bits_type(std::size_t size) {
  return size == 1 ? "UInt8" : size == 2 ? "UInt16" : "UInt32";
}

const LazyKernel& claim_kernel(bool writes, std::size_t size, bool wide) {
  static const auto& family = *new Family("claims.cu", text::claims_cu);
  const auto key = InstanceKey().add(writes, 1).add(std::countr_zero(size), 2).add(wide, 1);
  return family.instance(key, [&] {
    return writes ? format("write_claims<{}, {}>", bits_type(size), wide ? "UInt64" : "UInt32")
                  : format("claim_places<{}, {}>", wide ? "Int64" : "Int32", bits_type(size));
  });
}

LaunchConfig over_claims(std::int64_t count, const Stream& on) {
  return {.grid = {walk_blocks(count, kClaimTile)}, .block = {kClaimThreads}, .stream = on};
}

}  // namespace

bool can_claim(const Array& x, const Array& values) {
  return scalar_size(x.type()) <= 4 && values.is_contiguous() &&
         values.size() < std::numeric_limits<std::uint32_t>::max();
}

void put_claims(const Array& x, const std::vector<int>& axes, const Array& values,
                const Array& positions, const Stream& on) {
  Device& device = x.device();
  const std::size_t size = scalar_size(x.type());
  const std::int64_t places = x.size();
  const Array claims = Array::empty(device, {places}, ScalarType::uint64, on);
  fill(device, claims.address(), 0, 8, static_cast<std::size_t>(places), on);
  const bool wide_positions = positions.type() != ScalarType::int32;
  launch(claim_kernel(false, size, wide_positions).on(device), over_claims(values.size(), on),
         positions.address(), values.address(), claims.address(), places, values.size());
  WalkPlan<2> plan{.base = {x.address(), claims.address()}, .dims = {}};
  std::int64_t step = 8;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes[k]);
    plan.add(x.shape()[axis], {x.strides()[axis], step});
    step *= x.shape()[axis];
  }
  plan.for_each_part([&](const WalkPlan<2>& part) {
    const std::int64_t count = part.count();
    const bool wide = is_wide(count);
    const Kernel& kernel = claim_kernel(true, size, wide).on(device);
    const auto send = [&](auto units) {
      launch(kernel, over_claims(count, on), part.base[0], part.base[1], part.parameter(), units);
    };
    wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  });
  for (const Array* const used : {&x, &values, &positions, &claims}) used->use_on(on);
}

}  // namespace kernwright::kernels
