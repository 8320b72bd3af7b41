// The number of blocks in a slice.
#include "jit/slice/slice_plan.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <limits>

using namespace kernwright;

namespace {

SliceRequest request(std::uint64_t blocks, double launch_us, double latency_us, int resident = 1) {
  return {.blocks = blocks,
          .launch_us = launch_us,
          .latency_us = latency_us,
          .multiprocessors = 132,
          .resident_blocks = resident};
}

}  // namespace

TEST_CASE("slice plan: slices are whole rounds over the multiprocessors") {
  // 26 slices of 79 blocks would leave multiprocessors idle.
  CHECK(slice_blocks(request(2048, 1000, 50)) == 132);
  // 13 slices of 1008 blocks: seven rounds.
  CHECK(slice_blocks(request(13104, 1000, 100)) == 7 * 132);
  CHECK(slice_blocks(request(13104, 1000, 100, 4)) == 4 * 132);
  CHECK(slice_blocks(request(13104, 1000, 100, 16)) == 7 * 132);
}

TEST_CASE("slice plan: a launch stays whole if it is short or does not fill the device") {
  CHECK(slice_blocks(request(132, 1000, 10)) == 132);
  CHECK(slice_blocks(request(1, 1000, 10)) == 1);
  CHECK(slice_blocks(request(5000, 10, 50)) == 5000);
  CHECK(slice_blocks(request(140, 1000, 600)) == 132);
}

TEST_CASE("slice plan: as many rounds with the fewest blocks at once") {
  CHECK(even_round(2048, 132, 1) == 128);  // sixteen rounds
  CHECK(even_round(2048, 124, 1) == 121);  // seventeen
  CHECK(even_round(2048, 124, 2) == 122);
  CHECK(even_round(2048, 124, 8) == 124);  // 128 are too many
  CHECK(even_round(100, 132, 2) == 100);
  CHECK(even_round(1, 1, 1) == 1);
}

TEST_CASE("slice plan: numbers that are not above 0 are refused") {
  CHECK_THROWS_AS(slice_blocks(request(0, 1, 1)), InvalidArgument);
  CHECK_THROWS_AS(slice_blocks(request(1, 0, 1)), InvalidArgument);
  CHECK_THROWS_AS(slice_blocks(request(1, 1, -1)), InvalidArgument);
  CHECK_THROWS_AS(slice_blocks(request(1, 1, std::numeric_limits<double>::quiet_NaN())),
                  InvalidArgument);
  CHECK_THROWS_AS(slice_blocks(request(1, std::numeric_limits<double>::infinity(), 1)),
                  InvalidArgument);
  CHECK_THROWS_AS(slice_blocks(request(1, 1, 1, 0)), InvalidArgument);
}
