// The occupancy model against the published limits of compute capability 8.0 and 9.0, case by case.
#include "sim/device/launch/occupancy_model.h"

#include "sim/device/profile.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright::sim;

TEST_CASE("occupancy model: the smallest of four limits counts") {
  struct Row {
    int threads, registers;
    std::size_t shared;
    int blocks;
    const char* why;
  };
  std::vector<Row> rows = {
      {1, 16, 0, 32, "block limit"},
      {32, 16, 0, 32, "block limit"},
      {64, 16, 0, 32, "64 warps in blocks of two"},
      {65, 16, 0, 21, "three warps a block: 64 / 3"},
      {96, 16, 0, 21, "64 / 3"},
      {256, 32, 0, 8, "threads: 2048 / 256"},
      {256, 33, 0, 6, "40 registers after rounding: 48 warps"},
      {256, 40, 0, 6, "65536 / 4 / 1280 = 12 warps a quarter, 48 / 8"},
      {256, 64, 0, 4, "8 warps a quarter, 32 / 8"},
      {256, 65, 0, 3, "72 registers: 7 a quarter, 28 / 8"},
      {256, 128, 0, 2, "4 a quarter, 16 / 8"},
      {256, 255, 0, 1, "2 a quarter, 8 / 8"},
      {512, 255, 0, 0, "8 warps fit, the block has 16"},
      {1024, 64, 0, 1, "32 warps"},
      {1024, 65, 0, 0, "28 warps fit, the block has 32"},
      {128, 16, 1024, 16, "threads: 2048 / 128"},
      {0, 16, 0, 0, "no threads"},
      {1056, 16, 0, 1, "65536 registers would do; the device refuses the size elsewhere"},
  };
  const std::vector<Row> of_80 = {
      {128, 16, 9216, 16, "10240 with the reserve: 167936 / 10240 = 16"},
      {128, 16, 9344, 16, "10368: 16.2"},
      {128, 16, 9472, 16, "10496: exactly 16"},
      {128, 16, 9473, 15, "10624 after rounding: 15.8"},
      {128, 16, 49152, 3, "50176: 3.3"},
      {128, 16, 166912, 1, "everything"},
      {128, 16, 167937, 0, "more than there is"},
  };
  const std::vector<Row> of_90 = {
      {128, 16, 13568, 16, "14592 with the reserve: 233472 / 14592 = 16"},
      {128, 16, 13569, 15, "14720 after rounding: 15.9"},
      {128, 16, 49152, 4, "50176: 4.7"},
      {128, 16, 166912, 1, "167936: 1.4"},
      {128, 16, 232448, 1, "everything"},
      {128, 16, 233473, 0, "more than there is"},
  };
  const std::vector<Row>& own = device_profile().is_90 ? of_90 : of_80;
  rows.insert(rows.end(), own.begin(), own.end());
  for (const Row& row : rows) {
    INFO(row.threads, " threads, ", row.registers, " registers, ", row.shared, " bytes: ", row.why);
    CHECK(resident_blocks({.block_threads = row.threads,
                           .registers = row.registers,
                           .static_shared = row.shared / 2,
                           .dynamic_shared = row.shared - row.shared / 2}) == row.blocks);
  }
}

TEST_CASE("occupancy model: the largest block that registers allow") {
  CHECK(max_block_threads(0) == 1024);
  CHECK(max_block_threads(32) == 1024);
  CHECK(max_block_threads(64) == 1024);
  CHECK(max_block_threads(65) == 896);
  CHECK(max_block_threads(128) == 512);
  CHECK(max_block_threads(255) == 256);
}

TEST_CASE("occupancy model: available dynamic shared memory keeps the number of blocks") {
  for (int blocks = 1; blocks <= 32; ++blocks) {
    const std::size_t available = available_dynamic_shared(blocks, 512);
    const BlockResources request{
        .block_threads = 32, .registers = 16, .static_shared = 512, .dynamic_shared = available};
    INFO(blocks);
    CHECK(resident_blocks(request) >= blocks);
    BlockResources more = request;
    more.dynamic_shared += 128;
    if (blocks > 1) CHECK(resident_blocks(more) < blocks);
  }
  CHECK(available_dynamic_shared(0, 0) == 0);
  CHECK(available_dynamic_shared(33, 0) == 0);
  CHECK(available_dynamic_shared(32, 100000) == 0);
}
