// Built-in functions as PTX calls them: printf, assert, malloc, free, memcpy, memset.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include "sim/code/builtins.h"
#include "sim/ptx/parse/parser.h"

#include <cstdint>

namespace kernwright::sim {
namespace {

const std::string kPrintf =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 format[] = {108, 97, 110, 101, 32, 37, 100, 32, 37, 115, 32, 37, 103, "
    "10, 0};\n"
    ".global .align 1 .b8 name[] = {97, 98, 99, 0};\n"  // "lane %d %s %g\n", "abc"
    ".global .align 1 .b8 open[] = {97, 98};\n";        // no end

/// printf("lane %d %s %g\n", tid, "abc", tid / 2.0), result in %r9.
const std::string kCall =
    ".local .align 8 .b8 args[24];\n"
    "mov.u64 %d1, args; st.local.u32 [%d1], %r0; mov.u64 %d2, STRING; cvta.global.u64 %d2, %d2;\n"
    "st.local.u64 [%d1+8], %d2; cvt.rn.f64.u32 %g1, %r0; mul.f64 %g1, %g1, 0d3FE0000000000000;\n"
    "st.local.f64 [%d1+16], %g1; cvta.local.u64 %d3, %d1; mov.u64 %d4, format; cvta.global.u64 "
    "%d4, %d4;\n"
    "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d4; st.param.b64 [a], %d3;\n"
    "call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; }\n";

std::string printf_call(const std::string& string) {
  std::string body = kCall;
  return body.replace(body.find("STRING"), 6, string);
}

TEST_CASE("printf: lanes in order, as one text, returns the number of arguments") {
  OpsRunner runner;
  runner.block = {3, 1, 1};
  const auto to = runner.allocate(4);
  const auto report = runner.run(
      printf_call("name") + "ld.param.u64 %d9, [p0]; st.global.u32 [%d9], %r9;\n", {to}, kPrintf);
  REQUIRE(report.message == "");
  CHECK(runner.printed == "lane 0 abc 0\nlane 1 abc 0.5\nlane 2 abc 1\n");
  CHECK(runner.download<std::uint32_t>(to, 1)[0] == 3);
}

TEST_CASE("printf: a text without end is an access out of bounds") {
  OpsRunner runner;
  const auto report = runner.run(printf_call("open"), {0}, kPrintf);
  CHECK(report.kind == FaultKind::bounds);
  CHECK(runner.printed == "");
}

TEST_CASE("assert: the message names file, line, function, block, thread and condition") {
  OpsRunner runner;
  runner.grid = {2, 1, 1};
  const std::string globals =
      ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
      ".param .b64 e) "
      ".noreturn;\n"
      ".global .align 1 .b8 text[] = {105, 32, 60, 32, 57, 0};\n"  // "i < 9"
      ".global .align 1 .b8 file[] = {107, 46, 99, 117, 0};\n"     // "k.cu"
      ".global .align 1 .b8 func[] = {102, 0};\n";                 // "f"
  const auto report = runner.run(
      "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %r0; setp.lt.u32 %p1, %r1, 39; @%p1 bra "
      "FINE;\n"
      "mov.u64 %d1, text; cvta.global.u64 %d1, %d1; mov.u64 %d2, file; cvta.global.u64 %d2, %d2;\n"
      "mov.u64 %d3, func; cvta.global.u64 %d3, %d3; mov.u64 %d4, 1; mov.u32 %r2, 42;\n"
      "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
      "st.param.b64 [a], %d1; st.param.b64 [b], %d2; st.param.b32 [c], %r2; st.param.b64 [d], "
      "%d3;\n"
      "st.param.b64 [e], %d4; call.uni __assertfail, (a, b, c, d, e); }\nFINE:\n",
      {0}, globals);
  CHECK(report.kind == FaultKind::assertion);
  CHECK(report.message == "k.cu:42: f: block: [1,0,0], thread: [7,0,0] Assertion `i < 9` failed.");
  CHECK(report.line == 42);
  CHECK(report.file == "k.cu");
  CHECK(report.details.find("24 more threads") != std::string::npos);
}

const std::string kMemory =
    ".extern .func (.param .b64 r) malloc (.param .b64 a);\n.extern .func free (.param .b64 a);\n"
    ".extern .func (.param .b64 r) memcpy (.param .b64 a, .param .b64 b, .param .b64 c);\n"
    ".extern .func (.param .b64 r) memset (.param .b64 a, .param .b32 b, .param .b64 c);\n";

std::string call_malloc(const std::string& size) {
  return "{ .param .b64 a; .param .b64 r; st.param.b64 [a], " + size +
         "; call.uni (r), malloc, (a); ld.param.b64 %d1, [r]; }\n";
}
const std::string kFree = "{ .param .b64 a; st.param.b64 [a], %d1; call.uni free, (a); }\n";

TEST_CASE("malloc, memset, memcpy and free: every lane has its own block") {
  OpsRunner runner;
  const auto to = runner.allocate(32 * 8);
  const auto report = runner.run(
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 8; add.s64 %d9, %d9, %d8; mov.u64 %d2, 8;\n" +
          call_malloc("%d2") +
          "{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 r; st.param.b64 [a], %d1;\n"
          "st.param.b32 [b], %r0; st.param.b64 [c], %d2; call.uni (r), memset, (a, b, c);\n"
          "ld.param.b64 %d3, [r]; }\n"
          "{ .param .b64 a; .param .b64 b; .param .b64 c; .param .b64 r; st.param.b64 [a], %d9;\n"
          "st.param.b64 [b], %d3; st.param.b64 [c], %d2; call.uni (r), memcpy, (a, b, c); }\n" +
          kFree,
      {to}, kMemory);
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint64_t>(to, 32);
  for (std::uint64_t i = 0; i < 32; ++i) CHECK(result[i] == i * 0x0101010101010101ull);
  CHECK(runner.heap.used() == 0);
}

TEST_CASE("malloc: null when the heap is used up; an overrun and a double free are findings") {
  OpsRunner runner;
  const auto to = runner.allocate(8);
  REQUIRE(runner
              .run("mov.u64 %d2, 0x1000000;\n" + call_malloc("%d2") +
                       "ld.param.u64 %d9, [p0]; st.global.u64 [%d9], %d1;\n",
                   {to}, kMemory)
              .message == "");
  CHECK(runner.download<std::uint64_t>(to, 1)[0] == 0);
  const auto overrun = runner.run(
      "mov.u64 %d2, 12;\n" + call_malloc("%d2") + "st.u32 [%d1+12], %r0;\n", {0}, kMemory);
  CHECK(overrun.kind == FaultKind::bounds);
  CHECK(overrun.allocation.find("device heap") != std::string::npos);
  const auto twice =
      runner.run("mov.u64 %d2, 12;\n" + call_malloc("%d2") + kFree + kFree, {0}, kMemory);
  CHECK(twice.kind == FaultKind::use_after_free);
  const auto foreign = runner.run("ld.param.u64 %d1, [p0];\n" + kFree, {to}, kMemory);
  CHECK(foreign.kind == FaultKind::bounds);
}

TEST_CASE("the device runtime is refused by name, unknown functions are not known") {
  CHECK(bool(find_builtin("cudaDeviceSynchronize")));
  CHECK_FALSE(bool(find_builtin("cudaGetLastErrors")));
  CHECK_FALSE(bool(find_builtin("")));
  OpsRunner runner;
  const auto report = runner.run("{ .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); }\n",
                                 {0}, ".extern .func (.param .b32 r) cudaDeviceSynchronize ();\n");
  CHECK(report.kind == FaultKind::unsupported);
  CHECK(report.message.find("cudaDeviceSynchronize()") != std::string::npos);
}

TEST_CASE("built-in functions: a call by another signature is refused, or a fault") {
  struct Wrong {
    const char *declaration, *call;
  };
  const Wrong kWrong[] = {
      {".extern .func (.param .b64 r) malloc();", "call (b), malloc, ();"},
      {".extern .func (.param .b64 r) malloc(.param .b32 n);", "call (b), malloc, (w);"},
      {".extern .func malloc(.param .b64 n);", "call malloc, (b);"},
      {".extern .func (.param .b32 r) malloc(.param .b64 n);", "call (w), malloc, (b);"},
      {".extern .func (.param .b64 r) memcpy(.param .b64 a);", "call (b), memcpy, (b);"},
      {".extern .func (.param .b64 r) memset(.param .b64 a, .param .b64 v, .param .b64 n);",
       "call (b), memset, (b, b, b);"},
      {".extern .func (.param .b64 r) memset(.param .b64 a, .param .align 1 .b8 v[4], "
       ".param .align 1 .b8 n[8]);",
       "call (b), memset, (b, w, b);"},
      {".extern .func (.param .b32 r) vprintf(.param .b64 f);", "call (w), vprintf, (b);"},
      {".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a, .param .b64 z);",
       "call (w), vprintf, (b, b, b);"},
      {".extern .func __assertfail();", "call __assertfail, ();"},
      {".extern .func __assertfail(.param .b64 a, .param .b64 f, .param .b64 l, .param .b64 n, "
       ".param .b64 c);",
       "call __assertfail, (b, b, b, b, b);"},
      {".extern .func free();", "call free, ();"},
      {".extern .func (.param .b64 r) free(.param .b64 p);", "call (b), free, (b);"},
  };
  for (const Wrong& wrong : kWrong) {
    CAPTURE(wrong.call);
    OpsRunner runner;
    const std::string around = "{ .param .b64 b; .param .b32 w; ";
    CHECK_THROWS_AS(runner.run(around + wrong.call + " }\n", {0}, wrong.declaration),
                    ptx::PtxError);
    // The same through a pointer, with a prototype that says what the call passes.
    const std::string declared = wrong.declaration;
    std::string prototype = declared.substr(declared.find(".func") + 5);
    for (const char* const known :
         {"malloc", "memcpy", "memset", "vprintf", "__assertfail", "free"}) {
      const std::size_t at = prototype.find(known);
      if (at == std::string::npos) continue;
      std::string call = wrong.call;
      call.replace(call.find(known), std::string(known).size(), "%d1");
      if (call.find("%d1, (") == std::string::npos) call.insert(call.find(';'), ", ()");
      call.insert(call.find(';'), ", proto");
      prototype.replace(at, std::string(known).size(), "_");
      const auto report =
          runner.run("mov.b64 %d1, " + std::string(known) + ";\n" + around +
                         "proto: .callprototype " + prototype + "\n" + call + " }\n",
                     {0}, wrong.declaration);
      CHECK(report.kind == FaultKind::trap);
      CHECK(report.message.find(known) == 0);
    }
  }
}

}  // namespace
}  // namespace kernwright::sim
