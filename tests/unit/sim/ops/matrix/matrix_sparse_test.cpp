// mma.sp against products of the whole matrices: A with its zeros, packed as the manual says.
#include "unit/sim/ops/matrix/matrix_runner.h"

#include <exception>
#include <random>
#include <utility>

namespace kernwright::sim {
namespace {

struct Shape {
  int k;
  ElementType a, b;
  std::string sums;
  std::string before;  ///< .satfinite
  int selectors() const { return 64 / row_bits(); }
  /// Metadata of one row.
  int row_bits() const { return a.bits == 32 ? 2 * k : a.bits == 4 ? k / 2 : k; }
  std::string opcode(const std::string& variant) const {
    return "mma." + variant + ".sync.aligned.m16n8k" + std::to_string(k) + ".row.col" + before +
           "." + sums + "." + a.name + "." + b.name + "." + sums;
  }
};

/// Row by row, the columns of A that are kept, and the row's metadata as the manual writes it.
struct Pattern {
  std::vector<int> kept[16];
  std::uint64_t indices[16] = {};

  Pattern(const Shape& shape, std::mt19937& random) {
    static constexpr std::pair<int, int> kPairs[] = {{0, 1}, {0, 2}, {0, 3},
                                                     {1, 2}, {1, 3}, {2, 3}};
    for (int row = 0; row < 16; ++row) {
      if (shape.a.bits == 32) {  // one of two: 0b0100 is the first, 0b1110 the second
        for (int chunk = 0; chunk < shape.k / 2; ++chunk) {
          const int second = static_cast<int>(random() % 2);
          kept[row].push_back(2 * chunk + second);
          indices[row] |= std::uint64_t{second == 1 ? 0b1110u : 0b0100u} << (4 * chunk);
        }
        continue;
      }
      const int width = shape.a.bits == 4 ? 2 : 1;  // two of four, each of so many elements
      for (int chunk = 0; chunk < shape.k / (4 * width); ++chunk) {
        const auto [first, second] = kPairs[random() % 6];
        for (const int index : {first, second})
          for (int i = 0; i < width; ++i) kept[row].push_back((4 * chunk + index) * width + i);
        indices[row] |= static_cast<std::uint64_t>(first | second << 2) << (4 * chunk);
      }
    }
  }
};

/// The lanes' metadata; lanes that the selector does not name hold something else.
Sparsity sparsity_of(const Shape& shape, const Pattern& pattern, int selector,
                     std::mt19937& random) {
  Sparsity result;
  result.selector = selector;
  for (int lane = 0; lane < 32; ++lane) result.metadata.push_back(random());
  const auto set = [&](int lane, std::uint64_t word) {
    result.metadata[static_cast<std::size_t>(lane)] = static_cast<std::uint32_t>(word);
  };
  for (int g = 0; g < 8; ++g) {
    const std::uint64_t low = pattern.indices[g], high = pattern.indices[g + 8];
    if (shape.a.bits >= 16 && shape.row_bits() == 16) {
      set(4 * g + selector, low | high << 16);
    } else if (shape.a.bits >= 16) {
      set(4 * g + 2 * selector, (low & 0xffff) | (high & 0xffff) << 16);
      set(4 * g + 2 * selector + 1, low >> 16 | high >> 16 << 16);
    } else {
      set(4 * g + 2 * selector, low);
      set(4 * g + 2 * selector + 1, high);
      if (shape.row_bits() == 64) {
        set(4 * g + 2, low >> 32);
        set(4 * g + 3, high >> 32);
      }
    }
  }
  return result;
}

void check_shape(const Shape& shape, const std::string& variant, int selector) {
  std::mt19937 random(static_cast<unsigned>(shape.k * 8 + selector));
  const Pattern pattern(shape, random);
  const int per_register = 32 / shape.a.bits, packed = shape.k / 2;
  const int in_a = 16 * packed / 32, in_b = 8 * shape.k / 32, per_sum = shape.sums == "f16" ? 2 : 1;
  const std::array<int, 3> registers{in_a / per_register, in_b / per_register, 4 / per_sum};
  Image a(registers[0], 32), b(registers[1], 32), c(registers[2], 32);
  const auto value_a = [&](int row, int i) {
    return shape.a.sample(static_cast<unsigned>(row * 257 + i));
  };
  const auto value_b = [&](int k, int n) {
    return shape.b.sample(static_cast<unsigned>(k * 131 + n + 7));
  };
  const auto value_c = [](int row, int n) { return row * 8 + n - 40.0; };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < in_a; ++i) {
      const MatrixPlace p = place_in_a(lane, i, per_register, 16);
      a.put(i / per_register, lane, i % per_register, shape.a.bits,
            shape.a.encode(value_a(p.row, p.column)));
    }
    for (int i = 0; i < in_b; ++i) {
      const MatrixPlace p = place_in_b(lane, i, per_register);
      b.put(i / per_register, lane, i % per_register, shape.b.bits,
            shape.b.encode(value_b(p.row, p.column)));
    }
    for (int i = 0; i < 4; ++i) {
      const MatrixPlace p = place_in_c(lane, i);
      c.put(i / per_sum, lane, i % per_sum, 16, encode_sum(shape.sums, value_c(p.row, p.column)));
    }
  }
  Image expected(registers[2], 32);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const MatrixPlace p = place_in_c(lane, i);
      std::vector<double> whole(static_cast<std::size_t>(shape.k));
      for (int e = 0; e < packed; ++e)
        whole[static_cast<std::size_t>(pattern.kept[p.row][static_cast<std::size_t>(e)])] =
            value_a(p.row, e);
      double sum = value_c(p.row, p.column);
      for (int k = 0; k < shape.k; ++k)
        sum += whole[static_cast<std::size_t>(k)] * value_b(k, p.column);
      expected.put(i / per_sum, lane, i % per_sum, 16, encode_sum(shape.sums, sum));
    }
  }
  const Sparsity sparsity = sparsity_of(shape, pattern, selector, random);
  const auto result = run_product<std::uint32_t>(shape.opcode(variant), shape.a.bits, shape.sums, a,
                                                 b, c, registers, &sparsity);
  INFO(shape.opcode(variant), ", selector ", selector);
  for (int i = 0; i < static_cast<int>(result.size()); ++i)
    CHECK(result[static_cast<std::size_t>(i)] == expected.get(i / 32, i % 32));
}

void check_all(const Shape& shape) {
  for (int selector = 0; selector < shape.selectors(); ++selector) {
    check_shape(shape, "sp", selector);
    check_shape(shape, "sp::ordered_metadata", selector);
  }
}

TEST_CASE("mma.sp: floating-point shapes equal the products of the whole matrices") {
  const ElementType f16{"f16", 16}, bf16{"bf16", 16}, tf32{"tf32", 32};
  for (const int k : {16, 32}) {
    check_all({k, f16, f16, "f32", ""});
    check_all({k, f16, f16, "f16", ""});
    check_all({k, bf16, bf16, "f32", ""});
    check_all({k / 2, tf32, tf32, "f32", ""});
  }
  for (const char* a : {"e4m3", "e5m2"})
    for (const char* b : {"e4m3", "e5m2"}) check_all({64, {a, 8}, {b, 8}, "f32", ""});
}

TEST_CASE("mma.sp: integer shapes with all sign combinations") {
  for (const bool signed_a : {false, true}) {
    for (const bool signed_b : {false, true}) {
      const ElementType a8{signed_a ? "s8" : "u8", 8, signed_a},
          b8{signed_b ? "s8" : "u8", 8, signed_b};
      const ElementType a4{signed_a ? "s4" : "u4", 4, signed_a},
          b4{signed_b ? "s4" : "u4", 4, signed_b};
      check_all({32, a8, b8, "s32", ""});
      check_all({64, a8, b8, "s32", ".satfinite"});
      check_all({64, a4, b4, "s32", ".satfinite"});
      check_all({128, a4, b4, "s32", ""});
    }
  }
}

/// All of A are `factor`, those of B that 0b0100 0b0100 ... names are it too, others `other`.
std::uint32_t uniform(const Shape& shape, std::uint32_t factor, std::uint32_t other,
                      std::uint32_t sum, std::uint32_t metadata) {
  Image a(2, 32), b(2, 32), c(4, 32);
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 2; ++r) {
      a.put(r, lane, 0, 32, factor);
      b.put(r, lane, 0, 32, lane % 2 == 0 ? factor : other);
    }
    for (int r = 0; r < 4; ++r) c.put(r, lane, 0, 32, sum);
  }
  const Sparsity sparsity{std::vector<std::uint32_t>(32, metadata), 0};
  return run_product<std::uint32_t>(shape.opcode("sp"), shape.a.bits, shape.sums, a, b, c,
                                    {2, 2, 4}, &sparsity)[77];
}

TEST_CASE("mma.sp: what no index names takes no part, not even infinities") {
  const Shape shape{16, {"f16", 16}, {"f16", 16}, "f32", ""};
  // Elements 0 and 1 of every chunk of four lie in even lanes: 2 and 2; the others are infinite.
  CHECK(uniform(shape, 0x40004000, 0x7c007c00, 0x3f800000, 0x44444444) ==
        std::bit_cast<std::uint32_t>(1.0f + 8 * 4));
  CHECK(uniform(shape, 0x40004000, 0x7c007c00, 0x3f800000, 0xeeeeeeee) == 0x7f800000u);
}

TEST_CASE("mma.sp: s32 sums wrap, or saturate with .satfinite") {
  Shape shape{32, {"s8", 8}, {"s8", 8}, "s32", ""};
  CHECK(uniform(shape, 0x80808080, 0x80808080, 0x7fffffff, 0x44444444) ==
        0x7fffffffu + 16u * 128 * 128);
  shape.before = ".satfinite";
  CHECK(uniform(shape, 0x80808080, 0x80808080, 0x7fffffff, 0x44444444) == 0x7fffffffu);
}

TEST_CASE("mma.sp: a selector beyond the shape's, or one in a register, is refused") {
  const auto message = [](const std::string& selector) -> std::string {
    OpsRunner runner;
    try {
      runner.run(
          "mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {%r1,%r2}, "
          "{%r3,%r4,%r5,%r6}, {%r7,%r8,%r9,%r10}, {%r1,%r2}, %r11, " +
              selector + ";",
          {});
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  };
  CHECK(message("1") == "");
  CHECK(message("2").find("the sparsity selector 2 must be 0 to 1 here") != std::string::npos);
  CHECK(message("%r12").find("operand 6: a constant is needed") != std::string::npos);
}

}  // namespace
}  // namespace kernwright::sim
