// wgmma against sums of exact products: types, widths, layouts in shared memory, A in registers.
#include "unit/sim/ops/matrix/wgmma_product.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;
using namespace kernwright::sim::testing::products;

namespace {

void check(const ProductCase& one, std::mt19937& random) {
  const Matrix a = make_matrix(random, one.a, 64, one.k());
  const Matrix b = make_matrix(random, one.b, one.n, one.k());
  check_product(one, a, a, b, std::vector<std::uint32_t>(128), random);
}

}  // namespace

TEST_CASE("wgmma: every type, swizzle and source of A") {
  std::mt19937 random(7);
  struct Types {
    Format a, b;
    const char* sum;
  };
  const std::vector<Types> all{{kF16, kF16, "f32"},   {kF16, kF16, "f16"},   {kBf16, kBf16, "f32"},
                               {kTf32, kTf32, "f32"}, {kE4m3, kE4m3, "f32"}, {kE4m3, kE5m2, "f32"},
                               {kE5m2, kE4m3, "f16"}, {kE5m2, kE5m2, "f16"}, {kS8, kS8, "s32"},
                               {kU8, kS8, "s32"},     {kS8, kU8, "s32"},     {kU8, kU8, "s32"},
                               {kBit, kBit, "s32"}};
  const std::vector<int> widths{8, 24, 64, 128, 256};
  int round = 0;
  for (const Types& types : all)
    for (int mode = 0; mode < 4; ++mode)
      for (const bool registers : {false, true}) {
        ProductCase one{types.a, types.b, types.sum};
        one.n = widths[static_cast<std::size_t>(round) % widths.size()];
        one.swizzle_a = one.swizzle_b = mode;
        one.registers = registers;
        one.adds = round % 3 != 0;
        one.step = mode == 1 ? round % 4 : mode == 2 ? round % 2 : 0;
        if (types.a.floating) {
          one.sign_a = round % 4 == 1 ? -1 : 1;
          one.sign_b = round % 8 >= 5 ? -1 : 1;
        }
        check(one, random);
        ++round;
      }
}

TEST_CASE("wgmma: rows that follow each other, for A and B") {
  std::mt19937 random(8);
  for (int mode = 0; mode < 4; ++mode)
    for (int which = 1; which < 4; ++which) {
      ProductCase one{which == 2 ? kBf16 : kF16, which == 2 ? kBf16 : kF16, "f32"};
      one.n = mode == 0 ? 40 : mode == 1 ? 128 : 64;
      one.swizzle_a = one.swizzle_b = mode;
      one.transposed_a = (which & 1) != 0;
      one.transposed_b = (which & 2) != 0;
      check(one, random);
    }
}

TEST_CASE("wgmma: all widths of halves") {
  std::mt19937 random(9);
  for (int n = 8; n <= 256; n += 8) {
    ProductCase one;
    one.n = n;
    one.swizzle_a = one.swizzle_b = 1;
    check(one, random);
  }
}

TEST_CASE("wgmma: a descriptor that leaves shared memory is a finding") {
  HopperRunner runner;
  runner.block = {128, 1, 1};
  const Fault report = runner.run(R"(
mov.b64 %d4, 0x4000004000010000;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d4, 0, 1, 1, 0, 0;
)",
                                  {}, ".shared .align 128 .b8 space[1024];\n.shared .b32 other;\n");
  INFO(report.to_string());
  CHECK(report.kind == FaultKind::bounds);
  CHECK(contains(report.opcode, "wgmma"));
}

TEST_CASE("stmatrix: tiles go back to where ldmatrix finds them") {
  HopperRunner runner;
  std::vector<std::uint32_t> values(128);
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = (2 * i + 1) << 16 | 2 * i;
  for (const std::string trans : {"", ".trans"}) {
    const std::uint64_t in = runner.upload(values), out = runner.upload(values);
    require_fine(runner.run(R"(
mov.u32 %r1, tile;
ld.param.u64 %d1, [p0];
ld.param.u64 %d2, [p1];
mad.wide.u32 %d1, %r0, 16, %d1;
mad.wide.u32 %d2, %r0, 16, %d2;
mad.lo.u32 %r2, %r0, 16, %r1;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d1];
stmatrix.sync.aligned.m8n8.x4)" +
                                trans + R"(.shared.b16 [%r2], {%r10, %r11, %r12, %r13};
ldmatrix.sync.aligned.m8n8.x4)" +
                                trans + R"(.shared.b16 {%r14, %r15, %r16, %r17}, [%r2];
st.global.v4.u32 [%d2], {%r14, %r15, %r16, %r17};
)",
                            {in, out}, ".shared .align 128 .b8 tile[512];\n"));
    CHECK(runner.download<std::uint32_t>(out, 128) == values);
  }
}
