// How dimensions are merged, turned round and ordered; no device is needed.
#include "kernels_src/walk_plan.h"

#include "array/shape.h"
#include "base/errors.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace kernwright;
using kernels::plan_strided;
using Dims = kernels::WalkDims<2>;
using Plan = kernels::WalkPlan<2>;

namespace {

Plan plan(const Shape& shape, const Shape& to, const Shape& from, std::int64_t inner = 1) {
  return plan_strided(1000, to, 2000, from, shape, inner);
}

}  // namespace

TEST_CASE("strided plan: row-major on both sides is one dimension") {
  const Plan merged = plan({2, 3, 4}, {48, 16, 4}, {48, 16, 4}, 4);
  CHECK(merged.dims == Dims{{96, 1, 1}});
  CHECK(merged.count() == 96);
}

TEST_CASE("strided plan: a gap keeps dimensions apart") {
  CHECK(plan({2, 3}, {12, 4}, {16, 4}, 4).dims == Dims{{12, 1, 1}, {2, 12, 16}});
  CHECK(plan({2, 3}, {12, 4}, {24, 8}).dims == Dims{{6, 4, 8}});
}

TEST_CASE("strided plan: extents of 1 and no dimensions at all leave nothing") {
  CHECK(plan({1, 1}, {0, 7}, {3, 0}).dims.empty());
  CHECK(plan({}, {}, {}).dims.empty());
  CHECK(plan({}, {}, {}).count() == 1);
  CHECK(plan({1, 5}, {0, 4}, {99, 8}).dims == Dims{{5, 4, 8}});
}

TEST_CASE("strided plan: the target is walked upwards") {
  const Plan turned = plan({5}, {-4}, {8});
  CHECK(turned.base[kernels::kTo] == 1000 - 16);
  CHECK(turned.base[kernels::kFrom] == 2000 + 32);
  CHECK(turned.dims == Dims{{5, 4, -8}});
  // Reversed on both sides is not reversed at all.
  const Plan both = plan({5}, {-4}, {-4}, 4);
  CHECK(both.dims == Dims{{20, 1, 1}});
  CHECK(both.base[kernels::kFrom] == 2000 - 16);
}

TEST_CASE("strided plan: neighbouring threads write neighbouring elements") {
  CHECK(plan({2, 3}, {4, 8}, {12, 4}).dims == Dims{{2, 4, 12}, {3, 8, 4}});
}

TEST_CASE("strided plan: a source may repeat elements, a target may not") {
  CHECK(plan({4, 3}, {12, 4}, {0, 4}).dims == Dims{{3, 4, 4}, {4, 12, 0}});
  CHECK(plan({4, 3}, {12, 4}, {0, 0}).dims == Dims{{12, 4, 0}});
  CHECK_THROWS_AS(plan({4, 3}, {0, 4}, {12, 4}), InvalidArgument);
}

TEST_CASE("pack: neighbours become one element, and an extent of 1 goes") {
  Dims dims = {{8, 1, 1}, {3, 16, 32}};
  kernels::pack_dims(dims, 4);
  CHECK(dims == Dims{{2, 4, 4}, {3, 16, 32}});
  kernels::pack_dims(dims, 2);
  CHECK(dims == Dims{{3, 16, 32}});
}

TEST_CASE("fast divisor: each quotient is that of a division") {
  constexpr std::uint32_t kLast = 0x7FFFFFFF;  // numbers are below 2^31
  std::vector<std::uint64_t> divisors;
  for (std::uint64_t divisor = 1; divisor <= 2000; ++divisor) divisors.push_back(divisor);
  for (int power = 11; power <= 31; ++power) {
    const std::uint64_t whole = std::uint64_t{1} << power;
    for (const std::uint64_t divisor : {whole - 1, whole, whole + 1, whole * 2 / 3}) {
      if (divisor <= std::uint64_t{kLast} + 1) divisors.push_back(divisor);
    }
  }
  std::size_t wrong = 0;
  for (const std::uint64_t divisor : divisors) {
    const auto fast = kernels::FastDivisor::make(divisor);
    const auto check = [&](std::uint64_t i) {
      if (i > kLast) return;
      wrong += fast.divide(static_cast<std::uint32_t>(i)) == i / divisor ? 0 : 1;
    };
    for (std::uint64_t i = 0; i < 100; ++i) check(i), check(kLast - i);
    // Quotients change at the multiples.
    const std::uint64_t most = kLast / divisor, step = most / 100 + 1;
    for (std::uint64_t n = 0; n <= most; n += step) {
      for (const std::uint64_t multiple : {n * divisor, (most - n) * divisor}) {
        check(multiple - (multiple == 0 ? 0 : 1)), check(multiple), check(multiple + 1);
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("walk parameter: every extent has its divisor, 1 among them") {
  const auto walk = kernels::walk_parameter(Dims{{1, 4, 8}, {5, 8, 16}, {1, 0, 0}});
  CHECK(walk.ndim == 3);
  CHECK(walk.magic[0] == 1U << 31);
  CHECK(walk.shift[0] == 0);
  CHECK(walk.magic[1] == kernels::FastDivisor::make(5).magic);
  CHECK(walk.shift[1] == 3);
}
