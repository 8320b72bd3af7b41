// Tiles: valid ones, their loads and their shared memory.
#include "kernels_src/gemm/gemm_tile.h"

#include "base/errors.h"

#include <doctest/doctest.h>

using namespace kernwright::kernels;

TEST_CASE(
    "all tiles of the lists are taken, and those of three groups up to 96 accumulators and one "
    "box") {
  for (const bool promotes : {false, true}) {
    for (const bool scales : {false, promotes}) {
      for (const GemmTile& tile : gemm_tiles(promotes, scales)) {
        CHECK_NOTHROW(require_gemm_tile(tile, promotes, scales));
      }
    }
  }
  for (const GemmTile& tile : split_k_tiles()) {
    CHECK(tile.split_k);
    CHECK_NOTHROW(require_gemm_tile(tile));
    CHECK_NOTHROW(require_gemm_tile(tile, true));
  }
  for (const GemmTile& tile : split_k_tiles(true)) {
    CHECK(tile.split_k);
    CHECK_NOTHROW(require_gemm_tile(tile, true, true));
  }
  const GemmTile three{192, 192, 4, 3, false, 1};
  CHECK(three.threads() == 512);
  CHECK(three.shared_bytes(true) - three.shared_bytes(false) == 12 * 2048);
  const GemmTile two{128, 192, 4, 2, false, 1};
  CHECK(two.shared_bytes(true) - two.shared_bytes(false) == 8 * 2 * 2048);
  CHECK(two.shared_bytes(true, true) - two.shared_bytes(false, true) == 8 * 3 * 2048);
  for (const GemmTile& wrong : {GemmTile{192, 224, 3, 3, false, 1},
                                {192, 192, 5, 3, false, 1},
                                {192, 128, 4, 3, true, 1},
                                {256, 64, 4, 3, false, 1}}) {
    CHECK_THROWS_AS(require_gemm_tile(wrong), kernwright::ArgumentError);
  }
}

TEST_CASE("high tiles of a cluster lie beside each other and share a, others b") {
  const GemmTile high{128, 64, 8, 2, false, 2}, wide{64, 96, 8, 1, false, 2};
  CHECK(high.cluster_rows() == 128);
  CHECK(high.cluster_columns() == 128);
  CHECK(high.a_tma_lines(true) == 64);
  CHECK(high.b_tma_lines(true, false) == 64);
  CHECK(wide.cluster_rows() == 128);
  CHECK(wide.cluster_columns() == 96);
  CHECK(wide.a_tma_lines(true) == 64);
  CHECK(wide.b_tma_lines(true, false) == 48);
  const GemmTile split{128, 64, 7, 2, false, 3, true};
  CHECK(split.cluster_rows() == 128);
  CHECK(split.cluster_columns() == 64);
  // A block ends the tiles of at most 3 of 8 warps, whose accumulators come from two other blocks.
  CHECK(split.received_bytes() == 2 * 3 * 16 * 64 * 4);
}
