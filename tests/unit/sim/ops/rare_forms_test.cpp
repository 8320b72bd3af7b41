// Forms that compilers rarely write: lop3 with a predicate, 128-bit registers, alloca, registers
// that read as zero, cache policies, small packed integers.
#include "unit/sim/exec/control_support.h"
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <functional>

using namespace kernwright::sim;
using namespace kernwright::sim::testing;

TEST_CASE("lop3 with a predicate joins d != 0 with another predicate") {
  // Per thread: a = lane, b = lane / 4, c = lane / 8; q holds for odd lanes.
  for (const bool is_and : {false, true}) {
    for (const unsigned table : {0x00u, 0x80u, 0x3cu, 0xe8u, 0xffu}) {
      const std::string text = kernel(
          "shr.u32 %r2, %t, 2;\nshr.u32 %r3, %t, 3;\nand.b32 %r4, %t, 1;\nsetp.eq.u32 %p1, %r4, "
          "1;\n"
          "lop3." +
          std::string(is_and ? "and" : "or") + ".b32 %r5|%p2, %t, %r2, %r3, " +
          std::to_string(table) +
          ", !%p1;\n"
          "selp.u32 %r6, 1, 0, %p2;\nmov.b64 %d2, {%r5, %r6};\nst.global.b64 [%out], %d2;\nret;");
      const auto expect = [&](std::uint64_t i) {
        std::uint32_t value = 0;
        for (int bit = 0; bit < 32; ++bit) {
          const auto of = [bit](std::uint64_t x) { return static_cast<unsigned>(x >> bit & 1); };
          value |= (table >> (of(i) * 4 + of(i / 4) * 2 + of(i / 8)) & 1) << bit;
        }
        const bool other = i % 2 == 0, q = is_and ? value != 0 && other : value != 0 || other;
        return std::uint64_t{value} | (q ? std::uint64_t{1} << 32 : 0);
      };
      check_words(text, {.grid = 2, .block = 32}, expect);
      check_words(text, {.grid = 3, .block = 21}, expect);
    }
  }
  CHECK_THROWS(compile(kernel("lop3.or.b32 %r5, %t, %r2, %r3, 1, %p1;\nret;")));
}

TEST_CASE("one value in braces is that value, as Triton writes loads and stores") {
  const std::string text = kernel(
      "setp.lt.u32 %p1, %t, 20;\nst.global.b64 [%out], 7;\n"
      "@%p1 st.global.b32 [ %out + 4 ], { %t };\nld.volatile.global.b32 {%r2}, [%out+4];\n"
      "mov.b32 {%r3}, %r2;\nmov.b32 %r4, {%r3};\nadd.u32 %r4, %r4, 1;\n"
      "st.global.b32 [%out], {%r4};\n@!%p1 st.volatile.global.b32 [%out], {9};\nret;");
  const auto expect = [](std::uint64_t i) { return i < 20 ? i << 32 | (i + 1) : 9; };
  check_words(text, {.grid = 1, .block = 32}, expect);
  CHECK_THROWS(compile(kernel("mov.b32 {%r2}, {%t};\nret;")));
  CHECK_THROWS(compile(kernel("mov.u32 %r2, {%t};\nret;")));
  CHECK_THROWS(compile(kernel("add.u32 %r2, {%t}, 1;\nret;")));
  CHECK_THROWS(compile(kernel("ld.global.v2.b32 {%r2}, [%out];\nret;")));
}

TEST_CASE("128-bit registers are packed, moved, stored, loaded and taken apart") {
  const std::string text = kernel(
      "add.u32 %r2, %t, 7;\nmov.b64 %d2, {%t, %r2};\nmov.b64 %d3, {%r2, 3};\n"
      "mov.b128 %q0, {%d2, %d3};\nmov.b128 %q1, %q0;\nmul.lo.u32 %r1, %r1, 16;\n"
      "mov.u32 %r3, buffer;\nadd.u32 %r3, %r3, %r1;\nst.shared.b128 [%r3], %q1;\n"
      "ld.shared.b128 %q2, [%r3];\nmov.b128 {%r4, %r5, %r6, %r7}, %q2;\n"
      "mov.b128 %q3, {%r7, %r6, %r5, %r4};\nmov.b128 {%d4, %d5}, %q3;\n"
      // d4 = (3, t + 7), d5 = (t + 7, t)
      "xor.b64 %d6, %d4, %d5;\nst.global.u64 [%out], %d6;\nret;",
      ".shared .align 16 .b8 buffer[1024];\n");
  const auto with_registers = [&] {
    std::string all = text;
    const std::string mark = ".reg .pred %p<10>;";
    all.insert(all.find(mark), ".reg .b128 %q<4>; ");
    return all.replace(0, all.find('\n'), ".version 8.3");
  }();
  const auto expect = [](std::uint64_t i) {
    const std::uint64_t t = i, u = i + 7;
    return (3 | u << 32) ^ (u | t << 32);
  };
  check_words(with_registers, {.grid = 1, .block = 32}, expect);
  check_words(with_registers, {.grid = 2, .block = 21}, expect);
}

TEST_CASE("alloca gives each thread its own memory, in calls too, until stackrestore") {
  // Each thread takes 4 * (t % 5 + 1) bytes, fills them, calls a function that does the same, and
  // sums what is left; the restored stack gives the same address again.
  const std::string before =
      ".func (.param .b32 r) fill(.param .b32 n) {\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
      "ld.param.u32 %r0, [n];\nmul.wide.u32 %d0, %r0, 4;\nalloca.u64 %d1, %d0, 16;\n"
      "st.local.u32 [%d1], -1;\nld.local.u32 %r1, [%d1];\nst.param.b32 [r], %r1;\nret;\n}\n";
  const std::string text = kernel(
      "rem.u32 %r2, %t, 5;\nadd.u32 %r2, %r2, 1;\nmul.wide.u32 %d2, %r2, 4;\nstacksave.u64 %d1;\n"
      "alloca.u64 %d3, %d2;\nmov.u32 %r3, 0;\nmov.b64 %d4, %d3;\n"
      "FILL: st.local.u32 [%d4], %t;\nadd.s64 %d4, %d4, 4;\nadd.u32 %r3, %r3, 1;\n"
      "setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra FILL;\n"
      "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\ncall (b), fill, (a);\n"
      "ld.param.b32 %r6, [b]; }\n"
      "mov.u32 %r4, 0;\nmov.b64 %d4, %d3;\nmov.u32 %r3, 0;\n"
      "SUM: ld.local.u32 %r5, [%d4];\nadd.u32 %r4, %r4, %r5;\nadd.s64 %d4, %d4, 4;\n"
      "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, %r2;\n@%p1 bra SUM;\n"
      "stackrestore.u64 %d1;\nalloca.u64 %d5, 4;\nsetp.eq.u64 %p2, %d5, %d3;\n"
      "selp.u32 %r7, 1, 0, %p2;\nand.b32 %r6, %r6, 2;\nor.b32 %r7, %r7, %r6;\n"
      "mov.b64 %d6, {%r4, %r7};\nst.global.u64 [%out], %d6;\nret;",
      before);
  const auto expect = [](std::uint64_t i) { return i * (i % 5 + 1) | std::uint64_t{3} << 32; };
  check_words(text, {.grid = 1, .block = 64}, expect);
  check_words(text, {.grid = 2, .block = 45}, expect);
}

TEST_CASE("alloca: a stack that is used up is a finding") {
  const Outcome outcome =
      run(kernel("LOOP: alloca.u64 %d1, 4096;\nbra LOOP;\nret;"), {.grid = 1, .block = 32});
  REQUIRE(outcome.fault.has_value());
  CHECK(outcome.fault->message.find("alloca of 4096") != std::string::npos);
  const Outcome above = run(kernel("stackrestore.u64 4096;\nret;"), {.grid = 1, .block = 32});
  REQUIRE(above.fault.has_value());
  CHECK(above.fault->message.find("stackrestore") != std::string::npos);
}

TEST_CASE("counters of performance, driver registers and fourth components read as zero") {
  for (const std::string reg :
       {"%pm0", "%pm7", "%envreg0", "%envreg31", "%tid.w", "%ntid.w", "%ctaid.w", "%nctaid.w"}) {
    check_words(kernel("mov.u32 %r2, " + reg +
                       ";\ncvt.u64.u32 %d2, %r2;\n"
                       "st.global.u64 [%out], %d2;\nret;"),
                {}, [](std::uint64_t) { return 0; });
  }
  check_words(kernel("mov.u64 %d2, %pm3_64;\nst.global.u64 [%out], %d2;\nret;"), {},
              [](std::uint64_t) { return 0; });
  for (const std::string reg : {"%pm8", "%pm", "%pm_64", "%pm00", "%envreg32", "%envreg-1"}) {
    CAPTURE(reg);
    CHECK_THROWS(compile(kernel("mov.u32 %r2, " + reg + ";\nret;")));
  }
}

TEST_CASE("cvt.pack makes parts of 2 and 4 bits") {
  const std::vector<std::uint64_t> values{
      0,   1,          2,          3,          7,          8,          15,
      100, 0xffffffff, 0xfffffffe, 0xfffffff8, 0xfffffff0, 0x7fffffff, 0x80000000};
  const Table table = all_triples(values, values, {0, 0x89abcdef});
  for (const int width : {2, 4}) {
    for (const bool is_signed : {false, true}) {
      const std::int64_t top = (1 << (is_signed ? width - 1 : width)) - 1;
      const auto part = [&](std::uint64_t x) {
        const std::int64_t number = static_cast<std::int32_t>(x);
        const auto kept = std::clamp(number, is_signed ? -top - 1 : 0, top);
        return static_cast<std::uint32_t>(kept) & ((1u << width) - 1);
      };
      const std::string text = "cvt.pack.sat." + std::string(is_signed ? "s" : "u") +
                               std::to_string(width) + ".s32.b32 %d, %a, %b, %c;";
      for (const unsigned block : {32u, 21u}) {
        const auto got = evaluate({text}, table.a, table.b, table.c, block);
        INFO(text);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const auto c = static_cast<std::uint32_t>(table.c[i]);
          const std::uint32_t want =
              c << (2 * width) | part(table.a[i]) << width | part(table.b[i]);
          REQUIRE(got[i] == want);
        }
      }
    }
  }
}

TEST_CASE("cache policies are accepted wherever they may stand") {
  OpsRunner runner;
  const std::vector<std::uint32_t> input{1, 2, 3, 4, 5, 6, 7, 8};
  const auto from = runner.upload(input), to = runner.allocate(64);
  const auto report = runner.run(
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, s; mov.u32 %r9, 4;\n"
      "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d3, [%d1], %r9, %r9;\n"
      "createpolicy.cvt.L2.b64 %d4, %d3; setp.ne.u32 %p1, %r9, 4;\n"
      "setp.ne.u32 %p2, %r0, 0; @%p2 bra END;\n"
      "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 16, %d4;\n"
      "cp.async.ca.shared.global.L2::cache_hint [%r1+16], [%d1], 16, %r9, %d4;\n"
      "cp.async.ca.shared.global.L2::cache_hint [%r1+32], [%d1], 16, %p1, %d4;\n"
      "cp.async.wait_all; pmevent.mask 5;\n"
      "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+16]; st.global.v4.u32 [%d2], {%r2, %r3, %r4, "
      "%r5};\n"
      "ld.shared.v2.u64 {%d5, %d6}, [%r1]; st.global.v2.u64 [%d2+16], {%d5, %d6};\n"
      "ld.shared.v2.u64 {%d5, %d6}, [%r1+32]; st.global.v2.u64 [%d2+32], {%d5, %d6};\nEND:\n",
      {from, to}, ".shared .align 16 .b8 s[64];\n");
  REQUIRE(report.message == "");
  const std::vector<std::uint32_t> expected{1, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4};
  CHECK(runner.download<std::uint32_t>(to, 12) == expected);
}
