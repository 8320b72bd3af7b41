// Products of wgmma with matrices of whole numbers: where their elements lie, and what must come
// out.
#pragma once

#include "unit/sim/device/hopper_runner.h"

#include <bit>
#include <random>
#include <string>
#include <vector>

namespace kernwright::sim::testing::products {

inline constexpr std::uint32_t kPlaceOfB = 16384, kShared = 49152;

struct Format {
  const char* name;
  int bits;
  bool floating;
};
inline constexpr Format kF16{"f16", 16, true}, kBf16{"bf16", 16, true}, kTf32{"tf32", 32, true},
    kE4m3{"e4m3", 8, true}, kE5m2{"e5m2", 8, true}, kS8{"s8", 8, false}, kU8{"u8", 8, false},
    kBit{"b1", 1, false};

/// Bits of a small whole number.
inline std::uint32_t encode(const Format& format, int value) {
  const std::string name = format.name;
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t sign = single >> 31, magnitude = single & 0x7fffffff;
  const auto small = [&](int exponent_bits, int mantissa_bits) {
    if (value == 0) return 0u;
    const std::uint32_t rebias = (127u - ((1u << (exponent_bits - 1)) - 1)) << 23;
    return sign << (exponent_bits + mantissa_bits) | (magnitude - rebias) >> (23 - mantissa_bits);
  };
  if (name == "f16") return small(5, 10);
  if (name == "bf16") return single >> 16;
  if (name == "tf32") return single;
  if (name == "e4m3") return small(4, 3);
  if (name == "e5m2") return small(5, 2);
  return static_cast<std::uint32_t>(value) & (format.bits == 1 ? 1u : 0xffu);
}

struct ProductCase {
  Format a = kF16, b = kF16;
  std::string sum = "f32";  ///< f32, f16, s32
  int n = 8;
  int swizzle_a = 0, swizzle_b = 0;  ///< as in descriptors: 0 none, 1 128 B, 2 64 B, 3 32 B
  bool registers = false;            ///< A comes from registers
  bool transposed_a = false, transposed_b = false;
  int sign_a = 1, sign_b = 1;
  bool adds = true;
  int step = 0;  ///< slices of 32 bytes of k that the descriptors skip within the swizzle's row
  std::string behind_types = {};  ///< .satfinite
  int selector = -1;              ///< of a sparse A; -1: it is dense

  bool sparse() const { return selector >= 0; }
  int k() const { return (sparse() ? 512 : 256) / a.bits; }
};

inline std::uint32_t swizzle(std::uint32_t at, int mode) {
  const std::uint32_t chunks = mode == 0 ? 1 : 16u >> mode;
  return at ^ ((at / 128 % chunks) * 16);
}

/// A matrix of `rows` rows by 16 * `chunks` bytes of k in shared memory, and its descriptor.
/// Layouts as the PTX manual draws them.
class Placed {
 public:
  Placed(std::uint32_t start, int mode, bool transposed, int step, std::uint32_t rows,
         std::uint32_t chunks)
      : start_(start), mode_(mode), transposed_(transposed), step_(step) {
    span_ = mode == 0 ? 16 : 256u >> mode;  // bytes of a row of the pattern
    const std::uint32_t group = 8 * span_;  // bytes of 8 rows of it
    if (!transposed) {
      leading_ = mode == 0 ? 128 * ((rows + 7) / 8) : 16;
      stride_ = mode == 0 ? 128 : group;
    } else if (mode == 0) {
      stride_ = 128;                      // to the next 8 rows
      leading_ = 128 * ((rows + 7) / 8);  // to the next 8 steps of k
    } else {
      stride_ = group;            // to the next 8 steps of k
      leading_ = chunks * group;  // to the next rows that do not fit the pattern's row
    }
  }
  /// Byte of element (row, byte of k) or, transposed, of the half (row, k).
  std::uint32_t place(std::uint32_t row, std::uint32_t k_byte) const {
    if (transposed_) {
      const std::uint32_t k = k_byte / 2, byte = row * 2;
      if (mode_ == 0)
        return start_ + byte % 16 + row / 8 * stride_ + k % 8 * 16 + k / 8 * leading_ + k_byte % 2;
      return start_ +
             swizzle(byte % span_ + byte / span_ * leading_ + k % 8 * span_ + k / 8 * stride_,
                     mode_) +
             k_byte % 2;
    }
    if (mode_ == 0)
      return start_ + row % 8 * 16 + row / 8 * stride_ + k_byte / 16 * leading_ + k_byte % 16;
    const std::uint32_t inner = static_cast<std::uint32_t>(step_) * 32 + k_byte;
    return start_ + swizzle(row % 8 * span_ + row / 8 * stride_ + inner, mode_);
  }
  std::uint64_t descriptor() const {
    const std::uint64_t at = start_ + static_cast<std::uint32_t>(step_) * 32;
    return at >> 4 | std::uint64_t{leading_} >> 4 << 16 | std::uint64_t{stride_} >> 4 << 32 |
           static_cast<std::uint64_t>(mode_) << 62;
  }

 private:
  std::uint32_t start_, span_ = 0, leading_ = 0, stride_ = 0;
  int mode_;
  bool transposed_;
  int step_;
};

inline std::string body_of(const ProductCase& one, int registers_of_d) {
  std::string text =
      ".reg .b32 %q<160>;\nld.param.u64 %d1, [p0];\nld.param.u64 %d2, [p1];\n"
      "ld.param.u64 %d3, [p2];\nld.param.u64 %d4, [p3];\nld.param.u64 %d5, [p4];\n"
      "ld.param.u32 %r9, [p5];\nsetp.ne.u32 %p5, %r9, 0;\nld.param.u64 %d7, [p6];\n"
      "mad.wide.u32 %d7, %r0, 4, %d7;\nld.global.u32 %r30, [%d7];\n";
  text += R"(
mov.u32 %r1, space;
mov.u32 %r6, %r0;
FILL:
mad.lo.u32 %r7, %r6, 16, %r1;
mad.wide.u32 %d6, %r6, 16, %d2;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d6];
st.shared.v4.u32 [%r7], {%r10, %r11, %r12, %r13};
add.u32 %r6, %r6, 128;
setp.lt.u32 %p3, %r6, 3072;
@%p3 bra FILL;
fence.proxy.async;
bar.sync 0;
mad.wide.u32 %d1, %r0, 512, %d1;
mad.wide.u32 %d3, %r0, 16, %d3;
ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%d3];
)";
  std::string d;
  for (int i = 0; i < registers_of_d; ++i) {
    text += "ld.global.b32 %q" + std::to_string(i) + ", [%d1+" + std::to_string(4 * i) + "];\n";
    d += (i == 0 ? "%q" : ", %q") + std::to_string(i);
  }
  const std::string types = one.sum + "." + one.a.name + "." + one.b.name;
  text += "wgmma.fence.sync.aligned;\nwgmma.mma_async" + std::string(one.sparse() ? ".sp" : "") +
          ".sync.aligned.m64n" + std::to_string(one.n) + "k" + std::to_string(one.k()) + "." +
          types + one.behind_types + (one.a.bits == 1 ? ".and.popc" : "") + " {" + d + "}, " +
          (one.registers ? "{%r20, %r21, %r22, %r23}" : "%d4") + ", %d5";
  if (one.sparse()) text += ", %r30, " + std::to_string(one.selector);
  text += ", %p5";
  if (one.a.floating) text += ", " + std::to_string(one.sign_a) + ", " + std::to_string(one.sign_b);
  if (one.a.bits == 16) {
    if (!one.registers) text += one.transposed_a ? ", 1" : ", 0";
    text += one.transposed_b ? ", 1" : ", 0";
  }
  text += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < registers_of_d; ++i)
    text += "st.global.b32 [%d1+" + std::to_string(4 * i) + "], %q" + std::to_string(i) + ";\n";
  return text;
}

using Matrix = std::vector<std::vector<int>>;

inline Matrix make_matrix(std::mt19937& random, const Format& format, int rows, int k) {
  Matrix matrix(static_cast<std::size_t>(rows), std::vector<int>(static_cast<std::size_t>(k)));
  for (auto& row : matrix)
    for (int& value : row) {
      value = static_cast<int>(random() % 9) - 4;
      if (std::string(format.name) == "u8") value = static_cast<int>(random() % 256);
      if (std::string(format.name) == "s8") value = static_cast<int>(random() % 256) - 128;
      if (format.bits == 1) value = static_cast<int>(random() % 2);
    }
  return matrix;
}

inline void store(std::vector<std::uint8_t>& memory, const Placed& placed, const Matrix& matrix,
                  const Format& format) {
  for (std::uint32_t row = 0; row < matrix.size(); ++row)
    for (std::uint32_t k = 0; k < matrix[row].size(); ++k) {
      const std::uint32_t bits = encode(format, matrix[row][k]), size = format.bits / 8u;
      if (format.bits == 1) {
        auto& byte = memory[placed.place(row, k / 8)];
        byte = static_cast<std::uint8_t>((byte & ~(1u << k % 8)) | bits << k % 8);
      }
      for (std::uint32_t i = 0; i < size; ++i)
        memory[placed.place(row, k * size + i)] = static_cast<std::uint8_t>(bits >> 8 * i);
    }
}

/// Four registers of A for each of 128 threads.
inline std::vector<std::uint32_t> fragments(const Matrix& a, const Format& format) {
  std::vector<std::uint32_t> words(512);
  const int per = 32 / format.bits;
  for (int thread = 0; thread < 128; ++thread)
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < per; ++i) {
        const int lane = thread % 32;
        const int row = thread / 32 * 16 + lane / 4 + r % 2 * 8;
        const int k = r / 2 * 4 * per + lane % 4 * per + i;
        words[static_cast<std::size_t>(thread * 4 + r)] |=
            encode(format, a[static_cast<std::size_t>(row)][static_cast<std::size_t>(k)])
            << format.bits * i;
      }
  return words;
}

/// Runs D = packed * b (+ D) and compares with the product of `whole`, which is `packed` with its
/// zeros where A is sparse. `metadata` has a word for each thread.
inline void check_product(const ProductCase& one, const Matrix& packed, const Matrix& whole,
                          const Matrix& b, const std::vector<std::uint32_t>& metadata,
                          std::mt19937& random) {
  CAPTURE(one.a.name);
  CAPTURE(one.b.name);
  CAPTURE(one.sum);
  CAPTURE(one.n);
  CAPTURE(one.registers);
  CAPTURE(one.selector);
  const Placed at_a(0, one.swizzle_a, one.transposed_a, one.step, 64, 2);
  const Placed at_b(kPlaceOfB, one.swizzle_b, one.transposed_b, one.step,
                    static_cast<std::uint32_t>(one.n), one.sparse() ? 4 : 2);
  std::vector<std::uint8_t> memory(kShared, 0xee);
  if (!one.registers) store(memory, at_a, packed, one.a);
  store(memory, at_b, b, one.b);
  const int per_register = one.sum == "f16" ? 2 : 1, count = one.n / 2 / per_register;
  std::vector<std::uint32_t> d(128 * 128), expected(128 * 128);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < count * per_register; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int old = static_cast<int>(random() % 33) - 16;
      std::int64_t sum = one.adds ? old : 0;
      for (int x = 0; x < one.k(); ++x)
        sum += std::int64_t{whole[static_cast<std::size_t>(row)][static_cast<std::size_t>(x)]} *
               b[static_cast<std::size_t>(column)][static_cast<std::size_t>(x)] * one.sign_a *
               one.sign_b;
      const auto put = [&](std::vector<std::uint32_t>& to, std::int64_t value) {
        std::uint32_t bits = static_cast<std::uint32_t>(value);
        if (one.sum == "f16") bits = encode(kF16, static_cast<int>(value)) << 16 * (i % 2);
        if (one.sum == "f32") bits = encode(kTf32, static_cast<int>(value));
        to[static_cast<std::size_t>(thread * 128 + i / per_register)] |= bits;
      };
      put(d, old);
      put(expected, sum);
    }
  HopperRunner runner;
  runner.block = {128, 1, 1};
  const std::uint64_t out = runner.upload(d), words = runner.upload(fragments(packed, one.a));
  const std::uint64_t shared = runner.upload(memory), indices = runner.upload(metadata);
  require_fine(runner.run(
      body_of(one, count),
      {out, shared, words, at_a.descriptor(), at_b.descriptor(), one.adds ? 1u : 0u, indices},
      ".shared .align 1024 .b8 space[49152];\n"));
  CHECK(runner.download<std::uint32_t>(out, d.size()) == expected);
}

}  // namespace kernwright::sim::testing::products
