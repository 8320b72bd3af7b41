// ldmatrix, stmatrix, movmatrix, and wmma from memory to memory.
#include "unit/sim/ops/matrix/matrix_reference.h"
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <cstdint>

namespace kernwright::sim {
namespace {

/// Fills 1 KiB of shared memory with 16-bit elements 0, 1, 2, ... and sets %r1 to the row that lane
/// i addresses: row i (16 bytes each) in reversed order within each 8.
const std::string kTile =
    ".shared .align 16 .b8 tile[1024];\n"
    "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 16; add.s64 %d9, %d9, %d8; mov.u32 %r1, tile;\n"
    "mov.u32 %r2, 0; mul.lo.u32 %r3, %r0, 32; add.u32 %r4, %r1, %r3; shl.b32 %r5, %r0, 4;\n"
    "FILL: cvt.u16.u32 %h1, %r5; st.shared.u16 [%r4], %h1; add.u32 %r4, %r4, 2; add.u32 %r5, %r5, "
    "1;\n"
    "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 16; @%p1 bra FILL; bar.sync 0;\n"
    "xor.b32 %r6, %r0, 7; shl.b32 %r6, %r6, 4; add.u32 %r1, %r1, %r6;\n"
    "mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;\n";
const std::string kStore4 = "st.global.v4.b32 [%d9], {%r20, %r21, %r22, %r23};\n";

/// Element (row, column) of 8x8 tile t as the addresses above select it.
std::uint32_t element(int t, int row, int column) {
  return static_cast<std::uint32_t>((t * 8 + (7 - row)) * 8 + column);
}

TEST_CASE("ldmatrix: x1, x2, x4, plain and transposed, by shared and generic addresses") {
  for (const int tiles : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      for (const bool generic : {false, true}) {
        OpsRunner runner;
        const auto to = runner.allocate(32 * 16);
        const std::string list = tiles == 1   ? "{%r20}"
                                 : tiles == 2 ? "{%r20, %r21}"
                                              : "{%r20, %r21, %r22, %r23}";
        const auto report = runner.run(
            kTile +
                "cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1;\nldmatrix.sync.aligned.m8n8.x" +
                std::to_string(tiles) + (trans ? ".trans" : "") + (generic ? "" : ".shared") +
                ".b16 " + list + (generic ? ", [%d1];\n" : ", [%r1];\n") + kStore4,
            {to});
        REQUIRE(report.message == "");
        const auto result = runner.download<std::uint32_t>(to, 32 * 4);
        for (int lane = 0; lane < 32; ++lane) {
          for (int t = 0; t < 4; ++t) {
            const int g = lane / 4, c = lane % 4 * 2;
            const std::uint32_t low = trans ? element(t, c, g) : element(t, g, c);
            const std::uint32_t high = trans ? element(t, c + 1, g) : element(t, g, c + 1);
            CHECK(result[static_cast<std::size_t>(lane * 4 + t)] ==
                  (t < tiles ? low | high << 16 : 0u));
          }
        }
      }
    }
  }
}

TEST_CASE("stmatrix undoes ldmatrix; movmatrix transposes between lanes") {
  OpsRunner runner;
  const auto to = runner.allocate(32 * 16);
  const auto report = runner.run(
      kTile +
          "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20, %r21}, [%r1];\n"
          "movmatrix.sync.aligned.m8n8.trans.b16 %r22, %r20; bar.sync 0;\n"
          "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r1+512], {%r20, %r21}; bar.sync 0;\n"
          "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r23}, [%r1+640];\n" +
          kStore4,
      {to});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint32_t>(to, 32 * 4);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, c = lane % 4 * 2;
    const auto at = static_cast<std::size_t>(lane * 4);
    CHECK(result[at + 2] == (element(0, c, g) | element(0, c + 1, g) << 16));
    CHECK(result[at + 3] == result[at + 1]);
  }
}

TEST_CASE("ldmatrix: the row that lies outside or is misaligned is named by its lane") {
  OpsRunner runner;
  const auto to = runner.allocate(32 * 16);
  const auto outside = runner.run(
      kTile + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r1+544];\n",
      {to});
  CHECK(outside.kind == FaultKind::bounds);
  CHECK(outside.thread[0] == 24);  // the row at 16 * (24 ^ 7) = 496 is the first past the end
  const auto misaligned =
      runner.run(kTile + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r1+8];\n", {to});
  CHECK(misaligned.kind == FaultKind::alignment);
}

struct WmmaCase {
  int m, n, k;
  ElementType factor;
  std::string c, d;  ///< types of the sums
  int registers_a, registers_b;
};

std::string list_of(const std::string& prefix, int first, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + prefix + std::to_string(first + i);
  return list + "}";
}

std::string sum_registers(const std::string& type, int m, int n, int first) {
  const int count = m * n / 32 / (type == "f16" ? 2 : 1);
  return list_of(type == "f32" ? "%f" : type == "f64" ? "%g" : "%r", first, count);
}

/// Packs rows * columns values of `bits` bits in row- or column-major order.
template <typename F>
std::vector<std::uint8_t> pack(int rows, int columns, bool row_major, int bits, F value) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(rows * columns * bits / 8), 0);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const std::uint64_t v = value(r, c);
      const auto at = static_cast<std::size_t>(row_major ? r * columns + c : c * rows + r);
      if (bits < 8) {
        out[at * static_cast<unsigned>(bits) / 8] |=
            static_cast<std::uint8_t>(v << (at * static_cast<unsigned>(bits) % 8));
      } else {
        for (int b = 0; b < bits / 8; ++b)
          out[at * static_cast<unsigned>(bits / 8) + static_cast<unsigned>(b)] =
              static_cast<std::uint8_t>(v >> (8 * b));
      }
    }
  }
  return out;
}

std::uint64_t encode_sum(const std::string& type, double value) {
  if (type == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "f64") return std::bit_cast<std::uint64_t>(value);
  if (type == "f16") return encode_float(value, 5, 10);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
}

int bits_of(const std::string& type) { return type == "f64" ? 64 : type == "f16" ? 16 : 32; }

/// p0 = a, p1 = b, p2 = c, p3 = d: loads, multiplies, stores.
std::string wmma_body(const WmmaCase& test, bool row_a, bool row_b, bool row_c) {
  const bool is_half = test.factor.is("f16"), is_double = test.factor.is("f64");
  const std::string shape =
      ".m" + std::to_string(test.m) + "n" + std::to_string(test.n) + "k" + std::to_string(test.k);
  const auto layout = [](bool row) { return std::string(row ? ".row" : ".col"); };
  const std::string factor = is_double ? "%g" : "%r";
  const std::string list_a = list_of(factor, 1, test.registers_a),
                    list_b = list_of(factor, 9, test.registers_b);
  const std::string list_c = sum_registers(test.c, test.m, test.n, is_double ? 2 : 17);
  const std::string list_d = sum_registers(test.d, test.m, test.n, is_double ? 4 : 25);
  const auto stride = [](int value) { return std::to_string(value); };
  const std::string types =
      is_half ? "." + test.d + "." + test.c
              : "." + test.d + "." + test.factor.name + "." + test.factor.name + "." + test.c;
  return "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; ld.param.u64 "
         "%d4, "
         "[p3];\n"
         "wmma.load.a.sync.aligned" +
         layout(row_a) + shape + ".global." + test.factor.name + " " + list_a + ", [%d1], " +
         stride(row_a ? test.k : test.m) +
         ";\n"
         "wmma.load.b.sync.aligned" +
         layout(row_b) + shape + ".global." + test.factor.name + " " + list_b + ", [%d2], " +
         stride(row_b ? test.n : test.k) +
         ";\n"
         "wmma.load.c.sync.aligned" +
         layout(row_c) + shape + ".global." + test.c + " " + list_c + ", [%d3], " +
         stride(row_c ? test.n : test.m) +
         ";\n"
         "wmma.mma.sync.aligned" +
         layout(row_a) + layout(row_b) + shape + types + " " + list_d + ", " + list_a + ", " +
         list_b + ", " + list_c +
         ";\n"
         "wmma.store.d.sync.aligned" +
         layout(row_c) + shape + ".global." + test.d + " [%d4], " + list_d + ", " +
         stride(row_c ? test.n : test.m) + ";\n";
}

void check_wmma(const WmmaCase& test, bool row_a, bool row_b, bool row_c) {
  OpsRunner runner;
  const auto value_a = [&](int r, int k) {
    return test.factor.sample(static_cast<unsigned>(r * 61 + k));
  };
  const auto value_b = [&](int k, int c) {
    return test.factor.sample(static_cast<unsigned>(k * 37 + c + 3));
  };
  const auto value_c = [&](int r, int c) { return (r * test.n + c) % 29 - 14.0; };
  const auto a = runner.upload(pack(test.m, test.k, row_a, test.factor.bits, [&](int r, int k) {
    return test.factor.encode(value_a(r, k));
  }));
  const auto b = runner.upload(pack(test.k, test.n, row_b, test.factor.bits, [&](int k, int c) {
    return test.factor.encode(value_b(k, c));
  }));
  const auto c = runner.upload(pack(test.m, test.n, row_c, bits_of(test.c), [&](int r, int col) {
    return encode_sum(test.c, value_c(r, col));
  }));
  const auto expected = pack(test.m, test.n, row_c, bits_of(test.d), [&](int r, int col) {
    double sum = value_c(r, col);
    for (int k = 0; k < test.k; ++k) sum += value_a(r, k) * value_b(k, col);
    return encode_sum(test.d, sum);
  });
  const auto d = runner.allocate(expected.size());
  const std::string body = wmma_body(test, row_a, row_b, row_c);
  INFO(body);
  REQUIRE(runner.run(body, {a, b, c, d}).message == "");
  CHECK(runner.download<std::uint8_t>(d, expected.size()) == expected);
}

TEST_CASE("wmma: load, multiply and store in all shapes, types and layouts") {
  const ElementType f16{"f16", 16}, bf16{"bf16", 16}, tf32{"tf32", 32}, f64{"f64", 64};
  const ElementType s8{"s8", 8}, u8{"u8", 8, false};
  const std::vector<WmmaCase> cases{
      {16, 16, 16, f16, "f32", "f32", 8, 8},  {32, 8, 16, f16, "f32", "f32", 8, 8},
      {8, 32, 16, f16, "f32", "f32", 8, 8},   {16, 16, 16, f16, "f16", "f16", 8, 8},
      {16, 16, 16, f16, "f16", "f32", 8, 8},  {16, 16, 16, f16, "f32", "f16", 8, 8},
      {32, 8, 16, f16, "f16", "f16", 8, 8},   {8, 32, 16, f16, "f16", "f16", 8, 8},
      {16, 16, 16, bf16, "f32", "f32", 4, 4}, {32, 8, 16, bf16, "f32", "f32", 8, 2},
      {8, 32, 16, bf16, "f32", "f32", 2, 8},  {16, 16, 8, tf32, "f32", "f32", 4, 4},
      {8, 8, 4, f64, "f64", "f64", 1, 1},     {16, 16, 16, s8, "s32", "s32", 2, 2},
      {32, 8, 16, u8, "s32", "s32", 4, 1},    {8, 32, 16, s8, "s32", "s32", 1, 4}};
  for (const WmmaCase& test : cases) {
    for (int layouts = 0; layouts < 8; ++layouts)
      check_wmma(test, (layouts & 1) != 0, (layouts & 2) != 0, (layouts & 4) != 0);
  }
}

TEST_CASE("wmma: 4-bit and 1-bit factors in their only layout") {
  check_wmma({8, 8, 32, {"s4", 4}, "s32", "s32", 1, 1}, true, false, true);
  check_wmma({8, 8, 32, {"u4", 4, false}, "s32", "s32", 1, 1}, true, false, false);
}

TEST_CASE("wmma.load: a matrix that leaves its allocation is a finding") {
  OpsRunner runner;
  const auto a = runner.allocate(16 * 16 * 2 - 2);
  const auto report =
      runner.run("ld.param.u64 %d1, [p0]; wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " +
                     list_of("%r", 1, 8) + ", [%d1], 16;\n",
                 {a});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.message.find("read of 512 bytes") != std::string::npos);
}

}  // namespace
}  // namespace kernwright::sim
