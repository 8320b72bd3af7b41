// Values of lanes, copied between strides: each size and mask against a loop over bytes.
#include "sim/exec/copy/strided_copy.h"

#include <doctest/doctest.h>

#include <vector>

using kernwright::sim::copy_lanes;

TEST_CASE("strided copy: the lanes' bytes, and no others") {
  for (const std::size_t bytes : {1u, 2u, 3u, 4u, 8u, 12u, 16u, 40u}) {
    for (const std::uint32_t lanes : {~0u, 0u, 1u, 0x80000000u, 0x00ff00f0u}) {
      for (const std::size_t gap : {0u, 4u}) {
        const std::size_t to_stride = bytes + gap, from_stride = bytes + 2 * gap;
        std::vector<std::byte> from(32 * from_stride), to(32 * to_stride, std::byte{0xee});
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
        std::vector<std::byte> expected = to;
        for (std::size_t lane = 0; lane < 32; ++lane) {
          if ((lanes >> lane & 1) == 0) continue;
          for (std::size_t i = 0; i < bytes; ++i)
            expected[lane * to_stride + i] = from[lane * from_stride + i];
        }
        copy_lanes({to.data(), to_stride}, {from.data(), from_stride}, bytes, lanes);
        CHECK(to == expected);
      }
    }
  }
}
