// Endless calls and too large frames are stopped.
#include "unit/sim/exec/control_support.h"

#include "sim/code/program.h"
#include "sim/device/launch/grid.h"
#include "sim/exec/block/stop_request.h"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace kernwright::sim::testing {
namespace {

/// Calls of two functions that call one another twice each, `depth` deep: 2^depth calls.
std::string tree(const std::string& call_odd, unsigned depth) {
  const std::string proto = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n";
  const auto function = [&](const std::string& name, const std::string& call) {
    std::string text = ".func (.param .b32 r) " + name + "(.param .b32 n) {\n" +
                       ".reg .b32 %r<9>; .reg .b64 %d; .reg .pred %p;\n"
                       "ld.param.b32 %r1, [n];\nmov.b32 %r2, 1;\nsetp.eq.u32 %p, %r1, 0;\n"
                       "@%p bra OUT;\nsub.u32 %r3, %r1, 1;\nmov.b32 %r2, 0;\n";
    for (int i = 0; i < 2; ++i) {
      text += "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3;\n" + call +
              "\nld.param.b32 %r4, [b]; add.u32 %r2, %r2, %r4; }\n";
    }
    return text + "OUT:\nst.param.b32 [r], %r2;\nret;\n}\n";
  };
  const std::string declared = ".func (.param .b32 r) odd(.param .b32 n);\n";
  return kernel("{ .param .b32 a; .param .b32 b; st.param.b32 [a], " + std::to_string(depth) +
                    ";\ncall (b), even, (a);\nld.param.b32 %r2, [b]; }\n"
                    "cvt.u64.u32 %d1, %r2;\nst.global.u64 [%out], %d1;\nret;",
                declared +
                    function("even", call_odd.empty() ? "call (b), odd, (a);" : proto + call_odd) +
                    function("odd", "call (b), even, (a);"));
}

const std::string kIndirectCall = "mov.b64 %d, odd; call (b), %d, (a), proto;";

TEST_CASE("recursion: the budget ends calls that take for ever, direct and indirect ones") {
  for (const std::string& call : {std::string(), kIndirectCall}) {
    check_words(tree(call, 9), {.block = 40, .budget = 1 << 20},
                [](std::uint64_t) { return std::uint64_t{512}; });
    const Outcome outcome = run(tree(call, 500), {.block = 40, .budget = 1 << 20});
    REQUIRE(outcome.fault);
    CHECK(outcome.fault->kind == FaultKind::timeout);
    CHECK(outcome.fault->message.find("KERNWRIGHT_SIM_BUDGET") != std::string::npos);
  }
}

TEST_CASE("recursion: the time limit and a signal end calls that take for ever") {
  const auto program = compile(tree("", 500));
  Memory memory(std::uint64_t{1} << 24);
  const std::uint64_t out = *memory.allocate(8 * 32, AllocationKind::device);
  for (const bool by_signal : {false, true}) {
    LaunchContext launch;
    launch.program = program.get();
    launch.function = static_cast<std::uint32_t>(program->find("k") - program->functions.data());
    launch.block = {32, 1, 1};
    launch.memory = &memory;
    launch.parameters = reinterpret_cast<const std::byte*>(&out);
    launch.parameter_bytes = 8;
    StopRequest stop(
        by_signal ? [] { return true; } : [] { return false; },
        std::chrono::seconds(by_signal ? 0 : 1));
    launch.stop = &stop;
    BlockRunner runner(launch);
    CHECK_FALSE(runner.run({0, 0, 0}));
    CHECK(runner.fault().kind == (by_signal ? FaultKind::interrupted : FaultKind::timeout));
  }
}

TEST_CASE("recursion: threads that wait in calls for others let them run") {
  // Lane 0 sets the flag that the others wait for, each by a recursion of its own.
  const std::string wait = R"(
.func wait(.param .b64 flag, .param .b32 depth) {
  .reg .b64 %d<3>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.b64 %d1, [flag];
  ld.param.b32 %r1, [depth];
  setp.eq.u32 %p, %r1, 0;
  @%p bra OUT;
  ld.volatile.global.b32 %r2, [%d1];
  setp.ne.u32 %p, %r2, 0;
  @%p bra OUT;
  sub.u32 %r1, %r1, 1;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %d1; st.param.b32 [b], %r1;
    call wait, (a, b); }
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %d1; st.param.b32 [b], %r1;
    call wait, (a, b); }
OUT:
  ret;
}
)";
  const std::string body = R"(
  ld.param.u64 %d2, [out];
  setp.eq.u32 %p1, %t, 0;
  @%p1 bra SET;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %d2; st.param.b32 [b], 600;
    call wait, (a, b); }
  bra DONE;
SET:
  st.volatile.global.b32 [%d2], 9;
DONE:
  ret;)";
  const Outcome outcome = run(kernel(body, wait), {.block = 64, .budget = 1 << 22});
  INFO((outcome.fault ? outcome.fault->to_string() : std::string()));
  CHECK_FALSE(outcome.fault);
  CHECK(outcome.words.at(0) == 9);
}

/// A function with `live` 64-bit registers that live across its call of itself.
std::string wide_function(int live) {
  const std::string count = std::to_string(live + 1);
  std::string text = ".func wide(.param .b32 n) {\n.reg .b64 %d<" + count +
                     ">; .reg .b64 %s; .reg .b32 %r<3>; .reg .pred %p;\nld.param.b32 %r1, [n];\n"
                     "setp.eq.u32 %p, %r1, 0;\n@%p bra OUT;\nsub.u32 %r1, %r1, 1;\n";
  for (int i = 0; i < live; ++i) {
    text += "cvt.u64.u32 %d" + std::to_string(i) + ", %r1;\n";
  }
  text += "{ .param .b32 a; st.param.b32 [a], %r1; call wide, (a); }\nmov.b64 %s, 0;\n";
  for (int i = 0; i < live; ++i) text += "add.u64 %s, %s, %d" + std::to_string(i) + ";\n";
  return text + "st.global.b64 [%s], %s;\nOUT:\nret;\n}\n";
}

TEST_CASE("recursion: frames of one warp take no more than their limit") {
  constexpr int kLive = 2000;  // half a megabyte each
  const std::string call = "{ .param .b32 a; st.param.b32 [a], 1000; call wide, (a); }\nret;";
  const Outcome outcome = run(kernel(call, wide_function(kLive)), {.block = 32});
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->kind == FaultKind::bounds);
  CHECK(outcome.fault->message.find("32 MiB") != std::string::npos);
}

TEST_CASE("recursion: frames of functions that returned make room for others") {
  // Many large functions one after the other: together above the limit, alone below it.
  constexpr int kFunctions = 40;
  std::string functions, body;
  for (int f = 0; f < kFunctions; ++f) {
    std::string text = wide_function(2200);
    const std::string name = "wide" + std::to_string(f);
    text.replace(text.find("wide"), 4, name);
    text.replace(text.find("call wide"), 9, "call " + name);
    functions += text;
    body += "{ .param .b32 a; st.param.b32 [a], 0; call " + name + ", (a); }\n";
  }
  check_words(kernel(body + "st.global.u64 [%out], 5;\nret;", functions), {.block = 3},
              [](std::uint64_t) { return std::uint64_t{5}; });
}

}  // namespace
}  // namespace kernwright::sim::testing
