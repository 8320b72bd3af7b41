// Loads and stores of every type, width, vector length and lane pattern, against scalar references.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>

namespace kernwright::sim {
namespace {

/// p0 = source, p1 = indices (u32 per thread), p2 = destination. Loads element index[tid] and
/// stores it as 64 bits at destination[tid].
std::string gather_body(const std::string& type, std::size_t size, const std::string& reg) {
  const std::string bytes = std::to_string(size);
  return "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; ld.param.u64 %d2, [p2];\n"
         "mul.wide.u32 %d3, %r0, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r1, [%d4];\n"
         "mul.wide.u32 %d5, %r1, " +
         bytes +
         "; add.s64 %d6, %d0, %d5;\n"
         "mov.b64 %d8, 0; mov.b32 %r8, 0; mov.b16 %h8, 0;\n"
         "ld.global." +
         type + " " + reg +
         ", [%d6];\n"
         "mul.wide.u32 %d7, %r0, 8; add.s64 %d7, %d2, %d7; st.global.b64 [%d7], 0;\n"
         "st.global." +
         (reg[1] == 'd'   ? "b64"
          : reg[1] == 'r' ? "b32"
                          : "b16") +
         " [%d7], " + reg + ";\n";
}

std::vector<std::vector<std::uint32_t>> index_patterns() {
  std::vector<std::vector<std::uint32_t>> all;
  const auto add = [&](auto f) {
    std::vector<std::uint32_t> one(32);
    for (std::uint32_t i = 0; i < 32; ++i) one[i] = f(i);
    all.push_back(one);
  };
  add([](std::uint32_t) { return 7u; });                      // uniform
  add([](std::uint32_t i) { return i; });                     // contiguous
  add([](std::uint32_t i) { return i / 16 * 20; });           // two uniform halves
  add([](std::uint32_t i) { return i / 16 * 33 + i % 16; });  // two contiguous halves
  add([](std::uint32_t i) { return i % 16; });                // the same half twice
  add([](std::uint32_t i) { return 31 - i; });                // reversed
  add([](std::uint32_t i) { return i * 3 % 32; });            // strided
  add([](std::uint32_t i) { return i == 31 ? 40u : i; });     // all but one
  return all;
}

template <typename Mem>
void check_load(const std::string& type, const std::string& reg, int reg_bytes) {
  OpsRunner runner;
  std::mt19937_64 random(42);
  std::vector<Mem> source(64);
  for (Mem& value : source) value = static_cast<Mem>(random());
  const auto from = runner.upload(source);
  const auto to = runner.allocate(32 * 8);
  for (const auto& indices : index_patterns()) {
    const auto map = runner.upload(indices);
    REQUIRE(runner.run(gather_body(type, sizeof(Mem), reg), {from, map, to}).message == "");
    const auto result = runner.download<std::uint64_t>(to, 32);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(source[indices[i]]));
      const auto expected =
          reg_bytes == 8 ? wide : wide & ((std::uint64_t{1} << (8 * reg_bytes)) - 1);
      INFO(type << " into " << reg << ", lane " << i << " index " << indices[i]);
      CHECK(result[i] == expected);
    }
  }
}

TEST_CASE("ld: every integer type into every register width, in every lane pattern") {
  check_load<std::uint8_t>("u8", "%h8", 2);
  check_load<std::uint8_t>("u8", "%r8", 4);
  check_load<std::uint8_t>("b8", "%d8", 8);
  check_load<std::int8_t>("s8", "%h8", 2);
  check_load<std::int8_t>("s8", "%r8", 4);
  check_load<std::int8_t>("s8", "%d8", 8);
  check_load<std::uint16_t>("u16", "%h8", 2);
  check_load<std::uint16_t>("u16", "%r8", 4);
  check_load<std::int16_t>("s16", "%r8", 4);
  check_load<std::int16_t>("s16", "%d8", 8);
  check_load<std::uint32_t>("b32", "%r8", 4);
  check_load<std::uint32_t>("u32", "%d8", 8);
  check_load<std::int32_t>("s32", "%d8", 8);
  check_load<std::uint64_t>("u64", "%d8", 8);
}

/// Lanes below `active` store tid-dependent values to element index[tid].
template <typename Mem>
void check_store(const std::string& type, const std::string& reg, unsigned active) {
  OpsRunner runner;
  const std::string body =
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];\n"
      "setp.ge.u32 %p1, %r0, " +
      std::to_string(active) +
      "; @%p1 bra DONE;\n"
      "mul.wide.u32 %d3, %r0, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r1, [%d4];\n"
      "mul.wide.u32 %d5, %r1, " +
      std::to_string(sizeof(Mem)) +
      "; add.s64 %d6, %d2, %d5;\n"
      "mad.lo.u32 %r8, %r0, 40503, 911; cvt.u64.u32 %d8, %r8; cvt.u16.u32 %h8, %r8;\n"
      "mul.lo.u64 %d8, %d8, 1000003;\n"
      "st.global." +
      type + " [%d6], " + reg + ";\nDONE:\n";
  for (const auto& indices : index_patterns()) {
    const auto map = runner.upload(indices);
    std::vector<Mem> expected(64, 17);
    const auto to = runner.upload(expected);
    REQUIRE(runner.run(body, {map, to}).message == "");
    for (std::uint32_t i = 0; i < active; ++i) {
      const std::uint32_t value = i * 40503 + 911;
      expected[indices[i]] =
          static_cast<Mem>(reg[1] == 'd' ? std::uint64_t{value} * 1000003 : value);
    }
    INFO(type << " from " << reg << ", " << active << " lanes");
    CHECK(runner.download<Mem>(to, 64) == expected);
  }
}

TEST_CASE(
    "st: types, register widths and patterns; the highest lane wins; masked lanes write nothing") {
  for (const unsigned active : {32u, 31u, 5u, 1u}) {
    check_store<std::uint8_t>("u8", "%h8", active);
    check_store<std::uint8_t>("b8", "%r8", active);
    check_store<std::uint16_t>("s16", "%d8", active);
    check_store<std::uint32_t>("u32", "%r8", active);
    check_store<std::uint64_t>("b64", "%d8", active);
  }
}

TEST_CASE("ld and st of vectors: v2 and v4 of each size, contiguous, half-warp and scattered") {
  for (const int vector : {2, 4}) {
    for (const std::size_t size : {1u, 2u, 4u, 8u}) {
      if (vector == 4 && size == 8) continue;
      const std::size_t bytes = size * static_cast<std::size_t>(vector);
      const std::string type = "b" + std::to_string(size * 8);
      const std::string reg = size == 8 ? "%d" : size == 4 ? "%r" : "%h";
      std::string list = reg + "20";
      for (int v = 1; v < vector; ++v) list += ", " + reg + std::to_string(20 + v);
      const std::string shape = ".v" + std::to_string(vector) + "." + type;
      const std::string body =
          "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; ld.param.u64 %d2, [p2];\n"
          "mul.wide.u32 %d3, %r0, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r1, [%d4];\n"
          "mul.wide.u32 %d5, %r1, " +
          std::to_string(bytes) +
          ";\n"
          "add.s64 %d6, %d0, %d5; add.s64 %d7, %d2, %d5;\n"
          "ld.global" +
          shape + " {" + list +
          "}, [%d6];\n"
          "st.global" +
          shape + " [%d7], {" + list + "};\n";
      OpsRunner runner;
      std::vector<std::uint8_t> source(64 * bytes);
      std::iota(source.begin(), source.end(), std::uint8_t{3});
      const auto from = runner.upload(source);
      for (const auto& indices : index_patterns()) {
        std::vector<std::uint8_t> expected(source.size(), 0);
        const auto to = runner.upload(expected);
        REQUIRE(runner.run(body, {from, runner.upload(indices), to}).message == "");
        for (const std::uint32_t index : indices)
          std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(index * bytes), bytes,
                      expected.begin() + static_cast<std::ptrdiff_t>(index * bytes));
        INFO("v" << vector << " of " << size << " bytes");
        CHECK(runner.download<std::uint8_t>(to, source.size()) == expected);
      }
    }
  }
}

TEST_CASE("ld and st: values in wider registers of another kind keep their bits, zeros above") {
  OpsRunner runner;
  const std::vector<std::uint32_t> words{0x89abcdef, 0x01234567, 0xfedcba98, 0x76543210};
  const auto from = runner.upload(words), to = runner.upload(std::vector<std::uint32_t>(16, ~0u));
  const Fault report = runner.run(
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];\n"
      "setp.ne.u32 %p1, %r0, 0; @%p1 bra END;\n"
      "ld.global.b16 %f1, [%d1]; st.global.b32 [%d2], %f1;\n"
      "ld.global.b8 %g1, [%d1+3]; st.global.b64 [%d2+8], %g1;\n"
      "ld.global.f32 %d3, [%d1]; st.global.b64 [%d2+16], %d3;\n"
      "mov.b64 %d4, 0x1122334455667788; st.global.f32 [%d2+4], %d4;\n"
      "mov.b64 %g2, %d4; st.global.b16 [%d2+24], %g2; st.global.b32 [%d2+28], %g2;\n"
      "ld.global.v2.f32 {%r4, %f4}, [%d1+8]; st.global.v2.f32 [%d2+32], {%f4, %r4};\n"
      "ld.global.v2.f64 {%d5, %g5}, [%d1]; st.global.v2.f64 [%d2+48], {%g5, %d5};\nEND:\n",
      {from, to});
  REQUIRE(report.message == "");
  const std::vector<std::uint32_t> expected{
      0xcdef,     0x55667788, 0x89, 0,   0x89abcdef, 0,          0xffff7788, 0x55667788,
      0x76543210, 0xfedcba98, ~0u,  ~0u, 0xfedcba98, 0x76543210, 0x89abcdef, 0x01234567};
  CHECK(runner.download<std::uint32_t>(to, 16) == expected);
  for (const std::string form :
       {"ld.global.u16 %f1, [%d1];", "ld.global.f32 %g1, [%d1];", "st.global.u8 [%d1], %g1;",
        ".reg .u32 x; ld.global.f32 x, [%d1];", "ld.global.v2.u32 {%f1, %f2}, [%d1];"})
    CHECK_THROWS(runner.run(form, {from}));
}

TEST_CASE("ld: sink elements are skipped and a destination may be the address register") {
  OpsRunner runner;
  const auto location = runner.upload<std::uint64_t>({11, 22});
  const auto pointer = runner.upload<std::uint64_t>({location});
  const auto to = runner.allocate(16);
  const auto report = runner.run(
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];\n"
      "ld.global.u64 %d1, [%d1]; ld.global.v2.u64 {_, %d1}, [%d1];\n"
      "setp.ne.u32 %p1, %r0, 0; @%p1 bra DONE; st.global.u64 [%d2], %d1;\nDONE:\n",
      {pointer, to});
  CHECK(report.message == "");
  CHECK(runner.download<std::uint64_t>(to, 1)[0] == 22);
}

TEST_CASE("shared, local, constant and generic addresses reach the same bytes by either way") {
  OpsRunner runner;
  const auto to = runner.allocate(32 * 16);
  const auto report = runner.run(
      ".shared .align 16 .b8 tile[256]; .local .align 8 .b8 mine[32];\n"
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 16; add.s64 %d9, %d9, %d8;\n"
      "mov.u32 %r1, tile; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; mul.lo.u32 %r4, %r0, 3;\n"
      "st.shared.u32 [%r3+4], %r4;\n"  // by a 32-bit shared address
      "cvt.u64.u32 %d1, %r3; cvta.shared.u64 %d2, %d1; ld.u32 %r5, [%d2+4];\n"  // generic
      "cvta.to.shared.u64 %d3, %d2; ld.shared.u32 %r6, [%d3+4];\n"              // 64-bit shared
      "st.global.u32 [%d9], %r5; st.global.u32 [%d9+4], %r6;\n"
      "mov.u64 %d4, mine; st.local.u32 [%d4+8], %r4; cvta.local.u64 %d5, %d4;\n"
      "ld.u32 %r7, [%d5+8]; add.u32 %r7, %r7, 1; st.u32 [%d5+8], %r7; ld.local.u32 %r8, [%d4+8];\n"
      "st.global.u32 [%d9+8], %r8;\n"
      "mul.wide.u32 %d6, %r0, 4; mov.u64 %d7, table; and.b64 %d6, %d6, 15; add.s64 %d7, %d7, %d6;\n"
      "ld.const.u32 %r9, [%d7]; st.global.u32 [%d9+12], %r9;\n",
      {to}, ".const .align 4 .u32 table[4] = {100, 200, 300, 400};");
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint32_t>(to, 32 * 4);
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(result[i * 4] == i * 3);
    CHECK(result[i * 4 + 1] == i * 3);
    CHECK(result[i * 4 + 2] == i * 3 + 1);
    CHECK(result[i * 4 + 3] == (i % 4 + 1) * 100);
  }
}

TEST_CASE("one warp may read global, shared and local memory by one generic load") {
  OpsRunner runner;
  const auto from = runner.upload<std::uint32_t>({1000});
  const auto to = runner.allocate(32 * 4);
  const auto report = runner.run(
      ".shared .align 4 .u32 s; .local .align 4 .u32 l;\n"
      "ld.param.u64 %d0, [p0]; ld.param.u64 %d9, [p1]; mul.wide.u32 %d8, %r0, 4;\n"
      "add.s64 %d9, %d9, %d8; mov.u32 %r2, 2000; st.shared.u32 [s], %r2; st.local.u32 [l], %r0;\n"
      "mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; mov.u64 %d2, l; cvta.local.u64 %d2, %d2;\n"
      "and.b32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 1; setp.eq.u32 %p2, %r3, 2;\n"
      "selp.b64 %d3, %d1, %d0, %p1; selp.b64 %d3, %d2, %d3, %p2;\n"
      "ld.u32 %r4, [%d3]; st.global.u32 [%d9], %r4;\n"
      "isspacep.shared %p3, %d3; isspacep.local %p4, %d3; isspacep.global %p5, %d3;\n"
      "@%p3 add.u32 %r4, %r4, 1; @%p4 add.u32 %r4, %r4, 2; @%p5 add.u32 %r4, %r4, 3;\n"
      "st.global.u32 [%d9], %r4;\n",
      {from, to});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint32_t>(to, 32);
  for (std::uint32_t i = 0; i < 32; ++i)
    CHECK(result[i] == (i % 4 == 1 ? 2001u : i % 4 == 2 ? i + 2 : 1003u));
}

TEST_CASE("kernel parameters can be indexed and their generic address works") {
  OpsRunner runner;
  const auto to = runner.allocate(32 * 8);
  const auto report = runner.run(
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 8; add.s64 %d9, %d9, %d8;\n"
      "and.b32 %r1, %r0, 1; mul.wide.u32 %d1, %r1, 8; mov.b64 %d2, p1; add.s64 %d2, %d2, %d1;\n"
      "ld.param.u64 %d3, [%d2]; cvta.param.u64 %d4, %d2; ld.u64 %d5, [%d4];\n"
      "add.s64 %d3, %d3, %d5; st.global.u64 [%d9], %d3;\n",
      {to, 5, 70});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint64_t>(to, 32);
  for (std::size_t i = 0; i < 32; ++i) CHECK(result[i] == (i % 2 == 0 ? 10u : 140u));
}

TEST_CASE("a loop that walks memory keeps its plan and still ends at the allocation's edge") {
  OpsRunner runner;
  std::vector<std::uint32_t> source(32 * 10);
  std::iota(source.begin(), source.end(), 0u);
  const auto from = runner.upload(source);
  const auto to = runner.allocate(32 * 4);
  const std::string body =
      "ld.param.u64 %d0, [p0]; ld.param.u64 %d9, [p1]; ld.param.u64 %d7, [p2];\n"
      "mul.wide.u32 %d8, %r0, 4; add.s64 %d9, %d9, %d8; add.s64 %d0, %d0, %d8;\n"
      "cvt.u32.u64 %r5, %d7; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
      "LOOP: ld.global.u32 %r3, [%d0]; add.u32 %r2, %r2, %r3; add.s64 %d0, %d0, 128;\n"
      "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r5; @%p1 bra LOOP; st.global.u32 [%d9], %r2;\n";
  REQUIRE(runner.run(body, {from, to, 10}).message == "");
  const auto sums = runner.download<std::uint32_t>(to, 32);
  for (std::uint32_t i = 0; i < 32; ++i) CHECK(sums[i] == 10 * i + 32 * 45);
  const auto report = runner.run(body, {from, to, 11});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.address == from + 1280);
  CHECK(report.thread[0] == 0);
}

}  // namespace
}  // namespace kernwright::sim
