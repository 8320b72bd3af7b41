// mma.sync: every shape and type against products computed in double or 64-bit integers.
#include "unit/sim/ops/matrix/matrix_runner.h"

#include <cstdint>
#include <random>

namespace kernwright::sim {
namespace {

struct Shape {
  int m, k;
  ElementType a, b;
  std::string c;       ///< "f32", "f16", "s32", "f64"
  std::string suffix;  ///< modifiers after the types
  std::string before;  ///< modifiers before the types: .satfinite
};

/// Runs the instruction on register images; returns D's registers as memory.
template <typename T>
std::vector<T> run_mma(const Shape& shape, const Image& a, const Image& b, const Image& c,
                       const std::array<int, 3>& registers) {
  const std::string opcode = "mma.sync.aligned.m" + std::to_string(shape.m) + "n8k" +
                             std::to_string(shape.k) + ".row.col" + shape.before + "." + shape.c +
                             "." + shape.a.name + "." + shape.b.name + "." + shape.c + shape.suffix;
  return run_product<T>(opcode, shape.a.bits, shape.c, a, b, c, registers);
}

double product(const Shape& shape, double a, double b) {
  if (shape.suffix == ".xor.popc") return static_cast<int>(a) ^ static_cast<int>(b);
  return a * b;
}

template <typename T>
void check_sums(const std::vector<T>& result, const Image& expected) {
  for (int i = 0; i < static_cast<int>(result.size()); ++i)
    CHECK(result[static_cast<std::size_t>(i)] == expected.get(i / 32, i % 32));
}

void check_shape(const Shape& shape) {
  const int register_bits = shape.a.bits == 64 ? 64 : 32, sum_bits = shape.c == "f64" ? 64 : 32;
  const int per_register = register_bits / shape.a.bits;
  const int in_a = shape.m * shape.k / 32, in_b = 8 * shape.k / 32, in_c = shape.m * 8 / 32;
  const int per_sum = shape.c == "f16" ? 2 : 1;
  const std::array<int, 3> registers{in_a / per_register, in_b / per_register, in_c / per_sum};
  Image a(registers[0], register_bits), b(registers[1], register_bits), c(registers[2], sum_bits);
  const auto value_a = [&](int row, int k) {
    return shape.a.sample(static_cast<unsigned>(row * 257 + k));
  };
  const auto value_b = [&](int k, int n) {
    return shape.b.sample(static_cast<unsigned>(k * 131 + n + 7));
  };
  const auto value_c = [&](int row, int n) { return row * 8 + n - 40.0; };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < in_a; ++i) {
      const MatrixPlace p = place_in_a(lane, i, per_register, shape.m);
      a.put(i / per_register, lane, i % per_register, shape.a.bits,
            shape.a.encode(value_a(p.row, p.column)));
    }
    for (int i = 0; i < in_b; ++i) {
      const MatrixPlace p = place_in_b(lane, i, per_register);
      b.put(i / per_register, lane, i % per_register, shape.b.bits,
            shape.b.encode(value_b(p.row, p.column)));
    }
    for (int i = 0; i < in_c; ++i) {
      const MatrixPlace p = place_in_c(lane, i);
      c.put(i / per_sum, lane, i % per_sum, 16, encode_sum(shape.c, value_c(p.row, p.column)));
    }
  }
  Image expected(registers[2], sum_bits);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < in_c; ++i) {
      const MatrixPlace p = place_in_c(lane, i);
      double sum = value_c(p.row, p.column);
      for (int k = 0; k < shape.k; ++k)
        sum += product(shape, value_a(p.row, k), value_b(k, p.column));
      expected.put(i / per_sum, lane, i % per_sum, 16, encode_sum(shape.c, sum));
    }
  }
  INFO("m" << shape.m << "n8k" << shape.k << " " << shape.a.name << " " << shape.b.name << " "
           << shape.c);
  if (sum_bits == 64) {
    check_sums(run_mma<std::uint64_t>(shape, a, b, c, registers), expected);
  } else {
    check_sums(run_mma<std::uint32_t>(shape, a, b, c, registers), expected);
  }
}

TEST_CASE("mma: floating-point shapes, exact where all sums are exact") {
  const ElementType f16{"f16", 16}, bf16{"bf16", 16}, tf32{"tf32", 32}, f64{"f64", 64};
  check_shape({16, 8, f16, f16, "f32", "", ""});
  check_shape({16, 16, f16, f16, "f32", "", ""});
  check_shape({16, 8, f16, f16, "f16", "", ""});
  check_shape({16, 16, f16, f16, "f16", "", ""});
  check_shape({16, 8, bf16, bf16, "f32", "", ""});
  check_shape({16, 16, bf16, bf16, "f32", "", ""});
  check_shape({16, 4, tf32, tf32, "f32", "", ""});
  check_shape({16, 8, tf32, tf32, "f32", "", ""});
  check_shape({8, 4, f64, f64, "f64", "", ""});
  for (const int k : {4, 8, 16}) check_shape({16, k, f64, f64, "f64", "", ".rm"});
  for (const char* a : {"e4m3", "e5m2"})
    for (const char* b : {"e4m3", "e5m2"})
      for (const char* c : {"f32", "f16"})
        for (const int k : {16, 32}) check_shape({16, k, {a, 8}, {b, 8}, c, "", ""});
}

TEST_CASE("mma: f64 sums in every rounding mode") {
  // 1 + 4 * 2^-60, rounded after each addition.
  const double tiny = 0x1p-30, up = 1 + 0x1p-52;
  for (const bool negative : {false, true}) {
    const double sign = negative ? -1 : 1;
    for (const std::string mode : {"", ".rn", ".rz", ".rm", ".rp"}) {
      const Shape shape{8, 4, {"f64", 64}, {"f64", 64}, "f64", "", mode};
      Image a(1, 64), b(1, 64), c(2, 64);
      for (int lane = 0; lane < 32; ++lane) {
        a.put(0, lane, 0, 64, std::bit_cast<std::uint64_t>(tiny));
        b.put(0, lane, 0, 64, std::bit_cast<std::uint64_t>(sign * tiny));
        for (int r = 0; r < 2; ++r) c.put(r, lane, 0, 64, std::bit_cast<std::uint64_t>(sign));
      }
      const bool away = mode == (negative ? ".rm" : ".rp");
      const double expected = away ? sign * (1 + 4 * (up - 1)) : sign;
      for (const double got : run_mma<double>(shape, a, b, c, {1, 1, 2})) CHECK(got == expected);
    }
  }
}

TEST_CASE("mma: integer shapes with all sign combinations") {
  for (const bool signed_a : {false, true}) {
    for (const bool signed_b : {false, true}) {
      const ElementType a8{signed_a ? "s8" : "u8", 8, signed_a},
          b8{signed_b ? "s8" : "u8", 8, signed_b};
      const ElementType a4{signed_a ? "s4" : "u4", 4, signed_a},
          b4{signed_b ? "s4" : "u4", 4, signed_b};
      check_shape({8, 16, a8, b8, "s32", "", ""});
      check_shape({16, 16, a8, b8, "s32", "", ""});
      check_shape({16, 32, a8, b8, "s32", "", ".satfinite"});
      check_shape({8, 32, a4, b4, "s32", "", ""});
      check_shape({16, 32, a4, b4, "s32", "", ""});
      check_shape({16, 64, a4, b4, "s32", "", ".satfinite"});
    }
  }
}

TEST_CASE("mma: single bits with and.popc and xor.popc") {
  const ElementType b1{"b1", 1, false};
  for (const std::string suffix : {".and.popc", ".xor.popc"}) {
    check_shape({8, 128, b1, b1, "s32", suffix, ""});
    check_shape({16, 128, b1, b1, "s32", suffix, ""});
    check_shape({16, 256, b1, b1, "s32", suffix, ""});
  }
}

/// All of A, B and C hold one value.
std::uint32_t uniform_s8(std::uint32_t factor, std::int32_t c, const std::string& before) {
  const Shape shape{16, 32, {"s8", 8}, {"s8", 8}, "s32", "", before};
  Image a(4, 32), b(2, 32), sums(4, 32);
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < 4; ++r) {
      a.put(r, lane, 0, 32, factor * 0x01010101u);
      if (r < 2) b.put(r, lane, 0, 32, factor * 0x01010101u);
      sums.put(r, lane, 0, 32, static_cast<std::uint32_t>(c));
    }
  return run_mma<std::uint32_t>(shape, a, b, sums, {4, 2, 4})[77];
}

TEST_CASE("mma: s32 sums wrap, or saturate with .satfinite") {
  CHECK(uniform_s8(0x80, INT32_MAX, ".satfinite") == 0x7fffffffu);
  CHECK(uniform_s8(0x80, INT32_MAX, "") == 0x7fffffffu + 32u * 128 * 128);
  CHECK(uniform_s8(0x01, INT32_MIN, ".satfinite") == 0x80000020u);
}

TEST_CASE("mma: f16 sums with rounding stay within the bound of K float additions") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> range(-4, 4);
  const Shape shape{16, 16, {"f16", 16}, {"f16", 16}, "f32", "", ""};
  Image a(4, 32), b(2, 32), c(4, 32);
  std::array<std::array<double, 16>, 16> value_a{};
  std::array<std::array<double, 8>, 16> value_b{};
  std::array<std::array<double, 8>, 16> value_c{};
  const auto round_half = [](float x) {
    return std::ldexp(std::round(std::ldexp(double{x}, 8)), -8);
  };
  for (auto& row : value_a)
    for (double& x : row) x = round_half(range(random));
  for (auto& row : value_b)
    for (double& x : row) x = round_half(range(random));
  for (auto& row : value_c)
    for (double& x : row) x = range(random);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) {
      const MatrixPlace p = place_in_a(lane, i, 2, 16);
      a.put(i / 2, lane, i % 2, 16,
            shape.a.encode(value_a[static_cast<unsigned>(p.row)][static_cast<unsigned>(p.column)]));
    }
    for (int i = 0; i < 4; ++i) {
      const MatrixPlace p = place_in_b(lane, i, 2);
      b.put(i / 2, lane, i % 2, 16,
            shape.a.encode(value_b[static_cast<unsigned>(p.row)][static_cast<unsigned>(p.column)]));
      const MatrixPlace q = place_in_c(lane, i);
      c.put(i, lane, 0, 32,
            encode_sum("f32",
                       value_c[static_cast<unsigned>(q.row)][static_cast<unsigned>(q.column)]));
    }
  }
  const auto result = run_mma<float>(shape, a, b, c, {4, 2, 4});
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const MatrixPlace p = place_in_c(lane, i);
      double sum = value_c[static_cast<unsigned>(p.row)][static_cast<unsigned>(p.column)],
             size = std::fabs(sum);
      for (unsigned k = 0; k < 16; ++k) {
        const double term =
            value_a[static_cast<unsigned>(p.row)][k] * value_b[k][static_cast<unsigned>(p.column)];
        sum += term;
        size += std::fabs(term);
      }
      CHECK(std::fabs(result[static_cast<std::size_t>(i * 32 + lane)] - sum) <=
            16 * 0x1p-24 * size);
    }
  }
}

TEST_CASE("mma: a NaN has one form in sums of f32 and f16, as an H200 writes them") {
  for (const std::uint32_t nan :
       {0x7e01u, 0xfe01u, 0x7c01u}) {  // of A; quiet, negative, signalling
    const Shape wide{16, 8, {"f16", 16}, {"f16", 16}, "f32", "", ""};
    Image a(2, 32), b(1, 32);
    a.put(0, 0, 0, 16, nan);
    for (int lane = 0; lane < 32; ++lane) b.put(0, lane, 0, 32, 0x3c003c00);
    const auto result = run_mma<std::uint32_t>(wide, a, b, Image(4, 32), {2, 1, 4});
    for (const std::size_t i : {0, 32}) CHECK(result[i] == 0x7fffffffu);  // row 0
    CHECK(result[64] == 0);                                               // row 8
    Shape narrow = wide;
    narrow.c = "f16";
    CHECK(run_mma<std::uint32_t>(narrow, a, b, Image(2, 32), {2, 1, 2})[0] == 0x7fff7fffu);
  }
  for (const std::uint32_t nan : {0x7fc12345u, 0xffc12345u, 0x7f812345u}) {  // of C
    const Shape shape{16, 8, {"tf32", 32}, {"tf32", 32}, "f32", "", ""};
    Image c(4, 32);
    c.put(0, 0, 0, 32, nan);
    const auto result = run_mma<std::uint32_t>(shape, Image(4, 32), Image(2, 32), c, {4, 2, 4});
    CHECK(result[0] == 0x7fffffffu);
    CHECK(result[1] == 0);
  }
}

TEST_CASE("mma: infinities and NaN pass through, f16 sums overflow to infinity") {
  const Shape wide{16, 8, {"f16", 16}, {"f16", 16}, "f32", "", ""};
  Image a(2, 32), b(1, 32), c(4, 32);
  for (int lane = 0; lane < 32; ++lane) {
    a.put(0, lane, 0, 32, 0x7c007c00);                                 // rows 0-7: infinity
    a.put(1, lane, 0, 32, 0x7bff7bff);                                 // rows 8-15: 65504
    b.put(0, lane, 0, 32, lane / 4 == 3 ? 0xbc003c00u : 0x3c003c00u);  // column 3: 1 and -1
  }
  const auto result = run_mma<float>(wide, a, b, c, {2, 1, 4});
  CHECK(std::isinf(result[0]));
  CHECK(std::bit_cast<std::uint32_t>(result[32 + 1]) == 0x7fffffffu);  // row 0, column 3: inf - inf
  CHECK(result[2 * 32] == 8 * 65504.0f);                               // row 8, column 0
  Shape narrow = wide;
  narrow.c = "f16";
  const auto halves = run_mma<std::uint32_t>(narrow, a, b, Image(2, 32), {2, 1, 2});
  CHECK(halves[32] == 0x7c007c00u);
}

}  // namespace
}  // namespace kernwright::sim
