// im2col copies against lists of pixels made on the host.
#include "unit/sim/device/hopper_runner.h"
#include "unit/sim/exec/copy/tile_kernels.h"

#include <random>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

using Coordinates = std::array<std::int64_t, 5>;

/// A map, and a copy that begins at pixel `first` of the list of all pixels.
struct Columns {
  TensorMapParameters map;
  std::vector<Coordinates> pixels;  ///< of the bounding box, in the order that copies take
  std::size_t first = 0;
  std::int64_t channel = 0;
  std::uint32_t place = 0;  ///< of the tile
  Coordinates offset{};

  std::uint32_t bytes() const { return map.pixels * map.box[0] * tensor_element_bytes(map.type); }
  /// Calls f(byte of the unswizzled tile, byte of the tensor or -1) for each element.
  template <typename F>
  void each(F f) const {
    const std::uint32_t element = tensor_element_bytes(map.type);
    for (std::size_t p = 0; p < map.pixels; ++p) {
      const std::size_t which = first + p;
      for (std::uint32_t c = 0; c < map.box[0]; ++c) {
        std::int64_t byte = (channel + c) * element;
        bool inside = channel + c >= 0 && channel + c < static_cast<std::int64_t>(map.extent[0]) &&
                      which < pixels.size();
        for (std::size_t d = 1; inside && d < static_cast<std::size_t>(map.rank); ++d) {
          const std::int64_t at = pixels[which][d] + offset[d];
          inside = at >= 0 && at < static_cast<std::int64_t>(map.extent[d]);
          byte += at * static_cast<std::int64_t>(map.stride[d]);
        }
        f(static_cast<std::uint32_t>(p * map.box[0] + c) * element, inside ? byte : -1);
      }
    }
  }
  std::vector<std::uint64_t> arguments(std::uint64_t data) const {
    std::vector<std::uint64_t> params{data, place, bytes()};
    for (std::size_t d = 0; d < 5; ++d) {
      const std::int64_t at = d == 0 ? channel : pixels[first][d];
      params.push_back(static_cast<std::uint32_t>(at));
    }
    for (std::size_t d = 1; d < 4; ++d) params.push_back(static_cast<std::uint64_t>(offset[d]));
    return params;
  }
};

/// All starting points of a walk over W, then H, then D, then the images.
std::vector<Coordinates> all_pixels(const TensorMapParameters& map) {
  std::array<std::vector<std::int64_t>, 5> values;
  for (std::size_t d = 1; d < 5; ++d) {
    const bool is_image = d + 1 == static_cast<std::size_t>(map.rank);
    if (d >= static_cast<std::size_t>(map.rank)) {
      values[d] = {0};
    } else {
      const std::int64_t low = is_image ? 0 : map.lower[d - 1];
      const std::int64_t high =
          static_cast<std::int64_t>(map.extent[d]) - 1 + (is_image ? 0 : map.upper[d - 1]);
      for (std::int64_t at = low; at <= high; at += map.step[d]) values[d].push_back(at);
    }
  }
  std::vector<Coordinates> pixels;
  for (const std::int64_t e : values[4])
    for (const std::int64_t d : values[3])
      for (const std::int64_t c : values[2])
        for (const std::int64_t b : values[1]) pixels.push_back({0, b, c, d, e});
  return pixels;
}

Columns make_columns(std::mt19937& random, int rank, int type, int swizzle, bool stores) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Columns columns;
  TensorMapParameters& map = columns.map;
  map.im2col = true;
  map.rank = rank;
  map.type = type;
  map.swizzle = swizzle;
  const std::uint32_t element = tensor_element_bytes(type);
  const std::uint32_t row = swizzle == 0 ? 16u * static_cast<unsigned>(pick(1, 8)) : 16u << swizzle;
  map.box[0] = row / element;
  map.pixels = static_cast<std::uint32_t>(pick(1, static_cast<int>(kTile / 2 / row)));
  map.extent[0] = static_cast<std::uint64_t>(pick(8, 128)) / element + 1;
  map.step[0] = 1;
  std::uint64_t stride = 16 * static_cast<std::uint64_t>(pick(8, 16));
  for (std::size_t d = 1; d < static_cast<std::size_t>(rank); ++d) {
    map.extent[d] = static_cast<std::uint64_t>(pick(3, 6));
    map.stride[d] = stride;
    stride *= map.extent[d];
    map.step[d] = static_cast<std::uint32_t>(pick(1, 3));
    if (d + 1 == static_cast<std::size_t>(rank)) {
      map.step[d] = 1;
      continue;
    }
    map.lower[d - 1] = pick(stores ? 0 : -3, 1);
    map.upper[d - 1] = pick(-1, stores ? 0 : 3);
    if (!stores) columns.offset[d] = pick(0, 4);
  }
  columns.pixels = all_pixels(map);
  columns.first = random() % columns.pixels.size();
  columns.channel = pick(0, 3) == 0 ? pick(stores ? 0 : -1, 5) * 16 / static_cast<int>(element) : 0;
  columns.place = 128u * static_cast<unsigned>(pick(0, 7));
  return columns;
}

/// PTX's figures: within rows of 128 bytes, chunks of 16 are exchanged by the row's number.
std::uint32_t swizzled(std::uint32_t at, int mode) {
  const std::uint32_t row = at / 128, chunk = at / 16 % 8;
  return row * 128 + (chunk ^ row % (1u << mode)) * 16 + at % 16;
}

}  // namespace

TEST_CASE("im2col: loads of every rank, step, offset, swizzle and element size") {
  std::mt19937 random(31);
  for (int round = 0; round < 120; ++round) {
    const int rank = 3 + round % 3, type = std::vector<int>{0, 1, 2, 4, 6, 9}[random() % 6];
    Columns columns = make_columns(random, rank, type, round / 3 % 4, false);
    columns.map.fills_nan = type >= 6 && round % 2 == 0;
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 4 == 0 ? static_cast<std::uint64_t>(round) + 1 : 0;
    const auto tensor = noise(random, 1 << 20);
    columns.map.address = runner.upload(tensor);
    REQUIRE(check_tensor_map(columns.map) == "");
    std::vector<std::uint8_t> expected(kTile, 0xcd);
    const std::uint32_t element = tensor_element_bytes(type);
    columns.each([&](std::uint32_t at, std::int64_t from) {
      const std::uint32_t place = swizzled(columns.place + at, columns.map.swizzle);
      for (std::uint32_t i = 0; i < element; ++i) {
        const std::uint8_t outside = columns.map.fills_nan ? nan_byte(i) : 0;
        expected[place + i] = from < 0 ? outside : tensor[static_cast<std::size_t>(from) + i];
      }
    });
    const std::uint64_t out = runner.upload(std::vector<std::uint8_t>(kTile));
    require_fine(runner.run_with_map(columns.map, load_tile(rank, "im2col"), columns.arguments(out),
                                     kTileShared));
    CHECK(runner.download<std::uint8_t>(out, kTile) == expected);
  }
}

TEST_CASE("im2col: stores and reductions, which have no offsets") {
  std::mt19937 random(77);
  for (int round = 0; round < 60; ++round) {
    const int rank = 3 + round % 3;
    const bool adds = round % 2 == 1;
    const int type = adds ? 2 : std::vector<int>{0, 1, 2, 4}[random() % 4];
    Columns columns = make_columns(random, rank, type, round / 3 % 4, true);
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 4 == 0 ? 3 : 0;
    auto tensor = noise(random, 1 << 20);
    const auto tile = noise(random, kTile);
    columns.map.address = runner.upload(tensor);
    const std::uint64_t in = runner.upload(tile);
    const std::uint32_t element = tensor_element_bytes(type);
    columns.each([&](std::uint32_t at, std::int64_t to) {
      if (to < 0) return;
      const std::uint8_t* from = tile.data() + swizzled(columns.place + at, columns.map.swizzle);
      if (!adds) {
        std::memcpy(tensor.data() + to, from, element);
        return;
      }
      std::uint32_t old = 0, value = 0;
      std::memcpy(&old, tensor.data() + to, 4);
      std::memcpy(&value, from, 4);
      old += value;
      std::memcpy(tensor.data() + to, &old, 4);
    });
    require_fine(runner.run_with_map(columns.map, store_tile(rank, "im2col_no_offs", adds),
                                     columns.arguments(in), kTileShared));
    CHECK(runner.download<std::uint8_t>(columns.map.address, tensor.size()) == tensor);
  }
}

TEST_CASE("im2col: one load for all blocks of a cluster") {
  std::mt19937 random(5);
  Columns columns = make_columns(random, 4, 2, 0, false);
  HopperRunner runner;
  runner.grid = runner.cluster = {2, 1, 1};
  const auto tensor = noise(random, 1 << 20);
  columns.map.address = runner.upload(tensor);
  columns.place = 0;
  std::vector<std::uint8_t> expected(2 * kTile, 0xcd);
  columns.each([&](std::uint32_t at, std::int64_t from) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint8_t value = from < 0 ? 0 : tensor[static_cast<std::size_t>(from) + i];
      expected[at + i] = expected[kTile + at + i] = value;
    }
  });
  const std::uint64_t out = runner.upload(std::vector<std::uint8_t>(2 * kTile));
  require_fine(runner.run_with_map(columns.map,
                                   set_up(4, 2) +
                                       R"(
mov.u32 %r20, %cluster_ctarank;
mul.wide.u32 %d6, %r20, 16384;
add.u64 %d1, %d1, %d6;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r5;
barrier.cluster.arrive;
barrier.cluster.wait;
setp.eq.u32 %p4, %r20, 0;
and.pred %p4, %p4, %p1;
mov.u16 %h5, 3;
@%p4 cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%d4, {%r10, %r11, %r12, %r13}], {%h1, %h2};
@%p4 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes)"
                                       R"(.multicast::cluster
 [%r4], [%d4, {%r10, %r11, %r12, %r13}], [%r2], {%h1, %h2}, %h5;
)" + kWait + kDump + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n",
                                   columns.arguments(out), kTileShared));
  CHECK(runner.download<std::uint8_t>(out, 2 * kTile) == expected);
}

TEST_CASE("im2col: findings, and what is no instruction") {
  std::mt19937 random(8);
  HopperRunner runner;
  Columns columns = make_columns(random, 4, 2, 0, true);
  columns.map.address = runner.allocate(1 << 20);
  const std::uint64_t out = runner.allocate(kTile);
  const auto report = [&](const TensorMapParameters& map, const std::string& copy,
                          std::vector<std::uint64_t> arguments) {
    return runner.run_with_map(map, set_up(4, 2) + "@!%p1 bra END;\n" + copy + "END:\n", arguments,
                               kTileShared);
  };
  CHECK(contains(report(columns.map, tensor_load(4, "tile"), columns.arguments(out)).message,
                 "the tensor map is one for im2col, the instruction is not"));
  TensorMapParameters tiled = columns.map;
  tiled.im2col = false;
  tiled.pixels = 0;
  tiled.lower = tiled.upper = {};
  tiled.box = {4, 1, 1, 1};
  const Fault of_tiled = report(tiled, tensor_load(4, "im2col"), columns.arguments(out));
  CHECK(of_tiled.kind == FaultKind::bounds);
  CHECK(contains(of_tiled.message, "the instruction is one for im2col, the tensor map is not"));
  const std::string store =
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%d4, {%r10, %r11, %r12, %r13}], [%r4];\n";
  const std::string fetch =
      "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%d4, {%r10, %r11, %r12, %r13}], "
      "{%h1, %h2};\n";
  for (const std::string& copy : {tensor_load(4, "im2col"), store, fetch}) {
    for (const int over : {-1, 1}) {
      Columns outside = columns;
      outside.first = 0;
      outside.pixels[0][2] =
          over < 0 ? outside.map.lower[1] - 1
                   : static_cast<std::int64_t>(outside.map.extent[2]) + outside.map.upper[1];
      const Fault found = report(outside.map, copy, outside.arguments(out));
      CHECK(found.kind == FaultKind::bounds);
      CHECK(contains(found.message, "coordinate 2 is " + std::to_string(outside.pixels[0][2]) +
                                        ": an im2col copy begins at a pixel of the map's box"));
    }
  }
  Columns padded = columns;
  padded.map.lower[0] = -1;
  CHECK(contains(report(padded.map, store, padded.arguments(out)).message,
                 "no copy to global memory takes such a map"));
  columns.offset[2] = 256;
  CHECK(contains(report(columns.map, tensor_load(4, "im2col"), columns.arguments(out)).message,
                 "an im2col offset of 256 is not in 0 to 255"));
  for (const char* wrong :
       {"cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%r4], [%d4, {%r10, %r11}], [%r2], {%h1};\n",
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%r4], [%d4, {%r10, %r11, %r12, %r13}], [%r2], {%h1};\n",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%r4], [%d4, {%r10, %r11, %r12}], [%r2], %h1;\n"}) {
    CHECK_THROWS(report(columns.map, wrong, columns.arguments(out)));
  }
}
