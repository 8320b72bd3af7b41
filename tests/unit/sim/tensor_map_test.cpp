// Descriptors of tensor copies: fields, and the way back.
#include "sim/tensor_map.h"

#include "base/format.h"

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
