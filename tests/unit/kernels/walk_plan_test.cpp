// How dimensions are merged, turned round and ordered; no device is needed.
#include "kernels_src/walk_plan.h"

#include "array/shape.h"
#include "base/errors.h"

#include <doctest/doctest.h>

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
