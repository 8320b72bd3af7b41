// Tensor copies against a walk over the tensor's elements on the host.
#include "unit/sim/device/hopper_runner.h"
#include "unit/sim/exec/copy/tile_kernels.h"

#include <random>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

struct Copy {
  TensorMapParameters map;
  std::uint32_t offset = 0;  ///< of the tile
  std::array<std::int32_t, 5> origin{};
};

/// Where byte `at` of the tile lies: PTX's swizzle figures, as tables of 16-byte chunks.
std::uint32_t swizzle_place(std::uint32_t at, int mode) {
  static const int kRows[4][8][8] = {{{0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {0, 1, 2, 3, 4, 5, 6, 7}},
                                     {{0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6}},
                                     {{0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {2, 3, 0, 1, 6, 7, 4, 5},
                                      {3, 2, 1, 0, 7, 6, 5, 4},
                                      {0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {2, 3, 0, 1, 6, 7, 4, 5},
                                      {3, 2, 1, 0, 7, 6, 5, 4}},
                                     {{0, 1, 2, 3, 4, 5, 6, 7},
                                      {1, 0, 3, 2, 5, 4, 7, 6},
                                      {2, 3, 0, 1, 6, 7, 4, 5},
                                      {3, 2, 1, 0, 7, 6, 5, 4},
                                      {4, 5, 6, 7, 0, 1, 2, 3},
                                      {5, 4, 7, 6, 1, 0, 3, 2},
                                      {6, 7, 4, 5, 2, 3, 0, 1},
                                      {7, 6, 5, 4, 3, 2, 1, 0}}};
  const std::uint32_t row = at / 128 % 8, chunk = at / 16 % 8;
  return at / 128 * 128 + static_cast<std::uint32_t>(kRows[mode][row][chunk]) * 16 + at % 16;
}

/// Calls f(place in shared memory, byte of the tensor or -1) for each element of the box.
template <typename F>
std::uint32_t walk(const Copy& copy, F f) {
  const TensorMapParameters& map = copy.map;
  const std::uint32_t element = tensor_element_bytes(map.type);
  std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1}, index{};
  std::uint32_t total = 1;
  for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
    const std::uint32_t step = d == 0 ? 1 : map.step[d];
    count[d] = (map.box[d] + step - 1) / step;
    total *= count[d];
  }
  for (std::uint32_t n = 0; n < total; ++n) {
    std::int64_t byte = 0;
    bool inside = true;
    for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
      const std::int64_t step = d == 0 ? 1 : map.step[d];
      const std::int64_t at = copy.origin[d] + std::int64_t{index[d]} * step;
      inside = inside && at >= 0 && at < static_cast<std::int64_t>(map.extent[d]);
      byte += at * static_cast<std::int64_t>(d == 0 ? element : map.stride[d]);
    }
    f(swizzle_place(copy.offset + n * element, map.swizzle), inside ? byte : -1);
    for (std::size_t d = 0; d < 5 && ++index[d] == count[d]; ++d) index[d] = 0;
  }
  return total * element;
}

std::vector<std::uint64_t> arguments(std::uint64_t data, const Copy& copy, std::uint32_t bytes) {
  std::vector<std::uint64_t> params{data, copy.offset, bytes};
  for (int i = 0; i < copy.map.rank; ++i)
    params.push_back(static_cast<std::uint32_t>(copy.origin[static_cast<std::size_t>(i)]));
  return params;
}

/// A map, and a box somewhere near it, or where `inside` one that begins inside.
Copy make_copy(std::mt19937& random, int rank, int type, int swizzle, bool inside = false) {
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random()) % (high - low + 1);
  };
  Copy copy;
  TensorMapParameters& map = copy.map;
  map.rank = rank;
  map.type = type;
  map.swizzle = swizzle;
  const std::uint32_t element = tensor_element_bytes(type);
  const std::uint32_t row = swizzle == 0 ? 16 * pick(1, 8) : 16u << swizzle;
  std::uint64_t stride = 16 * pick(8, 16);
  std::uint32_t room = kTile / 2 / row;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
    map.box[d] = d == 0 ? row / element : std::min(pick(1, 6), std::max(room, 1u));
    map.step[d] = d == 0 ? 1 : pick(1, 3);
    map.extent[d] = d == 0 ? pick(8, 128) / element + 1 : pick(1, 7);
    if (d > 0) {
      map.stride[d] = stride;
      stride *= map.extent[d];
      room /= map.box[d];
    }
    copy.origin[d] = static_cast<std::int32_t>(pick(inside ? 4 : 0, 9)) - 4;
    if (d == 0) copy.origin[d] *= static_cast<std::int32_t>(pick(0, 1) * 16 / element);
  }
  copy.offset = 128 * pick(0, 7);
  return copy;
}

}  // namespace

TEST_CASE("tensor copies: loads of every rank, swizzle and element size, in and out of bounds") {
  std::mt19937 random(12);
  for (int round = 0; round < 120; ++round) {
    const int rank = round % 5 + 1, type = std::vector<int>{0, 1, 2, 4, 6, 7}[random() % 6];
    Copy copy = make_copy(random, rank, type, round / 5 % 4);
    copy.map.fills_nan = type >= 6 && round % 2 == 0;
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 3 == 0 ? static_cast<std::uint64_t>(round) + 1 : 0;
    std::vector<std::uint8_t> tensor(1 << 20);
    for (auto& byte : tensor) byte = static_cast<std::uint8_t>(random());
    copy.map.address = runner.upload(tensor);
    REQUIRE(check_tensor_map(copy.map) == "");
    std::vector<std::uint8_t> expected(kTile, 0xcd);
    const std::uint32_t element = tensor_element_bytes(type);
    const std::uint32_t bytes = walk(copy, [&](std::uint32_t place, std::int64_t from) {
      for (std::uint32_t i = 0; i < element; ++i) {
        const std::uint8_t outside = copy.map.fills_nan ? nan_byte(i) : 0;
        expected[place + i] = from < 0 ? outside : tensor[static_cast<std::size_t>(from) + i];
      }
    });
    const std::uint64_t out = runner.upload(std::vector<std::uint8_t>(kTile));
    require_fine(runner.run_with_map(copy.map, load_tile(rank, "tile"), arguments(out, copy, bytes),
                                     kTileShared));
    CHECK(runner.download<std::uint8_t>(out, kTile) == expected);
  }
}

TEST_CASE("tensor copies: stores and reductions leave what lies outside alone") {
  std::mt19937 random(99);
  for (int round = 0; round < 60; ++round) {
    const int rank = round % 5 + 1;
    const bool adds = round % 3 == 2;
    const int type = adds ? 2 : std::vector<int>{0, 1, 2, 4}[random() % 4];
    Copy copy = make_copy(random, rank, type, round / 5 % 4, true);
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 2 == 0 ? 3 : 0;
    std::vector<std::uint8_t> tensor(1 << 20), tile(kTile);
    for (auto& byte : tensor) byte = static_cast<std::uint8_t>(random());
    for (auto& byte : tile) byte = static_cast<std::uint8_t>(random());
    copy.map.address = runner.upload(tensor);
    const std::uint64_t in = runner.upload(tile);
    const std::uint32_t element = tensor_element_bytes(type);
    walk(copy, [&](std::uint32_t place, std::int64_t to) {
      if (to < 0) return;
      auto* at = tensor.data() + to;
      if (!adds) {
        std::memcpy(at, tile.data() + place, element);
        return;
      }
      std::uint32_t old = 0, value = 0;
      std::memcpy(&old, at, 4);
      std::memcpy(&value, tile.data() + place, 4);
      old += value;
      std::memcpy(at, &old, 4);
    });
    require_fine(runner.run_with_map(copy.map, store_tile(rank, "tile", adds),
                                     arguments(in, copy, 0), kTileShared));
    CHECK(runner.download<std::uint8_t>(copy.map.address, tensor.size()) == tensor);
  }
}

TEST_CASE("tensor copies: one load for all blocks of a cluster") {
  HopperRunner runner;
  runner.grid = runner.cluster = {2, 1, 1};
  std::vector<std::uint32_t> tensor(64 * 64);
  for (std::uint32_t i = 0; i < tensor.size(); ++i) tensor[i] = i;
  TensorMapParameters map;
  map.rank = 2;
  map.type = 2;
  map.address = runner.upload(tensor);
  map.extent = {64, 64};
  map.stride = {0, 256};
  map.box = {32, 8};
  map.step = {1, 1};
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(2 * 256));
  require_fine(runner.run_with_map(map, set_up(2) + R"(
mov.u32 %r20, %cluster_ctarank;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r5;
barrier.cluster.arrive;
barrier.cluster.wait;
setp.eq.u32 %p4, %r20, 0;
and.pred %p4, %p4, %p1;
mov.u16 %h1, 3;
prefetch.param.tensormap [map];
@%p4 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d4, {%r10, %r11}];
@%p4 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
 [%r4], [%d4, {%r10, %r11}], [%r2], %h1;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
mul.wide.u32 %d6, %r20, 1024;
add.u64 %d1, %d1, %d6;
mov.u32 %r6, %r0;
DUMP:
mad.lo.u32 %r7, %r6, 4, %r1;
mad.wide.u32 %d5, %r6, 4, %d1;
ld.shared.u32 %r8, [%r7];
st.global.u32 [%d5], %r8;
add.u32 %r6, %r6, 32;
setp.lt.u32 %p3, %r6, 256;
@%p3 bra DUMP;
barrier.cluster.arrive;
barrier.cluster.wait;
)",
                                   {out, 0, 1024, 16, 3}, kTileShared));
  const auto got = runner.download<std::uint32_t>(out, 512);
  for (std::uint32_t i = 0; i < 512; ++i) CHECK(got[i] == (3 + i % 256 / 32) * 64 + 16 + i % 32);
}

TEST_CASE("tensor copies: findings") {
  HopperRunner runner;
  TensorMapParameters map;
  map.rank = 2;
  map.type = 7;
  map.address = runner.allocate(4096);
  map.extent = {32, 32};
  map.stride = {0, 128};
  map.box = {16, 4};
  map.step = {1, 1};
  const std::uint64_t out = runner.allocate(64);
  const auto finding = [&](const TensorMapParameters& used, const std::string& copy, FaultKind kind,
                           const std::string& part, std::uint64_t offset = 0) {
    const Fault report =
        runner.run_with_map(used, set_up(2) + "@!%p1 bra END;\n" + copy + "\nEND:\n",
                            {out, offset, 0, 0, 0}, kTileShared);
    INFO(report.to_string());
    CHECK(report.kind == kind);
    CHECK(contains(report.message, part));
  };
  const std::string load =
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes [%r4], [%d4, {%r10, %r11}], [%r2];";
  finding(map, load, FaultKind::alignment, "multiple of 128", 64);
  const std::string store =
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d4, {%r10, %r11}], [%r4];";
  const std::string add =
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d4, {%r10, %r11}], "
      "[%r4];";
  const std::string fetch = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d4, {%r10, %r11}];";
  for (const std::string& copy : {load, store, add, fetch}) {
    finding(map, "mov.s32 %r10, 3;\n" + copy, FaultKind::alignment,
            "coordinate 0 is 3: a copy begins 12 bytes");
    finding(map, "mov.s32 %r10, 33;\n" + copy, FaultKind::alignment,
            "coordinate 0 is 33: a copy begins 132");
    finding(map, "mov.s32 %r10, 64;\n" + copy, FaultKind::none, "");
  }
  for (const std::string& copy : {store, add}) {
    finding(map, "mov.s32 %r10, -4;\n" + copy, FaultKind::bounds, "coordinate 0 is -4: copies to");
    finding(map, "mov.s32 %r11, -1;\n" + copy, FaultKind::bounds, "coordinate 1 is -1: copies to");
  }
  finding(map, "mov.s32 %r11, -1;\n" + fetch, FaultKind::none, "");
  finding(map,
          "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%r4], [%d4, {%r10, %r11, %r11}], [%r2];",
          FaultKind::bounds, "has rank 2");
  finding(map, "add.u64 %d4, %d4, 8;\n" + load, FaultKind::alignment, "multiple of 64");
  finding(map, "mov.u64 %d4, %d1;\n" + load, FaultKind::bounds, "out of bounds");
  TensorMapParameters freed = map;
  freed.address = 16;
  finding(freed, load, FaultKind::bounds, "null pointer");
  TensorMapParameters large = map;
  large.extent[1] = 64;
  large.box[1] = 64;
  finding(large, load, FaultKind::bounds, "out of bounds");
  HopperRunner zeros;
  const Fault report =
      zeros.launch(HopperRunner::module_text(set_up(2) + "@!%p1 bra END;\n" + load + "\nEND:\n", 5,
                                             true, kTileShared),
                   std::vector<std::byte>(128 + 40));
  CHECK(report.kind == FaultKind::bounds);
  CHECK(contains(report.message, "no tensor map"));
}
