// Features by compute capability, as NVIDIA's tables give them.
#include "core/capability.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("capabilities: the table from 7.0 to 12.1") {
  struct Row {
    int major, minor;
    bool tensor_cores, bf16, tf32, async_copy, fp8, tma, clusters, wgmma, fp4, tcgen05;
  };
  constexpr bool o = false;
  constexpr bool x = true;
  const Row rows[] = {
      // tensor bf16 tf32 async fp8 tma clusters wgmma fp4 tcgen05
      {6, 1, o, o, o, o, o, o, o, o, o, o},  {7, 0, x, o, o, o, o, o, o, o, o, o},
      {7, 5, x, o, o, o, o, o, o, o, o, o},  {8, 0, x, x, x, x, o, o, o, o, o, o},
      {8, 6, x, x, x, x, o, o, o, o, o, o},  {8, 7, x, x, x, x, o, o, o, o, o, o},
      {8, 9, x, x, x, x, x, o, o, o, o, o},  {9, 0, x, x, x, x, x, x, x, x, o, o},
      {10, 0, x, x, x, x, x, x, x, o, x, x}, {10, 1, x, x, x, x, x, x, x, o, x, x},
      {10, 3, x, x, x, x, x, x, x, o, x, x}, {11, 0, x, x, x, x, x, x, x, o, x, x},
      {12, 0, x, x, x, x, x, x, x, o, x, o}, {12, 1, x, x, x, x, x, x, x, o, x, o},
  };
  for (const Row& row : rows) {
    CAPTURE(row.major);
    CAPTURE(row.minor);
    const Capabilities can = capabilities_of({row.major, row.minor});
    CHECK(can.tensor_cores == row.tensor_cores);
    CHECK(can.bf16 == row.bf16);
    CHECK(can.tf32 == row.tf32);
    CHECK(can.async_copy == row.async_copy);
    CHECK(can.fp8 == row.fp8);
    CHECK(can.tma == row.tma);
    CHECK(can.clusters == row.clusters);
    CHECK(can.wgmma == row.wgmma);
    CHECK(can.fp4 == row.fp4);
    CHECK(can.tcgen05 == row.tcgen05);
  }
}

TEST_CASE("compute capability: its number joins both digits") {
  CHECK(ComputeCapability{8, 0}.number() == 80);
  CHECK(ComputeCapability{12, 1}.number() == 121);
}
