// wgmma.mma_async.sp against products of the whole matrices: A with its zeros, the metadata laid
// out as the manual's figures have it.
#include "unit/sim/ops/matrix/wgmma_product.h"

#include <exception>
#include <limits>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;
using namespace kernwright::sim::testing::products;

namespace {

/// A with its zeros, without them, and the four bits of each chunk of a row.
struct SparseA {
  Matrix whole, packed;
  std::vector<std::vector<std::uint32_t>> chunks;
};

SparseA make_sparse(const Format& format, int k, std::mt19937& random) {
  static constexpr std::pair<int, int> kPairs[] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  SparseA a{make_matrix(random, format, 64, k), Matrix(64), {}};
  a.chunks.resize(64);
  const int width = format.bits == 32 ? 2 : 4;
  for (std::size_t row = 0; row < 64; ++row)
    for (int at = 0; at < k; at += width) {
      const auto [one, other] = kPairs[random() % 6];
      const int pick = static_cast<int>(random() % 2);
      for (int i = 0; i < width; ++i) {
        int& value = a.whole[row][static_cast<std::size_t>(at + i)];
        const bool kept = width == 2 ? i == pick : i == one || i == other;
        if (kept) a.packed[row].push_back(value);
        if (!kept) value = 0;
      }
      // tf32: which of two, in the indices of its 16-bit halves.
      a.chunks[row].push_back(width == 2 ? (pick == 0 ? 0b0100u : 0b1110u)
                                         : static_cast<std::uint32_t>(one | other << 2));
    }
  return a;
}

/// A word for each thread; those that the selector does not name hold anything.
std::vector<std::uint32_t> metadata_of(const Format& format, const SparseA& a, int selector,
                                       std::mt19937& random) {
  std::vector<std::uint32_t> words(128);
  for (std::uint32_t thread = 0; thread < 128; ++thread) {
    const std::uint32_t in_four = thread % 4, row = thread / 32 * 16 + thread % 32 / 4;
    std::uint32_t& word = words[thread];
    if (format.bits == 8) {  // 32 columns of one row
      for (std::uint32_t i = 0; i < 8; ++i)
        word |= a.chunks[row + in_four % 2 * 8][in_four / 2 * 8 + i] << 4 * i;
    } else if (static_cast<int>(in_four / 2) == selector) {  // half a row, and half of row + 8
      for (std::uint32_t i = 0; i < 4; ++i) {
        word |= a.chunks[row][in_four % 2 * 4 + i] << 4 * i;
        word |= a.chunks[row + 8][in_four % 2 * 4 + i] << (16 + 4 * i);
      }
    } else {
      word = static_cast<std::uint32_t>(random());
    }
  }
  return words;
}

void check_sparse(const ProductCase& one, std::mt19937& random) {
  const SparseA a = make_sparse(one.a, one.k(), random);
  const Matrix b = make_matrix(random, one.b, one.n, one.k());
  check_product(one, a.packed, a.whole, b, metadata_of(one.a, a, one.selector, random), random);
}

/// B (64 bytes of k by 8 columns, no swizzle) at `space`, every pair of halves a word of `p0`; A is
/// of ones and halves, D = A * B + %d of one lane comes out.
const std::string kUniform = R"(
ld.param.u64 %d1, [p0];
ld.param.u64 %d2, [p1];
ld.param.u32 %r9, [p2];
mov.u32 %r1, space;
mad.lo.u32 %r7, %r0, 4, %r1;
mad.wide.u32 %d6, %r0, 4, %d1;
ld.global.u32 %r8, [%d6];
st.shared.u32 [%r7], %r8;
shr.u32 %r8, %r1, 4;
cvt.u64.u32 %d5, %r8;
or.b64 %d5, %d5, 0x0000000800080000;
mov.u32 %r20, 0x3c003c00;
mov.f32 %f0, 0f3F800000;
mov.f32 %f1, %f0;
mov.f32 %f2, %f0;
mov.f32 %f3, %f0;
fence.proxy.async;
bar.sync 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3},
  {%r20, %r20, %r20, %r20}, %d5, %r9, 1, 1, 1, 1, 0;
)";
const std::string kWaitAndKeep = R"(
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %d2, %r0, 4, %d2;
st.global.f32 [%d2], %f2;
)";

}  // namespace

TEST_CASE("wgmma.sp: every type, swizzle, selector and source of A") {
  std::mt19937 random(11);
  struct Types {
    Format a, b;
    const char* sum;
  };
  const std::vector<Types> all{{kF16, kF16, "f32"},   {kF16, kF16, "f16"},   {kBf16, kBf16, "f32"},
                               {kTf32, kTf32, "f32"}, {kE4m3, kE4m3, "f32"}, {kE4m3, kE5m2, "f32"},
                               {kE5m2, kE4m3, "f16"}, {kE5m2, kE5m2, "f16"}, {kE4m3, kE4m3, "f16"},
                               {kE5m2, kE4m3, "f32"}, {kS8, kS8, "s32"},     {kU8, kS8, "s32"},
                               {kS8, kU8, "s32"},     {kU8, kU8, "s32"}};
  const std::vector<int> widths{8, 24, 64, 128, 256};
  int round = 0;
  for (const Types& types : all)
    for (const int mode : {0, 1, 2})
      for (const bool registers : {false, true})
        for (const int selector : {0, 1}) {
          if (selector == 1 && types.a.bits == 8) continue;
          ProductCase one{types.a, types.b, types.sum};
          one.n = widths[static_cast<std::size_t>(round) % widths.size()];
          one.swizzle_a = mode == 0 ? 3 : mode;  // a packed A fits rows of 32 bytes
          one.swizzle_b = mode;
          one.registers = registers;
          one.selector = selector;
          one.adds = round % 3 != 0;
          one.step = mode == 1 ? round % 3 : 0;
          if (types.a.floating) {
            one.sign_a = round % 4 == 1 ? -1 : 1;
            one.sign_b = round % 8 >= 5 ? -1 : 1;
          } else {
            one.behind_types = round % 2 == 0 ? ".satfinite" : "";
          }
          check_sparse(one, random);
          ++round;
        }
}

TEST_CASE("wgmma.sp: rows that follow each other, for A and B") {
  std::mt19937 random(12);
  for (int mode = 0; mode < 4; ++mode)
    for (int which = 1; which < 4; ++which) {
      ProductCase one{which == 2 ? kBf16 : kF16, which == 2 ? kBf16 : kF16, "f32"};
      one.n = mode == 0 ? 40 : mode == 1 ? 128 : 64;
      one.selector = which % 2;
      one.transposed_a = (which & 1) != 0;
      one.transposed_b = (which & 2) != 0;
      one.swizzle_a = mode;
      one.swizzle_b = mode == 3 && !one.transposed_b ? 2 : mode;
      check_sparse(one, random);
    }
}

TEST_CASE("wgmma.sp: all widths") {
  std::mt19937 random(13);
  for (int n = 8; n <= 256; n += 8) {
    ProductCase one;
    one.n = n;
    one.swizzle_a = one.swizzle_b = 2;
    one.selector = n / 8 % 2;
    check_sparse(one, random);
  }
}

TEST_CASE("wgmma.sp: what no index names takes no part, not even infinities") {
  // Of every four steps of k the first two are ones, the others infinite.
  std::vector<std::uint32_t> b;
  for (int i = 0; i < 128; ++i) b.push_back(i % 2 == 0 ? 0x3c003c00 : 0x7c007c00);
  const auto run = [&](std::uint32_t metadata) {
    HopperRunner runner;
    runner.block = {128, 1, 1};
    const std::uint64_t in = runner.upload(b), out = runner.upload(std::vector<float>(128));
    require_fine(runner.run(kUniform + kWaitAndKeep, {in, out, metadata},
                            ".shared .align 128 .b8 space[512];\n"));
    return runner.download<float>(out, 128);
  };
  CHECK(run(0x44444444) == std::vector<float>(128, 17));
  CHECK(run(0xeeeeeeee) == std::vector<float>(128, std::numeric_limits<float>::infinity()));
}

TEST_CASE("wgmma.sp: the second half of B is in flight too") {
  const auto run = [](const std::string& change, bool race) {
    HopperRunner runner;
    runner.block = {128, 1, 1};
    runner.checks.race = race;
    const std::uint64_t in = runner.upload(std::vector<std::uint32_t>(128, 0x3c003c00));
    const std::uint64_t out = runner.upload(std::vector<float>(128));
    Fault report = runner.run(kUniform + change + kWaitAndKeep, {in, out, 0x44444444},
                              ".shared .align 128 .b8 space[640];\n");
    return std::make_pair(report, runner.findings.size());
  };
  CHECK(run("", true).second == 0);
  // 384: the fourth chunk of k; 512: behind B. One thread writes, so that the product is the other.
  const auto change = [](int place) {
    return "setp.eq.u32 %p5, %r0, 0;\n@%p5 st.shared.u32 [%r1+" + std::to_string(place) + "], 7;\n";
  };
  for (const int place : {0, 256, 384, 496, 512}) {
    INFO(place);
    const auto [fine, found] = run(change(place), true);
    CHECK(fine.kind == FaultKind::none);
    CHECK((found > 0) == (place < 512));
    CHECK(run(change(place), false).second == 0);
  }
}

TEST_CASE("wgmma.sp: s32 sums wrap, or saturate with .satfinite") {
  std::mt19937 random(14);
  for (const bool saturate : {false, true}) {
    HopperRunner runner;
    runner.block = {128, 1, 1};
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(128));
    require_fine(
        runner.run(R"(
ld.param.u64 %d1, [p0];
mov.u32 %r1, space;
mov.u32 %r20, 0x7f7f7f7f;
mad.lo.u32 %r7, %r0, 4, %r1;
st.shared.u32 [%r7], %r20;
shr.u32 %r8, %r1, 4;
cvt.u64.u32 %d5, %r8;
or.b64 %d5, %d5, 0x0000000800080000;
mov.u32 %r30, 0x7fffff00;
mov.u32 %r31, %r30;
mov.u32 %r32, %r30;
mov.u32 %r33, %r30;
mov.u32 %r9, 0x44444444;
fence.proxy.async;
bar.sync 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.u8)" +
                       std::string(saturate ? ".satfinite" : "") +
                       R"( {%r30, %r31, %r32, %r33}, {%r20, %r20, %r20, %r20}, %d5, %r9, 0, 1;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %d1, %r0, 4, %d1;
st.global.u32 [%d1], %r33;
)",
                   {out}, ".shared .align 128 .b8 space[512];\n"));
    const std::uint32_t expected = saturate ? 0x7fffffff : 0x7fffff00u + 32 * 127 * 127;
    CHECK(runner.download<std::uint32_t>(out, 128) == std::vector<std::uint32_t>(128, expected));
  }
}

namespace {

/// The message of the refusal, or of the finding; empty when all is well.
std::string refusal(const std::string& instruction) {
  HopperRunner runner;
  runner.block = {128, 1, 1};
  try {
    const Fault report =
        runner.run("mov.u32 %r1, space;\nmov.b64 %d5, 0xc000000800080000;\n" + instruction, {},
                   ".shared .align 1024 .b8 space[4096];\n");
    return report.kind == FaultKind::none ? std::string() : report.message;
  } catch (const std::exception& error) {
    return error.what();
  }
}

void expect_refusal(const std::string& instruction, const std::string& part) {
  const std::string message = refusal(instruction);
  INFO(message);
  CHECK(contains(message, part));
}

std::string halves(const std::string& metadata, const std::string& selector,
                   const std::string& constants, const std::string& word = "sp") {
  return "wgmma.mma_async." + word +
         ".sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d4, " + metadata + ", " +
         selector + ", 1, " + constants + ";\n";
}

std::string bytes(const std::string& selector, const std::string& shape = "m64n8k64") {
  return "wgmma.mma_async.sp.sync.aligned." + shape +
         ".s32.s8.s8 {%r10, %r11, %r12, %r13}, %d4, %d4, %r9, " + selector + ", 1;\n";
}

}  // namespace

TEST_CASE("wgmma.sp: what ptxas refuses is refused") {
  CHECK(refusal(halves("%r9", "1", "1, -1, 0, 1")) == "");
  CHECK(refusal(halves("{%r9}", "0", "1, -1, 0, 1")) == "");
  CHECK(refusal(bytes("0")) == "");
  expect_refusal(halves("%r9", "2", "1, 1, 0, 0"), "selector 2 must be 0 to 1 here");
  expect_refusal(bytes("1"), "the sparsity selector 1 must be 0 here");
  expect_refusal(halves("%r9", "%r8", "1, 1, 0, 0"), "operand 5: a constant is needed");
  expect_refusal(halves("7", "0", "1, 1, 0, 0"), "operand 4: a register is needed");
  expect_refusal(halves("%h9", "0", "1, 1, 0, 0"), "operand 4: register %h9");
  expect_refusal(halves("%r9", "0", "0, 1, 0, 0"), "operand 7: 0 must be -1 or 1");
  expect_refusal(halves("%r9", "0", "1, 1, 0, 2"), "operand 10: 2 must be 0 or 1");
  CHECK(refusal(halves("%r9", "0", "1, 1")) != "");
  CHECK(refusal(halves("%r9", "0", "1, 1, 0, 0", "sp::ordered_metadata")) != "");
  CHECK(refusal(bytes("0", "m64n8k32")) != "");
}

TEST_CASE("wgmma.sp: rows of 32 bytes, half of what B needs, are a finding") {
  std::string wide = halves("%r9", "0", "1, 1, 0, 0");
  wide.replace(wide.rfind("%d4"), 3, "%d5");
  const std::string message = refusal(wide);
  CHECK(contains(message, "swizzle: use that of 64 or 128 bytes"));
  wide.replace(wide.rfind("0, 0;"), 5, "0, 1;");  // there they follow each other along n
  CHECK(refusal(wide) == "");
}
