// Descriptors of tensor copies: fields, and the way back.
#include "sim/tensor_map.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

TensorMapParameters plain() {
  TensorMapParameters map;
  map.address = 0x7f1234567800;
  map.rank = 3;
  map.type = 9;  // bfloat16
  map.extent = {1000, 200, 30};
  map.stride = {0, 2000 * 16, std::uint64_t{3} << 36};
  map.box = {64, 256, 3};
  map.step = {1, 2, 8};
  map.swizzle = 3;
  return map;
}

std::uint32_t word(const std::array<std::byte, kTensorMapBytes>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("tensor map: fields stand where tensormap.replace writes them") {
  const auto bytes = encode_tensor_map(plain());
  CHECK(word(bytes, 0x00) == 0x34567800);
  CHECK(word(bytes, 0x04) == 0x7f12);
  CHECK((word(bytes, 0x08) & 0x70) == 2 << 4);
  CHECK((word(bytes, 0x08) & 0x780) == 10 << 7);
  CHECK((word(bytes, 0x08) & 0x1800) == 0);
  CHECK((word(bytes, 0x08) & 0x6000) == 3 << 13);
  CHECK((word(bytes, 0x08) & 0x8000) == 0);
  CHECK(word(bytes, 0x0c) == 2000);
  CHECK(word(bytes, 0x10) == 0);
  CHECK(word(bytes, 0x1c) == 3 << 4);
  CHECK(word(bytes, 0x20) == 999);
  CHECK(word(bytes, 0x24) == 199);
  CHECK(word(bytes, 0x28) == 29);
  CHECK(word(bytes, 0x34) == (63u << 24 | 7 << 6 | 1 << 3));
  CHECK(word(bytes, 0x38) == (2 << 8 | 255));
}

TEST_CASE("tensor map: a field that is replaced is that of the map with the new value") {
  const TensorMapParameters map = plain();
  // The bytes of a box and the reach of a swizzle are the driver's to work out.
  const auto check = [&](TensorMapField field, std::uint32_t dimension, std::uint64_t value,
                         const TensorMapParameters& wanted) {
    auto bytes = encode_tensor_map(map);
    auto expected = encode_tensor_map(wanted);
    for (const std::size_t at : {0x40, 0x48})
      std::memcpy(expected.data() + at, bytes.data() + at, 4);
    const auto before = bytes;
    const auto words = replace_tensor_map_field(bytes.data(), field, dimension, value);
    CHECK(bytes == expected);
    for (std::uint32_t at = 0; at < kTensorMapBytes; at += 4) {
      const bool is_named = words[0] == at || words[1] == at;
      if (!is_named) CHECK(word(bytes, at) == word(before, at));
    }
  };
  TensorMapParameters next = map;
  next.address = 0x123456789000;
  check(TensorMapField::address, 0, next.address, next);
  next = map;
  next.swizzle = 1;
  check(TensorMapField::swizzle, 0, 1, next);
  next = map;
  next.fills_nan = true;
  check(TensorMapField::fill, 0, 1, next);
  const std::uint64_t extent = std::uint64_t{1} << 32, stride = (std::uint64_t{1} << 40) - 16;
  for (std::uint32_t d = 0; d < 3; ++d) {
    next = map;
    next.extent[d] = extent;
    check(TensorMapField::extent, d, extent, next);
    next = map;
    next.box[d] = 8;
    check(TensorMapField::box, d, 8, next);
    next = map;
    next.step[d] = 5;
    check(TensorMapField::step, d, 5, next);
    if (d == 2) continue;
    next = map;
    next.stride[d + 1] = stride;
    check(TensorMapField::stride, d, stride, next);
  }
  const std::array<int, 13> types{0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};  // of the manual
  for (std::size_t number = 0; number < types.size(); ++number) {
    next = map;
    next.type = types[number];
    check(TensorMapField::type, 0, number, next);
  }
}

TEST_CASE("tensor map: im2col has corners and counts where a box has extents") {
  TensorMapParameters map = plain();
  map.im2col = true;
  map.box = {64};
  map.pixels = 1000;
  map.lower = {-3};
  map.upper = {32767};
  auto bytes = encode_tensor_map(map);
  CHECK((word(bytes, 0x08) & 1) == 1);
  CHECK(word(bytes, 0x34) == (63u << 24 | 7 << 6 | 1 << 3));
  CHECK(word(bytes, 0x38) == 0x7ffffffd);
  CHECK(word(bytes, 0x3c) == 999);
  CHECK(word(bytes, 0x40) == 64 * 1000 * 2);
  map.rank = 4;
  map.extent[3] = map.step[3] = 1;
  map.lower = {-3, 2};
  map.upper = {127, -128};
  bytes = encode_tensor_map(map);
  CHECK(word(bytes, 0x38) == 0x807f02fd);
  map.rank = 5;
  map.extent[4] = map.step[4] = 1;
  map.lower = {1, -16, -15};
  map.upper = {-1, 2, 3};
  bytes = encode_tensor_map(map);
  CHECK(word(bytes, 0x38) == ((31u | 2 << 5 | 3 << 10) << 16 | (1u | 16 << 5 | 17 << 10)));
  CHECK(decode_tensor_map(bytes.data()) == map);
}

TEST_CASE("tensor map: the bytes are those of a driver") {
  struct Row {
    TensorMapParameters map;
    std::string bytes;
  };
  const std::vector<Row> rows = {
#include "tensor_maps_h200.inc"
  };
  CHECK(rows.size() > 100);
  for (const Row& row : rows) {
    CHECK(check_tensor_map(row.map).empty());
    std::string text;
    for (const std::byte byte : encode_tensor_map(row.map)) {
      text += kernwright::format("{:02x}", static_cast<unsigned>(byte));
    }
    CHECK(text == row.bytes + std::string(256 - row.bytes.size(), '0'));
    CHECK(decode_tensor_map(encode_tensor_map(row.map).data()) == row.map);
  }
}

TEST_CASE("tensor map: decoding gives back what was encoded") {
  std::mt19937_64 random(5);
  int accepted = 0, columns = 0;
  for (int round = 0; round < 4000; ++round) {
    TensorMapParameters map;
    map.address = (random() % (std::uint64_t{1} << 47) | 1) << 5 & ~std::uint64_t{31};
    map.rank = 1 + static_cast<int>(random() % 5);
    map.type = static_cast<int>(random() % 13);
    map.swizzle = static_cast<int>(random() % 4);
    map.im2col = round % 4 == 3;
    map.l2_promotion = static_cast<int>(random() % 4);
    map.fills_nan = random() % 2 != 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
      map.extent[d] = 1 + random() % (std::uint64_t{1} << 32);
      map.box[d] = 1 + static_cast<std::uint32_t>(random() % 256);
      map.step[d] = 1 + static_cast<std::uint32_t>(random() % 8);
      if (d > 0) map.stride[d] = random() % (std::uint64_t{1} << 40) & ~std::uint64_t{15};
    }
    if (map.im2col) {
      const int limit = tensor_corner_limit(map.rank);
      const auto corner = [&] { return static_cast<int>(random() % (2u * limit)) - limit; };
      map.pixels = 1 + static_cast<std::uint32_t>(random() % 1024);
      map.box = {map.box[0]};
      for (std::size_t d = 0; d + 2 < static_cast<std::size_t>(map.rank); ++d)
        map.lower[d] = corner(), map.upper[d] = corner();
    }
    if (round % 4 != 1) map.box[0] = 16 / tensor_element_bytes(map.type);
    if (!check_tensor_map(map).empty()) continue;
    ++accepted;
    columns += map.im2col ? 1 : 0;
    const auto decoded = decode_tensor_map(encode_tensor_map(map).data());
    REQUIRE(decoded.has_value());
    CHECK(*decoded == map);
  }
  CHECK(accepted > 500);
  CHECK(columns > 100);
}

TEST_CASE("tensor map: other bytes are none") {
  std::array<std::byte, kTensorMapBytes> bytes{};
  CHECK_FALSE(decode_tensor_map(bytes.data()).has_value());
  bytes.fill(std::byte{0xff});
  CHECK_FALSE(decode_tensor_map(bytes.data()).has_value());
}

TEST_CASE("tensor map: forms of tensormap that an assembler for sm_90a refuses are refused") {
  const auto loads = [](const std::string& field) {
    const std::string text =
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>;\n"
        ".reg .b64 %d<4>;\n.shared .align 128 .b8 m[128];\nmov.u32 %r1, m;\nmov.u32 %r2, 1;\n"
        "mov.u64 %d1, 0;\ntensormap." +
        field + ";\nret;\n}\n";
    try {
      decode(ptx::parse(text), {});
      return true;
    } catch (const ptx::PtxError&) {
      return false;
    }
  };
  const std::string copy =
      "cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], ";
  for (const char* good : {"replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 12",
                           "replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 3",
                           "replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 4, %r2",
                           "replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 3, %d1",
                           "replace.tile.rank.global.b1024.b32 [%d1], 2",
                           "replace.tile.fill_mode.b1024.b32 [%d1+128], 1"}) {
    INFO(good);
    CHECK(loads(good));
  }
  CHECK(loads(copy + "128"));
  for (const char* bad : {"replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 13",
                          "replace.tile.elemtype.shared::cta.b1024.b32 [%r1], %r2",
                          "replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4",
                          "replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 3",
                          "replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 2",
                          "replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, %r2",
                          "replace.tile.box_dim.shared::cta.b1024.b32 [%r1], %r2, %r2",
                          "replace.tile.box_dim.shared::cta.b1024.b64 [%r1], 1, %d1",
                          "replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 4, %d1",
                          "replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r1], 0",
                          "replace.im2col.rank.shared::cta.b1024.b32 [%r1], 1",
                          "replace.tile.rank.shared.b1024.b32 [%r1], 1"}) {
    INFO(bad);
    CHECK_FALSE(loads(bad));
  }
  CHECK_FALSE(loads(copy + "64"));
}
