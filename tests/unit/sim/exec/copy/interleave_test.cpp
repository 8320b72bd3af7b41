// Copies through maps with an interleave against slices listed on the host, in the layout that an
// H200 was seen to use: NC/8HWC8 for 16 bytes, NC/16HWC16 for 32.
#include "unit/sim/device/hopper_runner.h"
#include "unit/sim/exec/copy/tile_kernels.h"

#include <random>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// A place among the slices: W, (H, (D,)) slice of the channels, image.
using Place = std::array<std::int64_t, 5>;

/// A map, and one copy.
struct Slices {
  TensorMapParameters map;
  Place origin{}, offset{};
  std::uint32_t tile = 0;  ///< where it begins in shared memory
  std::vector<Place> places{};

  std::size_t rank() const { return static_cast<std::size_t>(map.rank); }
  std::int64_t slice() const { return map.interleave == 1 ? 16 : 32; }
  std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(places.size()) * static_cast<std::uint32_t>(slice());
  }
  /// The slice's first byte of the tensor, or -1 where it is outside.
  std::int64_t find(const Place& place) const {
    std::int64_t byte = 0;
    for (std::size_t d = 0; d < rank(); ++d) {
      if (place[d] < 0 || place[d] >= static_cast<std::int64_t>(map.extent[d])) return -1;
      byte += place[d] * (d == 0 ? slice() : static_cast<std::int64_t>(map.stride[d]));
    }
    return byte;
  }
  /// Calls f(byte of shared memory, byte of the tensor or -1) for every 16 bytes.
  template <typename F>
  void each(F f) const {
    std::uint32_t at = tile;
    for (const Place& place : places) {
      const std::int64_t byte = find(place);
      for (std::int64_t part = 0; part < slice(); part += 16, at += 16) {
        const std::uint32_t row = at / 128, chunk = at / 16 % 8;
        f(row * 128 + (chunk ^ row % (1u << map.swizzle)) * 16, byte < 0 ? -1 : byte + part);
      }
    }
  }
  std::vector<std::uint64_t> arguments(std::uint64_t data) const {
    std::vector<std::uint64_t> params{data, tile, bytes()};
    for (const std::int64_t at : origin) params.push_back(static_cast<std::uint32_t>(at));
    for (std::size_t d = 0; d < 3; ++d) params.push_back(static_cast<std::uint64_t>(offset[d]));
    return params;
  }
};

/// Every step-th place of the box, of the one slice of the channels that the copy names.
void list_box(Slices& copy) {
  std::array<std::vector<std::int64_t>, 5> along;
  for (std::size_t d = 0; d < 5; ++d) {
    if (d >= copy.rank() || d == copy.rank() - 2) {
      along[d] = {copy.origin[d]};
      continue;
    }
    for (std::uint32_t i = 0; i < copy.map.box[d]; i += copy.map.step[d])
      along[d].push_back(copy.origin[d] + i);
  }
  for (const std::int64_t e : along[4])
    for (const std::int64_t d : along[3])
      for (const std::int64_t c : along[2])
        for (const std::int64_t b : along[1])
          for (const std::int64_t a : along[0]) copy.places.push_back({a, b, c, d, e});
}

/// Pixels from the origin on: W first, then H, then D, then the next image.
void list_pixels(Slices& copy) {
  const TensorMapParameters& map = copy.map;
  const std::size_t images = copy.rank() - 1, channels = images - 1;
  Place at = copy.origin;
  for (std::uint32_t p = 0; p < map.pixels; ++p) {
    Place seen = at;
    for (std::size_t d = 0; d < channels; ++d) seen[d] += copy.offset[d];
    copy.places.push_back(seen);
    std::size_t d = 0;
    for (; d < channels; ++d) {
      at[d] += map.step[d];
      if (at[d] < static_cast<std::int64_t>(map.extent[d]) + map.upper[d]) break;
      at[d] = map.lower[d];
    }
    if (d == channels) at[images] += map.step[images];
  }
}

Slices make_slices(std::mt19937& random, int round, int type, bool stores) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Slices copy;
  TensorMapParameters& map = copy.map;
  map.rank = 3 + round % 3;
  map.type = type;
  map.interleave = 1 + round / 3 % 2;
  map.im2col = round / 6 % 2 == 1;
  map.swizzle = map.interleave == 2 ? 1 : pick(0, 3);
  const std::size_t images = copy.rank() - 1, channels = images - 1;
  const auto slice = static_cast<std::uint64_t>(copy.slice());
  const std::uint32_t element = tensor_element_bytes(type);
  std::uint64_t stride = slice;
  for (std::size_t d = 0; d < copy.rank(); ++d) {
    map.extent[d] = static_cast<std::uint64_t>(pick(2, 6));
    if (d > 0) map.stride[d] = stride;
    stride = (stride + slice * static_cast<unsigned>(pick(0, 2))) * map.extent[d];
    map.step[d] = static_cast<std::uint32_t>(pick(1, 3));
    map.box[d] = static_cast<std::uint32_t>(d == channels ? pick(1, 4) : pick(1, 3));
    copy.origin[d] = pick(stores ? 0 : -2, 5);
  }
  map.box[0] = 16 / element * static_cast<unsigned>(pick(1, element == 8 ? 4 : 1));
  copy.tile = 128u * static_cast<unsigned>(pick(0, 7));
  if (!map.im2col) {
    list_box(copy);
    return copy;
  }
  map.box = {static_cast<std::uint32_t>(slice) / element};
  map.pixels = static_cast<std::uint32_t>(pick(1, 120));
  for (std::size_t d = 0; d < channels; ++d) {
    map.lower[d] = pick(stores ? 0 : -2, 1);
    map.upper[d] = pick(0, stores ? 0 : 2);
    if (!stores) copy.offset[d] = pick(0, 4);
    const int most = static_cast<int>(map.extent[d]) - 1 + map.upper[d];
    copy.origin[d] = pick(map.lower[d], most);
  }
  copy.origin[images] = pick(0, static_cast<int>(map.extent[images]) - 1);
  list_pixels(copy);
  return copy;
}

}  // namespace

TEST_CASE("interleaved copies: loads of every rank, slice, swizzle and element size") {
  std::mt19937 random(61);
  for (int round = 0; round < 180; ++round) {
    const int type = std::vector<int>{0, 1, 2, 4, 6, 7}[random() % 6];
    Slices copy = make_slices(random, round, type, false);
    copy.map.fills_nan = type >= 6 && round % 2 == 0;
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 4 == 0 ? static_cast<std::uint64_t>(round) + 1 : 0;
    const auto tensor = noise(random, 1 << 21);
    copy.map.address = runner.upload(tensor);
    REQUIRE(check_tensor_map(copy.map) == "");
    REQUIRE(tensor_box_bytes(copy.map) == copy.bytes());
    std::vector<std::uint8_t> expected(kTile, 0xcd);
    copy.each([&](std::uint32_t place, std::int64_t from) {
      for (std::uint32_t i = 0; i < 16; ++i) {
        const std::uint8_t outside = copy.map.fills_nan ? nan_byte(i) : 0;
        expected[place + i] = from < 0 ? outside : tensor[static_cast<std::size_t>(from) + i];
      }
    });
    const std::uint64_t out = runner.upload(std::vector<std::uint8_t>(kTile));
    require_fine(runner.run_with_map(copy.map,
                                     load_tile(copy.map.rank, copy.map.im2col ? "im2col" : "tile"),
                                     copy.arguments(out), kTileShared));
    CHECK(runner.download<std::uint8_t>(out, kTile) == expected);
  }
}

TEST_CASE("interleaved copies: stores and reductions leave what lies outside alone") {
  std::mt19937 random(67);
  for (int round = 0; round < 90; ++round) {
    const bool adds = round % 2 == 1;
    const int type = adds ? 2 : std::vector<int>{0, 1, 2, 4}[random() % 4];
    Slices copy = make_slices(random, round, type, true);
    CAPTURE(round);
    HopperRunner runner;
    runner.seed = round % 4 == 0 ? 3 : 0;
    auto tensor = noise(random, 1 << 21);
    const auto tile = noise(random, kTile);
    copy.map.address = runner.upload(tensor);
    const std::uint64_t in = runner.upload(tile);
    copy.each([&](std::uint32_t place, std::int64_t to) {
      for (std::uint32_t i = 0; to >= 0 && i < 16; i += 4) {
        std::uint32_t old = 0, value = 0;
        std::memcpy(&old, tensor.data() + to + i, 4);
        std::memcpy(&value, tile.data() + place + i, 4);
        if (adds) value += old;
        std::memcpy(tensor.data() + to + i, &value, 4);
      }
    });
    const std::string mode = copy.map.im2col ? "im2col_no_offs" : "tile";
    require_fine(runner.run_with_map(copy.map, store_tile(copy.map.rank, mode, adds),
                                     copy.arguments(in), kTileShared));
    CHECK(runner.download<std::uint8_t>(copy.map.address, tensor.size()) == tensor);
  }
}

TEST_CASE("interleaved copies: findings name the coordinates as the instruction has them") {
  std::mt19937 random(71);
  HopperRunner runner;
  const std::uint64_t out = runner.allocate(kTile), tensor = runner.allocate(1 << 20);
  const auto report = [&](const Slices& copy, const std::string& instruction) {
    const int rank = copy.map.rank;
    return runner.run_with_map(
        copy.map, set_up(rank, rank - 2) + "@!%p1 bra END;\n" + instruction + "\nEND:\n",
        copy.arguments(out), kTileShared);
  };
  Slices tiled = make_slices(random, 1, 2, true);  // rank 4
  tiled.map.address = tensor;
  const std::string store =
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%d4, {%r10, %r11, %r12, %r13}], "
      "[%r4];";
  for (std::size_t d = 0; d < 4; ++d) {
    Slices outside = tiled;
    outside.origin[d] = -1;
    const Fault found = report(outside, store);
    CHECK(found.kind == FaultKind::bounds);
    CHECK(contains(found.message, "coordinate " + std::to_string(d) + " is -1: copies to global"));
  }
  Slices columns = make_slices(random, 7, 2, true);
  columns.map.address = tensor;
  REQUIRE(columns.map.im2col);
  for (std::size_t d = 0; d < 2; ++d) {
    Slices outside = columns;
    outside.origin[d] = static_cast<std::int64_t>(outside.map.extent[d]);
    const Fault found = report(outside, tensor_load(4, "im2col"));
    CHECK(found.kind == FaultKind::bounds);
    CHECK(contains(found.message, "coordinate " + std::to_string(d) + " is " +
                                      std::to_string(outside.origin[d]) +
                                      ": an im2col copy begins at a pixel of the map's box"));
  }
  Slices padded = columns;
  padded.map.upper[1] = 1;
  CHECK(contains(report(padded,
                        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
                        "[%d4, {%r10, %r11, %r12, %r13}], [%r4];")
                     .message,
                 "in dimension 1, reaches over the tensor's"));
  Slices freed = tiled;  // the last slice lies behind the allocation
  freed.map.address = tensor + (1 << 20) - 16;
  freed.origin = {1, 0, 0, 0, 0};
  const Fault found = report(freed, tensor_load(4, "tile"));
  CHECK(found.kind == FaultKind::bounds);
  CHECK(contains(found.message, "out of bounds"));
}
