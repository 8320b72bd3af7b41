// Parameters of device functions and calls: their addresses, offsets, sizes; names of one state
// space in instructions of another.
#include "unit/sim/exec/control_support.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include "sim/code/program.h"
#include "sim/ptx/parse/parser.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright::sim::testing {
namespace {

using ptx::testing::contains;
using ptx::testing::error_of;

/// Why a module is refused; empty where it is not.
std::string refusal(const std::string& text) {
  try {
    compile(kHeader + text);
  } catch (const ptx::PtxError& error) {
    return error.what();
  }
  return {};
}

/// A device function of two parameters with `body` for its instructions.
std::string function_with(const std::string& body) {
  return ".func (.param .b64 rv) f(.param .b64 fp, .param .align 8 .b8 fq[16]) {\n"
         ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p; .local .align 8 .b8 lv[64];\n"
         ".shared .align 8 .b8 sv[64];\n" +
         body + "\nret;\n}\n.visible .entry k() { ret; }\n";
}

std::string kernel_with(const std::string& body) {
  return ".global .align 8 .b8 gv[64]; .const .align 8 .b8 cv[64];\n"
         ".visible .entry k(.param .b64 kp, .param .b32 kq) {\n"
         ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p; .local .align 8 .b8 lv[64];\n"
         ".shared .align 8 .b8 sv[64]; .param .b64 a; .param .b32 b;\n" +
         body + "\nret;\n}\n";
}

TEST_CASE("parameter: a device function's parameter is reached by ld.param and its address alone") {
  for (const char* const body : {"prefetch.L1 [fp];",
                                 "prefetchu.L1 [fp];",
                                 "ld.b64 %d1, [fp];",
                                 "ld.local.b64 %d1, [fp];",
                                 "ld.global.b64 %d1, [fq+8];",
                                 "ld.shared.b64 %d1, [fp];",
                                 "ld.v2.b64 {%d1, %d2}, [fq];",
                                 "st.param.b64 [fp], 1;",
                                 "st.b64 [fp], %d1;",
                                 "atom.add.u32 %r1, [fp], 1;",
                                 "red.add.u32 [fq], 1;",
                                 "cvta.local.u64 %d1, fp;",
                                 "cvta.shared.u64 %d1, fp;",
                                 "cp.async.ca.shared.global [sv], [fp], 8;",
                                 "cp.async.ca.shared.global [fp], [%d1], 8;",
                                 "mbarrier.init.shared.b64 [fp], 1;",
                                 "ldu.global.b64 %d1, [fp];",
                                 "ld.param.b64 %d1, [lv];",
                                 "ld.param.b64 %d1, [sv];",
                                 "ld.param.b64 %d1, [f];",
                                 "prefetch.L1 [rv];",
                                 "ld.b64 %d1, [rv];"}) {
    CAPTURE(body);
    CHECK(!refusal(function_with(body)).empty());
    // The address that something else takes makes room for the copy: refused all the same.
    CHECK(!refusal(function_with(std::string("mov.b64 %d1, fp;\n") + body)).empty());
  }
  for (const char* const body :
       {"ld.param.b64 %d1, [fp];", "ld.param.v2.b64 {%d1, %d2}, [fq];", "mov.b64 %d1, fp;",
        "mov.b64 %d1, fq+8;", "mov.b32 %r1, fp;", "cvta.param.u64 %d1, fp;",
        "st.param.b64 [rv], %d1;", "prefetch.L1 [%d1];"}) {
    CAPTURE(body);
    CHECK(refusal(function_with(body)) == "");
  }
}

TEST_CASE("parameter: a kernel's names of one state space are not reached through another") {
  for (const char* const body :
       {"ld.global.b64 %d1, [kp];", "ld.b64 %d1, [kp];", "prefetch.L1 [kp];",
        "st.param.b64 [kp], %d1;", "mov.b64 %d1, a;", "cvta.param.u64 %d1, a;", "prefetch.L1 [a];",
        "st.b64 [a], %d1;", "ld.shared.b32 %r1, [lv];", "ld.local.b32 %r1, [sv];",
        "ld.global.b32 %r1, [sv];", "ld.b32 %r1, [cv];", "ld.global.b32 %r1, [cv];",
        "ld.const.b32 %r1, [gv];", "cvta.shared.u64 %d1, lv;", "atom.shared.add.u32 %r1, [gv], 1;",
        "ld.global.b32 %r1, [k];"}) {
    CAPTURE(body);
    CHECK(!refusal(kernel_with(body)).empty());
  }
}

TEST_CASE("parameter: offsets outside, also those near the ends of 64 bits, are refused") {
  const std::vector<std::string> far{"0x7fffffffffffffff",
                                     "0x7ffffffffffffff8",
                                     "-0x8000000000000000",
                                     "0x8000000000000000",
                                     "0xfffffffffffffff8",
                                     "-8",
                                     "1",
                                     "8",
                                     "1073741824",
                                     "0xffffffff",
                                     "0x100000000"};
  for (const std::string& offset : far) {
    CAPTURE(offset);
    CHECK(contains(refusal(kernel_with("st.param.b64 [a+" + offset + "], %d1;")), "lies outside"));
    CHECK(contains(refusal(kernel_with("ld.param.b64 %d1, [a+" + offset + "];")), "lies outside"));
    CHECK(
        contains(refusal(function_with("st.param.b64 [rv+" + offset + "], %d1;")), "lies outside"));
  }
  for (const std::string& offset : far) {
    if (offset == "8" || offset == "1") continue;  // within the second parameter
    CAPTURE(offset);
    CHECK(contains(refusal(kernel_with("ld.param.b64 %d1, [kp+" + offset + "];")), "lies outside"));
    CHECK(
        contains(refusal(function_with("ld.param.b64 %d1, [fp+" + offset + "];")), "lies outside"));
  }
  CHECK(contains(refusal(function_with("ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [fq+4];")),
                 "lies outside"));
  CHECK(refusal(kernel_with("st.param.b32 [a+4], %r1; ld.param.b32 %r1, [kq+-4];")) == "");
}

TEST_CASE("parameter: far offsets of variables are faults, not host memory") {
  for (const char* const at : {"sv", "lv", "gv"}) {
    for (const char* const offset : {"0x7fffffffffffffff", "0x7ffffffffffffffc", "0x100000000",
                                     "-0x8000000000000000", "-4", "64"}) {
      const std::string space = at[0] == 's' ? "shared" : at[0] == 'l' ? "local" : "global";
      const std::string place = std::string(at) + "+" + offset;
      const std::array<std::string, 3> bodies{
          "ld." + space + ".b32 %r1, [" + place + "]; st.global.b32 [%out], %r1;",
          "mov.b64 %d1, " + place + "; st." + space + ".b32 [%d1], 1;",
          "mov.b64 %d1, " + std::string(at) + "; st." + space + ".b32 [%d1+" + offset + "], 1;"};
      for (const std::string& body : bodies) {
        if (at[0] == 'g') continue;  // a variable in memory is the loader's: see module tests
        CAPTURE(body);
        const Outcome outcome = run(
            kernel(".local .align 8 .b8 lv[64]; .shared .align 8 .b8 sv[64];\n" + body + "\nret;"),
            {.block = 5});
        CHECK(outcome.fault.has_value());
      }
    }
  }
}

TEST_CASE("parameter: what a call passes is a .param variable of the same size") {
  const std::string callee = ".func (.param .b64 r) f(.param .b64 x) { ret; }\n";
  CHECK(refusal(callee + kernel_with("call (a), f, (a);")) == "");
  for (const char* const call :
       {"call (a), f, (b);", "call (b), f, (a);", "call (a), f, (kp);", "call (kp), f, (a);",
        "call (a), f, (a, a);", "call f, (a);", "call (a), f;", "call (a), f, (sv);",
        "call (a), f, (gv);", "call (a), k, (a);", "call (a), f, (a+4);"}) {
    CAPTURE(call);
    CHECK(!refusal(callee + kernel_with(call)).empty());
  }
  CHECK(!refusal(callee + ".func (.param .b64 o) g(.param .b64 i) { call (o), f, (i); ret; }\n")
             .empty());
}

TEST_CASE("parameter: what is as large as memory is refused while it is loaded") {
  const std::string large = ".func f(.param .align 8 .b8 p[134217728]) { ret; }\n";
  CHECK(contains(refusal(large + ".visible .entry k() { ret; }\n"), "MiB for a warp"));
  CHECK(contains(refusal(".visible .entry k() { .reg .b32 %r; .param .b8 a[536870912];\n"
                         "ld.param.b8 %r, [a+5]; ret; }\n"),
                 "MiB for a warp"));
}

/// Each lane passes its own struct {number, number * 2 + 1}.
std::string struct_kernel(const std::string& function) {
  return kernel(R"(
    cvt.u64.u32 %d1, %t;
    shl.b64 %d2, %d1, 1;
    add.u64 %d2, %d2, 1;
    { .param .align 8 .b8 s[16];
      .param .b64 n;
      .param .b64 r;
      st.param.b64 [s], %d1;
      st.param.b64 [s+8], %d2;
      st.param.b64 [n], %d1;
      call.uni (r), f, (n, s);
      ld.param.b64 %d5, [r]; }
    st.global.u64 [%out], %d5;
    ret;)",
                ".func (.param .b64 r) f(.param .b64 n, .param .align 8 .b8 s[16]) {\n"
                ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p; .local .b8 own[24];\n" +
                    function + "\nret;\n}\n");
}

TEST_CASE("parameter: an indexed struct is read through its address, from any space that has it") {
  // The address of s as a local one, as a generic one and by ld.param; s[n % 2] in each.
  const std::string index = "ld.param.b64 %d1, [n]; and.b64 %d2, %d1, 1; shl.b64 %d2, %d2, 3;\n";
  for (const char* const load :
       {"mov.b64 %d3, s; add.u64 %d3, %d3, %d2; ld.local.b64 %d4, [%d3];",
        "mov.b64 %d3, s; add.u64 %d3, %d3, %d2; ld.param.b64 %d4, [%d3];",
        "mov.b32 %r1, s; cvt.u32.u64 %r2, %d2; add.u32 %r1, %r1, %r2; ld.local.b64 %d4, [%r1];",
        "cvta.param.u64 %d3, s; add.u64 %d3, %d3, %d2; ld.b64 %d4, [%d3];",
        "mov.b64 %d3, s; cvta.local.u64 %d3, %d3; add.u64 %d3, %d3, %d2; ld.b64 %d4, [%d3];"}) {
    CAPTURE(load);
    for (const unsigned block : {32u, 7u}) {
      check_words(struct_kernel(index + load + "\nst.param.b64 [r], %d4;"), {.block = block},
                  [](std::uint64_t i) { return i % 2 == 0 ? i : i * 2 + 1; });
    }
  }
}

TEST_CASE("parameter: what is written through the address is what the name and the address read") {
  const auto expect = [](std::uint64_t i) { return (i + 100) * 1000 + i * 2 + 1; };
  check_words(struct_kernel(R"(
    mov.b64 %d1, s;
    ld.local.b64 %d2, [%d1];
    add.u64 %d2, %d2, 100;
    st.local.b64 [%d1], %d2;
    mov.b64 %d3, s;
    ld.local.b64 %d4, [%d3];   // the address taken once more brings no old value back
    ld.param.b64 %d5, [s];
    setp.ne.u64 %p, %d4, %d5;
    @%p trap;
    ld.param.b64 %d6, [s+8];
    mad.lo.u64 %d4, %d4, 1000, %d6;
    st.param.b64 [r], %d4;)"),
              {.block = 40}, expect);
}

TEST_CASE("parameter: a generic access by a name reaches shared and local memory") {
  check_words(kernel(R"(
    .shared .align 8 .b8 sv[4096];
    .local .align 8 .b8 lv[16];
    cvt.u64.u32 %d1, %t;
    st.b64 [lv+8], %d1;
    ld.b64 %d2, [lv+8];
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra SKIP;
    st.b64 [sv+64], 7;
  SKIP:
    bar.sync 0;
    atom.add.u32 %r3, [sv+128], 0;
    @%p1 bra INITIALISED;
    mbarrier.init.b64 [sv+256], 64;
  INITIALISED:
    bar.sync 0;
    mbarrier.arrive.b64 %d4, [sv+256];
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [sv+512];
    ldmatrix.sync.aligned.m8n8.x1.b16 {%r5}, [sv+512];
    ld.b64 %d3, [sv+64];
    add.u64 %d3, %d3, %d2;
    st.global.u64 [%out], %d3;
    ret;)"),
              {.block = 64}, [](std::uint64_t i) { return i + 7; });
}

}  // namespace
}  // namespace kernwright::sim::testing
