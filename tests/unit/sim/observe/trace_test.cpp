// Traces of one thread: every instruction of the text, in order, with what it changed.
#include "sim/trace.h"

#include "base/errors.h"
#include "sim/checks.h"
#include "sim/device.h"
#include "sim/observe/source_text.h"
#include "unit/sim/observe/observe_fixture.h"

#include <nlohmann/json.hpp>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// "%r2=5" for each register written.
std::vector<std::string> writes(const Trace& trace) {
  std::vector<std::string> found;
  for (const TraceStep& step : trace.steps) {
    for (const TraceWrite& write : step.writes)
      found.push_back(write.reg + "=" + trace_value(write.type, write.after));
  }
  return found;
}

constexpr const char* kLoop =
    "mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\nadd.s32 %r3, %r3, %r2;\nadd.s32 %r2, %r2, 1;\n"
    "setp.lt.u32 %p1, %r2, 4;\n@%p1 bra L;\n";

}  // namespace

TEST_CASE("trace: the instructions of the text in order, with the values they wrote") {
  WatchedKernel kernel(
      "mul.lo.s32 %r2, %r1, -3;\ncvt.rn.f32.s32 %f1, %r2;\nmov.f64 %fd1, 0d3FF8000000000000;\n"
      "setp.lt.f32 %p1, %f1, 0f00000000;\nmov.b32 %r3, 255;\n");
  const Trace trace = kernel.trace(7);
  REQUIRE(trace.steps.size() == 8);
  CHECK(trace.total == 8);
  const auto found = writes(trace);
  REQUIRE(found.size() == 7);
  CHECK(found[1] == "%r1=7");
  CHECK(found[2] == "%r2=-21");
  CHECK(found[3] == "%f1=-21");
  CHECK(found[4] == "%fd1=1.5");
  CHECK(found[5] == "%p1=true");
  CHECK(found[6] == "%r3=0xff (255)");
  CHECK(trace.steps[2].instruction == "mul.lo.s32 %r2, %r1, -3");
  CHECK(trace.steps.back().instruction == "ret");
  CHECK(trace.kernel == "k");
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    CHECK(trace.steps[i].index == i);
    CHECK(trace.steps[i].complete);
  }
}

TEST_CASE("trace: a register's value before, from its second write on") {
  WatchedKernel kernel(kLoop);
  const Trace trace = kernel.trace();
  const auto sums = steps_of(trace, "add.s32 %r3");
  REQUIRE(sums.size() == 4);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(sums[i].writes.size() == 1);
    CHECK(sums[i].writes[0].before == TraceBits{sum, 0});
    sum += i;
    CHECK(sums[i].writes[0].after == TraceBits{sum, 0});
  }
  CHECK(!steps_of(trace, "mov.u32 %r3")[0].writes[0].before.has_value());
  const auto branches = steps_of(trace, "bra L");
  REQUIRE(branches.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(branches[i].taken == (i < 3));
  CHECK(branches[0].instruction == "@%p1 bra L");
}

TEST_CASE("trace: a later block begins without values") {
  WatchedKernel kernel(kLoop);
  TraceRequest request;
  request.block = {2, 0, 0};
  const Trace trace = kernel.trace(request, 3);
  for (const char* first : {"ld.param", "mov.u32 %r1", "mov.u32 %r2", "mov.u32 %r3"}) {
    REQUIRE(steps_of(trace, first).size() == 1);
    CHECK(!steps_of(trace, first)[0].writes[0].before.has_value());
  }
}

TEST_CASE("trace: guards that are off, and lanes of another path") {
  WatchedKernel kernel(
      "setp.lt.u32 %p1, %r1, 4;\nmov.u32 %r2, 1;\n@%p1 add.s32 %r2, %r2, 10;\n"
      "@!%p1 bar.sync 0;\n@%p1 bra L;\nmov.u32 %r3, 3;\nL:\nmov.u32 %r4, 4;\n");
  for (const unsigned thread : {3u, 4u}) {
    CAPTURE(thread);
    const bool low = thread < 4;
    const Trace trace = kernel.trace(thread);
    const auto add = steps_of(trace, "@%p1 add.s32"), bar = steps_of(trace, "@!%p1 bar.sync");
    REQUIRE(add.size() == 1);
    REQUIRE(bar.size() == 1);
    CHECK(add[0].predicated_off == !low);
    CHECK(add[0].writes.size() == (low ? 1 : 0));
    CHECK(bar[0].predicated_off == low);
    CHECK(steps_of(trace, "mov.u32 %r3").size() == (low ? 0 : 1));
    CHECK(steps_of(trace, "mov.u32 %r4").size() == 1);
  }
}

TEST_CASE("trace: memory with its values, before and after") {
  WatchedKernel kernel(
      "mul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd2, %rd2, %rd1;\nadd.u32 %r2, %r1, 100;\n"
      "st.global.u32 [%rd2+4], %r2;\natom.global.add.u32 %r3, [%rd2+4], 5;\n"
      "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];\n"
      "mov.u32 %r8, s;\nst.shared.f32 [%r8+8], 0f40200000;\nmov.u64 %rd3, s;\n"
      "cvta.shared.u64 %rd3, %rd3;\nld.f32 %f1, [%rd3+8];\nst.local.u16 [l+2], %r2;\n"
      "red.global.max.s32 [%rd1], 3;\n");
  const Trace trace = kernel.trace(9);
  const std::uint64_t at = kernel.buffer + 9 * 16;
  const auto access = [&](const char* opcode) {
    const auto found = steps_of(trace, opcode);
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].accesses.size() == 1);
    return found[0].accesses[0];
  };
  const TraceAccess store = access("st.global");
  CHECK(store.what == "store");
  CHECK(store.space == "global");
  CHECK(store.address == at + 4);
  CHECK(store.bytes == 4);
  CHECK(store.before == std::vector<TraceBits>{{0, 0}});
  CHECK(store.after == std::vector<TraceBits>{{109, 0}});
  const TraceAccess atomic = access("atom.global");
  CHECK(atomic.what == "atomic");
  CHECK(atomic.before == std::vector<TraceBits>{{109, 0}});
  CHECK(atomic.after == std::vector<TraceBits>{{114, 0}});
  const TraceAccess load = access("ld.global.v4");
  CHECK(load.before == std::vector<TraceBits>{{0, 0}, {114, 0}, {0, 0}, {0, 0}});
  CHECK(load.after.empty());
  CHECK(steps_of(trace, "ld.global.v4")[0].writes.size() == 4);
  const TraceAccess shared = access("st.shared");
  CHECK(shared.space == "shared");
  CHECK(shared.address == 8);
  CHECK(trace_value(shared.type, shared.after[0]) == "2.5");
  CHECK(access("ld.f32").space == "shared");
  CHECK(trace_value("f32", steps_of(trace, "ld.f32")[0].writes[0].after) == "2.5");
  CHECK(access("st.local").space == "local");
  CHECK(access("st.local").after == std::vector<TraceBits>{{109, 0}});
  CHECK(access("red.global").space == "global");
}

TEST_CASE("trace: what waits for others is one step, with the result that came of it") {
  WatchedKernel kernel(
      "setp.lt.u32 %p1, %r1, 40;\n@%p1 bra L;\nmov.u32 %r2, 1;\nL:\n"
      "bar.red.popc.u32 %r3, 0, %p1;\nsetp.lt.u32 %p2, %r1, 5;\n@%p2 bra M;\nmov.u32 %r4, 2;\n"
      "M:\nshfl.sync.bfly.b32 %r5, %r1, 7, 31, 0xffffffff;\n");
  for (const unsigned thread : {2u, 63u}) {
    const Trace trace = kernel.trace(thread, 64);
    const auto barrier = steps_of(trace, "bar.red"), shuffle = steps_of(trace, "shfl.sync");
    REQUIRE(barrier.size() == 1);
    REQUIRE(barrier[0].writes.size() == 1);
    CHECK(barrier[0].writes[0].after == TraceBits{40, 0});
    REQUIRE(shuffle.size() == 1);
    CHECK(shuffle[0].writes[0].after == TraceBits{thread ^ 7, 0});
  }
}

TEST_CASE("trace: a lane that meets others at another bar.warp.sync has the step, once") {
  const std::string body =
      "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra L;\nbar.warp.sync 0xffffffff;\nbra M;\nL:\n"
      "bar.warp.sync 0xffffffff;\nM:\nadd.u32 %r2, %r1, 1;\n";
  WatchedKernel kernel(body);
  for (const unsigned thread : {2u, 20u}) {
    const Trace trace = kernel.trace(thread);
    const auto meeting = steps_of(trace, "bar.warp.sync");
    REQUIRE(meeting.size() == 1);
    CHECK(meeting[0].complete);
    CHECK(steps_of(trace, "add.u32").size() == 1);
  }
}

TEST_CASE("trace: calls, with fresh registers each time") {
  const std::string function =
      ".func (.param .b32 out) fib(.param .b32 n)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n"
      "ld.param.u32 %r1, [n];\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra END;\n"
      "{\n.param .b32 a; .param .b32 b;\nsub.u32 %r2, %r1, 1;\nst.param.b32 [a], %r2;\n"
      "call (b), fib, (a);\nld.param.u32 %r3, [b];\n}\n"
      "{\n.param .b32 a; .param .b32 b;\nsub.u32 %r4, %r1, 2;\nst.param.b32 [a], %r4;\n"
      "call (b), fib, (a);\nld.param.u32 %r5, [b];\n}\nadd.u32 %r1, %r3, %r5;\n"
      "END:\nst.param.b32 [out], %r1;\nret;\n}\n";
  WatchedKernel kernel(
      "{\n.param .b32 a; .param .b32 b;\nmov.u32 %r2, 6;\nst.param.b32 [a], %r2;\n"
      "call (b), fib, (a);\nld.param.u32 %r3, [b];\n}\n",
      function);
  const Trace trace = kernel.trace(31);
  CHECK(steps_of(trace, "call (b), fib").size() == 25);  // calls of fib(6)
  CHECK(steps_of(trace, "ld.param.u32 %r3, [b]").back().writes[0].after == TraceBits{8, 0});
  std::uint32_t deepest = 0;
  for (const TraceStep& step : steps_of(trace, "ld.param.u32 %r1, [n]")) {
    CHECK(!step.writes[0].before.has_value());
    CHECK(step.function == "fib");
    deepest = std::max(deepest, step.depth);
  }
  CHECK(deepest == 6);
}

TEST_CASE("trace: everything up to a fault, and what it was") {
  WatchedKernel kernel(
      "mov.u32 %r2, 7;\nsetp.eq.u32 %p1, %r1, 5;\n@!%p1 bra L;\nst.global.u32 [%rd1+1048576], %r2;"
      "\nL:\nmov.u32 %r3, 3;\nbar.sync 0;\nmov.u32 %r4, 4;\n");
  const Trace own = kernel.trace(5);
  REQUIRE(own.fault.has_value());
  CHECK(own.fault->kind == FaultKind::bounds);
  CHECK(!own.steps.back().complete);
  CHECK(own.steps.back().instruction == "st.global.u32 [%rd1+1048576], %r2");
  CHECK(own.steps.back().accesses[0].address == kernel.buffer + 1048576);
  CHECK(own.steps.back().accesses[0].before.empty());
  CHECK(steps_of(own, "mov.u32 %r2")[0].complete);
  // Another thread of the same launch: what it did before, and the same fault.
  const Trace other = kernel.trace(6);
  REQUIRE(other.fault.has_value());
  CHECK(other.fault->thread[0] == 5);
  CHECK(steps_of(other, "mov.u32 %r2").size() == 1);
  CHECK(steps_of(other, "mov.u32 %r4").empty());
}

TEST_CASE("trace: a barrier without end is the last step, incomplete") {
  WatchedKernel kernel(
      "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra L;\nbar.sync 1;\nbra M;\nL:\nbar.sync 2;\nM:\n");
  const Trace trace = kernel.trace(40, 64);
  REQUIRE(trace.fault.has_value());
  CHECK(trace.fault->kind == FaultKind::sync);
  CHECK(trace.steps.back().instruction == "bar.sync 1");
  CHECK(!trace.steps.back().complete);
}

TEST_CASE("trace: printf of the thread alone, in the step that printed") {
  const std::string declaration =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 text[9] = {116, 32, 61, 32, 37, 100, 10, 0, 0};\n";
  WatchedKernel kernel(
      "st.local.u32 [l], %r1;\n{\n.param .b64 a; .param .b64 b; .param .b32 c;\n"
      "mov.u64 %rd2, text;\ncvta.global.u64 %rd2, %rd2;\nst.param.b64 [a], %rd2;\n"
      "mov.u64 %rd3, l;\ncvta.local.u64 %rd3, %rd3;\nst.param.b64 [b], %rd3;\n"
      "call (c), vprintf, (a, b);\nld.param.b32 %r2, [c];\n}\n",
      declaration);
  std::string all;
  set_print_sink([&](std::string_view text) { all += text; });
  const Trace trace = kernel.trace(3);
  set_print_sink({});
  CHECK(steps_of(trace, "vprintf")[0].printed == "t = 3\n");
  CHECK(all.find("t = 31\n") != std::string::npos);
}

TEST_CASE("trace: skip and limit keep a part, and the listing says what is missing") {
  WatchedKernel kernel(kLoop);
  const Trace whole = kernel.trace();
  TraceRequest request;
  request.skip = 3;
  request.limit = 5;
  const Trace part = kernel.trace(request);
  CHECK(part.total == whole.total);
  REQUIRE(part.steps.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(part.steps[i].index == i + 3);
    CHECK(part.steps[i].instruction == whole.steps[i + 3].instruction);
    CHECK(part.steps[i].writes.size() == whole.steps[i + 3].writes.size());
  }
  CHECK(part.steps[1].writes[0].before == whole.steps[4].writes[0].before);
  SourceText source;
  const std::string text = part.to_text(source);
  CHECK(text.find("3 steps before these were skipped") != std::string::npos);
  CHECK(text.find("... " + std::to_string(whole.total - 8) +
                  " more steps were left out: the limit "
                  "is 5") != std::string::npos);
  CHECK(whole.to_text(source).find("left out") == std::string::npos);
  request.limit = 0;
  CHECK(kernel.trace(request).steps.empty());
  request.skip = 1000;
  CHECK(kernel.trace(request).total == whole.total);
}

TEST_CASE("trace: one launch of several, one function of several, one scope at a time") {
  WatchedKernel kernel(
      "ld.global.u32 %r2, [%rd1];\nadd.u32 %r2, %r2, 1;\nbar.sync 0;\nst.global.u32 [%rd1], "
      "%r2;\n");
  WatchedKernel other("mov.u32 %r2, 1;\n");
  TraceRequest request;
  request.function = kernel.function;
  request.launch = 2;
  {
    const TraceScope scope(request);
    CHECK_THROWS_AS(TraceScope second(request), InvalidArgument);
    CHECK(other.launch() == CUDA_SUCCESS);
    for (int i = 0; i < 4; ++i) CHECK(kernel.launch() == CUDA_SUCCESS);
    const Trace trace = scope.trace();
    CHECK(trace.launches == 4);
    CHECK(steps_of(trace, "add.u32")[0].writes[0].after == TraceBits{3, 0});
    CHECK(steps_of(trace, "add.u32").size() == 1);
  }
  request.launch = 0;
  const TraceScope scope(request);
  CHECK(other.launch() == CUDA_SUCCESS);
  CHECK(scope.trace().launches == 0);
  CHECK(scope.trace().steps.empty());
}

TEST_CASE("trace: a thread outside of the launch is said to be so") {
  WatchedKernel kernel("mov.u32 %r2, 1;\n");
  for (const auto& [block, thread] : {std::pair{2u, 0u}, std::pair{0u, 33u}}) {
    TraceRequest request;
    request.block = {block, 0, 0};
    request.thread = {thread, 0, 0};
    const Trace trace = kernel.trace(request, 2, 33);
    CHECK(trace.outside);
    CHECK(trace.steps.empty());
    CHECK(trace.grid == std::array<unsigned, 3>{2, 1, 1});
    CHECK(trace.block_shape == std::array<unsigned, 3>{33, 1, 1});
  }
}

TEST_CASE("trace: under checks and under a seed the thread does the same") {
  WatchedKernel kernel(std::string(kLoop) +
                       "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd2, %rd1;\n"
                       "st.global.u32 [%rd2], %r3;\nbar.sync 0;\nld.global.u32 %r4, [%rd1];\n");
  const auto plain = writes(kernel.trace(33, 64));
  {
    const CheckScope checks({true, true, true});
    CHECK(writes(kernel.trace(33, 64)) == plain);
    CHECK(checks.findings().empty());
  }
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    set_launch_seed(seed);
    CHECK(writes(kernel.trace(33, 64)) == plain);
  }
  set_launch_seed(std::nullopt);
}

TEST_CASE("trace: values by type") {
  const auto text = [](const char* type, std::uint64_t low) { return trace_value(type, {low, 0}); };
  CHECK(text("pred", 1) == "true");
  CHECK(text("pred", 0) == "false");
  CHECK(text("s32", 0xffffffff) == "-1");
  CHECK(text("u32", 0xffffffff) == "4294967295");
  CHECK(text("s16", 0x8000) == "-32768");
  CHECK(text("u8", 0x1ff) == "255");
  CHECK(text("s64", ~std::uint64_t{0}) == "-1");
  CHECK(text("u64", 1000) == "1000");
  for (const char* type : {"u64", "s64", "b64"})
    CHECK(text(type, 0x0010000000000040) == "0x10000000000040");  // addresses
  CHECK(text("b32", 42) == "0x2a (42)");
  CHECK(text("b32", 0xfffffffe) == "0xfffffffe (-2)");
  CHECK(text("f32", 0x3f000000) == "0.5");
  CHECK(text("f32", 0x7fc00000) == "nan");
  CHECK(text("f32", 0xff800000) == "-inf");
  CHECK(text("f64", 0x400921fb54442d18) == "3.141592653589793");
  CHECK(text("f16", 0x3c00) == "1");
  CHECK(text("bf16", 0xc000) == "-2");
  CHECK(text("f16x2", 0xc0003c00) == "(1, -2)");
  CHECK(text("bf16x2", 0x3f80c000) == "(-2, 1)");
  CHECK(text("s16x2", 0xffff0002) == "(2, -1)");
  CHECK(trace_value("b128", {1, 2}) == "0x20000000000000001");
}

TEST_CASE("trace: as text and as JSON") {
  WatchedKernel kernel("mov.f32 %f1, 0f7F800000;\nst.global.f32 [%rd1+4], %f1;\n");
  const Trace trace = kernel.trace(1);
  SourceText source;
  const std::string text = trace.to_text(source);
  for (const char* part : {"trace of k, launch 0, block (0, 0, 0), thread (1, 0, 0): 5 steps",
                           "mov.f32 %f1, 0f7F800000", "%f1 = inf", ": 0 -> inf"}) {
    INFO(part, "\n", text);
    CHECK(text.find(part) != std::string::npos);
  }
  const auto json = nlohmann::json::parse(trace.to_json());
  CHECK(json["total"] == 5);
  CHECK(json["steps"].size() == 5);
  CHECK(json["steps"][2]["writes"][0]["after"]["bits"] == "0x7f800000");
  CHECK(json["steps"][3]["accesses"][0]["address"] == kernel.buffer + 4);
  CHECK(json["steps"][0]["writes"][0]["before"].is_null());
  CHECK(json["fault"].is_null());
}

TEST_CASE("source text: lines of what was added or found, and of no file besides") {
  SourceText source;
  source.add("k.cu", "one\r\ntwo\n\nfour");
  CHECK(source.line("k.cu", 1) == "one");
  CHECK(source.line("k.cu", 3).empty());
  CHECK(source.line("k.cu", 4) == "four");
  for (const int line : {0, -1, 5}) CHECK(source.line("k.cu", line).empty());
  CHECK(source.line("no such file", 1).empty());
  CHECK(source.line("", 1).empty());
  CHECK(source.line(__FILE__, 1).empty());
  int asked = 0;
  SourceText found([&](const std::string& file, int first_line) {
    ++asked;
    return file == "h.h" && first_line == 2 ? std::optional<std::string>("a\nb") : std::nullopt;
  });
  for (int i = 0; i < 2; ++i) {
    CHECK(found.line("h.h", 2, 2) == "b");
    CHECK(found.line("h.h", 2, 1).empty());
    CHECK(found.line("k.h", 1).empty());
  }
  CHECK(asked == 3);
}
