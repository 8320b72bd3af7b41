// Counts of lines: kernels whose costs follow from their text.
#include "sim/line_profile.h"

#include "base/errors.h"
#include "base/format.h"
#include "sim/checks.h"
#include "sim/device.h"
#include "sim/observe/source_text.h"
#include "unit/sim/observe/observe_fixture.h"

#include <nlohmann/json.hpp>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// Counts of `body` alone: what comes before it in the fixture and the last ret are on line 1.
LineCounts counts(const std::string& body, unsigned block = 32, unsigned grid = 1) {
  WatchedKernel kernel(".loc 1 10 0\n" + body + ".loc 1 1 0\n", ".file 1 \"k.cu\"\n");
  const LineProfileScope scope;
  CHECK(kernel.launch(grid, block) == CUDA_SUCCESS);
  for (const LineRecord& record : scope.profile().lines) {
    if (record.line != 10) continue;
    CHECK(record.file == "k.cu");
    CHECK(record.kernel == "k");
    return record.counts;
  }
  return {};
}

/// %rd2 = the buffer + stride * thread + start.
std::string at(int stride, int start = 0) {
  return "mul.wide.u32 %rd2, %r1, " + std::to_string(stride) + ";\nadd.s64 %rd2, %rd2, %rd1;\n" +
         "add.s64 %rd2, %rd2, " + std::to_string(start) + ";\n";
}
/// %r2 = s + stride * thread.
std::string shared_at(int stride) {
  return "mov.u32 %r3, s;\nmad.lo.u32 %r2, %r1, " + std::to_string(stride) + ", %r3;\n";
}

}  // namespace

TEST_CASE("line profile: instructions of warps and of threads") {
  const std::string two = "add.u32 %r2, %r1, 1;\nadd.u32 %r3, %r2, 1;\n";
  LineCounts c = counts(two, 32);
  CHECK(c.instructions == 2);
  CHECK(c.thread_instructions == 64);
  c = counts(two, 45, 3);  // a full warp and one of 13, three blocks
  CHECK(c.instructions == 2 * 2 * 3);
  CHECK(c.thread_instructions == 2 * 45 * 3);
  CHECK(counts(two, 1).thread_instructions == 2);
}

TEST_CASE("line profile: nothing of the text is folded, moved or dropped") {
  // A copy, what is the same in every block, a branch to what comes next.
  const LineCounts c = counts(
      "mov.u32 %r2, %r1;\nmov.u32 %r3, %ntid.x;\nmul.lo.u32 %r4, %r3, 7;\nbra NEXT;\nNEXT:\n"
      "mov.u64 %rd3, s;\nadd.u32 %r5, %r2, %laneid;\nld.param.u64 %rd4, [p];\n",
      64, 5);
  CHECK(c.instructions == 7 * 2 * 5);
  CHECK(c.branches == 2 * 5);
  CHECK(c.divergent_branches == 0);
  CHECK(c.global_loads + c.shared_loads + c.local_loads == 0);
}

TEST_CASE("line profile: guards") {
  const std::string low = "setp.lt.u32 %p1, %r1, 8;\n";
  LineCounts c = counts(low + "@%p1 add.u32 %r2, %r1, 1;\n", 64);
  CHECK(c.instructions == 4);  // the second warp has executed it for nobody
  CHECK(c.thread_instructions == 64 + 8);
  CHECK(c.predicated_off == 24 + 32);
  CHECK(c.branches == 0);
  c = counts(low + "@%p1 st.global.u32 [%rd1], %r1;\n@!%p1 bar.sync 1, 64;\n", 64);
  CHECK(c.global_stores == 1);
  CHECK(c.global_bytes == 32);
  CHECK(c.global_sectors == 1);
  CHECK(c.predicated_off == (24 + 32) + 8);
  CHECK(c.instructions == 2 + 2 + 2);
  c = counts(low + "@%p1 ret;\nadd.u32 %r2, %r1, 1;\n", 64);
  CHECK(c.branches == 2);
  CHECK(c.divergent_branches == 1);
  CHECK(c.thread_instructions == 64 + 8 + 56);
}

TEST_CASE("line profile: divergence of branches and loops") {
  // Thread t goes round t % 4 + 1 times.
  LineCounts c = counts(
      "and.b32 %r2, %r1, 3;\nL:\nsub.s32 %r2, %r2, 1;\nsetp.ge.s32 %p1, %r2, 0;\n@%p1 bra L;\n");
  CHECK(c.thread_instructions == 32 + 3 * (8 + 16 + 24 + 32));
  CHECK(c.branches == 4);
  CHECK(c.divergent_branches == 3);
  CHECK(c.instructions == 1 + 3 * 4);
  c = counts(
      "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra A;\nadd.u32 %r2, %r1, 1;\nbra B;\nA:\n"
      "add.u32 %r2, %r1, 2;\nB:\nadd.u32 %r2, %r2, 2;\n",
      64);
  CHECK(c.divergent_branches == 1);
  CHECK(c.branches == 2 + 2);  // the second warp goes one way
  CHECK(c.thread_instructions == 64 + 64 + 48 + 48 + 16 + 64);
}

TEST_CASE("line profile: a jump table parts lanes that go to different places") {
  const std::string body =
      "and.b32 %r2, %r1, MASK;\nts: .branchtargets A, B, A;\nbrx.idx %r2, ts;\nA:\n"
      "mov.u32 %r3, 1;\nbra C;\nB:\nmov.u32 %r3, 2;\nC:\nmov.u32 %r4, 1;\n";
  const auto with = [&](const std::string& mask) {
    std::string text = body;
    return counts(text.replace(text.find("MASK"), 4, mask));
  };
  CHECK(with("1").divergent_branches == 1);
  CHECK(with("2").divergent_branches == 0);  // two entries, one place
  CHECK(with("0").divergent_branches == 0);
}

TEST_CASE("line profile: what waits and tries again counts once") {
  const LineCounts c = counts(
      "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra L;\nadd.u32 %r2, %r1, 1;\nL:\n"
      "shfl.sync.bfly.b32 %r5, %r1, 7, 31, 0xffffffff;\nbar.sync 0;\nbar.warp.sync 0xffffffff;\n",
      64);
  CHECK(c.instructions == 2 * 2 + 2 + 2 * 3);
  CHECK(c.thread_instructions == 64 * 2 + (27 + 32) + 64 * 3);
}

TEST_CASE("line profile: lanes that meet at bar.warp.sync count once, wherever they wait") {
  // Both halves come to one place, one after the other.
  const std::string apart = "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra L;\n";
  LineCounts c = counts(apart + "add.u32 %r2, %r1, 1;\nadd.u32 %r3, %r1, 1;\nL:\n" +
                        "bar.warp.sync 0xffffffff;\n");
  CHECK(c.thread_instructions == 32 * 3 + 27 * 2);
  // To two places.
  c = counts(apart + "bar.warp.sync 0xffffffff;\nbra M;\nL:\nbar.warp.sync 0xffffffff;\nM:\n");
  CHECK(c.thread_instructions == 32 * 2 + 32 + 27);
  CHECK(c.instructions == 2 + 2 + 1);
  // Some wait until the others have exited, and look again then.
  c = counts(apart + "bar.warp.sync 0xffffffff;\nret;\nL:\nadd.u32 %r2, %r1, 1;\nret;\n");
  CHECK(c.thread_instructions == 32 * 2 + 27 + 5 + 32);
  // In a loop each round counts, with one meeting right behind another.
  c = counts(
      "mov.u32 %r2, 0;\nR:\nbar.warp.sync 0xffffffff;\nbar.warp.sync 0xffffffff;\n"
      "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 3;\n@%p1 bra R;\n");
  CHECK(c.instructions == 1 + 3 * 5);
}

TEST_CASE("line profile: global memory by sectors and lines") {
  LineCounts c = counts(at(4) + "ld.global.u32 %r2, [%rd2];\n", 64);
  CHECK(c.global_loads == 2);
  CHECK(c.global_stores == 0);
  CHECK(c.global_bytes == 256);
  CHECK(c.global_sectors == 8);
  CHECK(c.global_lines == 2);
  CHECK(c.global_ideal_sectors == 8);
  c = counts(at(8) + "st.global.u32 [%rd2], %r1;\n");
  CHECK(c.global_stores == 1);
  CHECK(c.global_sectors == 8);
  CHECK(c.global_ideal_sectors == 4);
  c = counts(at(128) + "ld.global.f32 %f1, [%rd2];\n");
  CHECK(c.global_sectors == 32);
  CHECK(c.global_lines == 32);
  c = counts(at(4, 4) + "ld.u32 %r2, [%rd2];\n");  // a generic address
  CHECK(c.global_sectors == 5);
  CHECK(c.global_lines == 2);
  c = counts("ld.global.u32 %r2, [%rd1+32];\n");
  CHECK(c.global_sectors == 1);
  CHECK(c.global_ideal_sectors == 1);
  CHECK(c.global_bytes == 128);
  c = counts(at(16) + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];\n");
  CHECK(c.global_loads == 1);
  CHECK(c.global_sectors == 16);
  CHECK(c.global_bytes == 512);
  CHECK(counts(at(4) + "ld.global.u8 %r2, [%rd2];\n").global_ideal_sectors == 1);
}

TEST_CASE("line profile: shared memory by banks") {
  const auto load = [](int stride, const std::string& what) {
    return counts(shared_at(stride) + "ld.shared." + what + ", [%r2];\n");
  };
  for (const auto& known : {std::pair{4, 1u}, {8, 2u}, {128, 32u}, {0, 1u}}) {
    CAPTURE(known.first);
    const LineCounts c = load(known.first, "u32 %r4");
    CHECK(c.shared_loads == 1);
    CHECK(c.shared_wavefronts == known.second);
    CHECK(c.shared_ideal_wavefronts == 1);
  }
  CHECK(counts(shared_at(33 * 4) + "and.b32 %r2, %r2, 4092;\nst.shared.u32 [%r2], %r1;\n")
            .shared_wavefronts == 1);
  CHECK(load(8, "f64 %fd1").shared_wavefronts == 2);
  CHECK(load(8, "f64 %fd1").shared_ideal_wavefronts == 2);
  CHECK(load(16, "f64 %fd1").shared_wavefronts == 4);
  CHECK(load(16, "v4.f32 {%f1, %f2, %f3, %f4}").shared_wavefronts == 4);
  CHECK(load(128, "v4.f32 {%f1, %f2, %f3, %f4}").shared_wavefronts == 32);
  // A generic address of shared memory; two stores.
  const LineCounts c = counts(
      "mul.wide.u32 %rd2, %r1, 8;\nmov.u64 %rd3, s;\ncvta.shared.u64 %rd3, %rd3;\n"
      "add.s64 %rd2, %rd2, %rd3;\nst.u32 [%rd2], %r1;\nst.u32 [%rd2+4], %r1;\n");
  CHECK(c.shared_stores == 2);
  CHECK(c.shared_wavefronts == 4);
  CHECK(c.global_stores == 0);
}

TEST_CASE("line profile: atomics by equal addresses") {
  LineCounts c = counts("red.global.add.u32 [%rd1], 1;\n", 45);
  CHECK(c.atomics == 2);
  CHECK(c.atomic_threads == 45);
  CHECK(c.atomic_passes == 45);
  CHECK(c.global_stores + c.global_loads == 0);
  c = counts(at(4) + "atom.global.add.u32 %r2, [%rd2], 1;\n");
  CHECK(c.atomics == 1);
  CHECK(c.atomic_passes == 1);
  c = counts(
      "and.b32 %r2, %r1, 3;\nshl.b32 %r2, %r2, 2;\nmov.u32 %r3, s;\n"
      "add.u32 %r2, %r2, %r3;\natom.shared.add.u32 %r4, [%r2], 1;\n");
  CHECK(c.atomic_passes == 8);
  CHECK(c.shared_loads == 0);
}

TEST_CASE("line profile: local memory, copies and tiles") {
  LineCounts c = counts("st.local.f64 [l+8], 0d0000000000000000;\nld.local.u32 %r2, [l+8];\n", 45);
  CHECK(c.local_stores == 2);
  CHECK(c.local_loads == 2);
  CHECK(c.local_bytes == 45 * 12);
  CHECK(c.local_sectors == (8 + 4) + (2 * 2 + 2));  // 13 lanes: 2 sectors for each word
  c = counts(at(16) + shared_at(16) +
             "cp.async.ca.shared.global [%r2], [%rd2], 16;\n"
             "cp.async.ca.shared.global [%r2], [%rd2], 16, 0;\ncp.async.wait_all;\n");
  CHECK(c.global_loads == 1);
  CHECK(c.global_sectors == 16);
  CHECK(c.shared_stores == 2);
  CHECK(c.shared_wavefronts == 8);
  c = counts(shared_at(16) + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r2];\n");
  CHECK(c.shared_loads == 1);
  CHECK(c.shared_wavefronts == 2);
  CHECK(c.shared_ideal_wavefronts == 2);
  CHECK(c.uncounted == 0);
  c = counts(shared_at(128) +
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, "
             "[%r2];\n");
  CHECK(c.shared_wavefronts == 32);
  c = counts(at(0) +
             "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2, %r3, %r4, %r5, %r6, "
             "%r7, %r8, %r9}, [%rd2], %r20;\n");
  CHECK(c.uncounted == 1);
  CHECK(c.uncounted_bytes == 1024);
}

TEST_CASE("line profile: functions that are called keep their own lines") {
  const std::string function =
      ".file 1 \"k.cu\"\n.func (.param .b32 out) twice(.param .b32 n)\n{\n.reg .b32 %r<9>;\n"
      ".loc 1 3 0\nld.param.u32 %r1, [n];\nshl.b32 %r1, %r1, 1;\nst.param.b32 [out], "
      "%r1;\nret;\n}\n";
  WatchedKernel kernel(
      ".loc 1 7 0\n{\n.param .b32 a; .param .b32 b;\nst.param.b32 [a], %r1;\n"
      "call (b), twice, (a);\nld.param.u32 %r3, [b];\n}\n",
      function);
  const LineProfileScope scope;
  for (int i = 0; i < 3; ++i) CHECK(kernel.launch(2, 64) == CUDA_SUCCESS);
  const LineProfile profile = scope.profile();
  CHECK(profile.launches == std::map<std::string, std::uint64_t>{{"k", 3}});
  std::map<int, std::uint64_t> by_line;
  for (const LineRecord& record : profile.lines) by_line[record.line] += record.counts.instructions;
  CHECK(by_line[3] == 4 * 4 * 3);
  CHECK(by_line[7] == (3 + 1) * 4 * 3);  // with the ret of the kernel
  CHECK(by_line[0] == 2 * 4 * 3);        // the fixture's first instructions have no line
}

TEST_CASE("line profile: threads that were traced one by one sum up to it") {
  const std::string body =
      "and.b32 %r2, %r1, 5;\nL:\nsub.s32 %r2, %r2, 1;\nsetp.ge.s32 %p1, %r2, 0;\n@%p1 bra L;\n"
      "@!%p1 add.u32 %r3, %r1, 1;\nsetp.lt.u32 %p2, %r1, 20;\n@%p2 mul.lo.u32 %r3, %r1, 3;\n"
      "@%p2 ret;\nbar.warp.sync 0xfff00000;\n";
  WatchedKernel kernel(body);
  std::uint64_t did = 0, off = 0;
  for (unsigned thread = 0; thread < 32; ++thread) {
    for (const TraceStep& step : kernel.trace(thread).steps) ++(step.predicated_off ? off : did);
  }
  const LineProfileScope scope;
  CHECK(kernel.launch() == CUDA_SUCCESS);
  CHECK(scope.profile().total().thread_instructions == did);
  CHECK(scope.profile().total().predicated_off == off);
}

TEST_CASE("line profile: only the functions that were named, one scope at a time, no launches") {
  WatchedKernel kernel("add.u32 %r2, %r1, 1;\n"), other("add.u32 %r2, %r1, 1;\n");
  SourceText source;
  {
    const LineProfileScope scope({kernel.function});
    CHECK_THROWS_AS(LineProfileScope(), InvalidArgument);
    CHECK(other.launch() == CUDA_SUCCESS);
    CHECK(scope.profile().lines.empty());
    CHECK(scope.profile().to_text(source) == "no launches\n");
    CHECK(kernel.launch(0) != CUDA_SUCCESS);  // no block
    CHECK(scope.profile().launches.empty());
    CHECK(kernel.launch() == CUDA_SUCCESS);
    CHECK(scope.profile().total().instructions == 4);
  }
  const LineProfileScope scope;
  CHECK(other.launch() == CUDA_SUCCESS);
  CHECK(kernel.launch() == CUDA_SUCCESS);
  CHECK(scope.profile().launches.at("k") == 2);
}

TEST_CASE("line profile: the same under checks, seeds and beside a trace") {
  WatchedKernel kernel(at(4) + "st.global.u32 [%rd2], %r1;\nbar.sync 0;\n" +
                       "ld.global.u32 %r2, [%rd1];\nred.global.add.u32 [%rd1+4000], 1;\n");
  const auto total = [&] {
    const LineProfileScope scope;
    CHECK(kernel.launch(3, 70) == CUDA_SUCCESS);
    return scope.profile().total();
  };
  const LineCounts plain = total();
  CHECK(plain.atomic_threads == 210);
  {
    const CheckScope checks({true, true, true});
    CHECK(total() == plain);
  }
  for (const std::uint64_t seed : {1u, 2u}) {
    set_launch_seed(seed);
    CHECK(total() == plain);
  }
  set_launch_seed(std::nullopt);
  TraceRequest request;
  request.function = kernel.function;
  const TraceScope trace(request);
  CHECK(total() == plain);
  CHECK(!trace.trace().steps.empty());
}

TEST_CASE("line profile: a launch that faults counts up to there") {
  WatchedKernel kernel("add.u32 %r2, %r1, 1;\nst.global.u32 [%rd1+1048576], %r2;\nbar.sync 0;\n");
  const LineProfileScope scope;
  CHECK(kernel.launch() != CUDA_SUCCESS);
  const LineCounts c = scope.profile().total();
  CHECK(c.instructions == 3);
  CHECK(c.global_stores == 0);
}

TEST_CASE("line profile: cost is the sum of what a multiprocessor is busy with") {
  CHECK(line_cost({}) == 0);
  LineCounts c = counts(shared_at(128) + "ld.shared.u32 %r4, [%r2];\n");
  CHECK(line_cost(c) == 3 + 4 * 32);
  c = counts(at(8) + "st.global.u32 [%rd2], %r1;\n", 64);
  CHECK(line_cost(c) == 2 * (4 + 2 * 8));
  c = counts("red.global.add.u32 [%rd1], 1;\n", 45);
  CHECK(line_cost(c) == 2 + 4 * 45);
  c = counts("st.local.f64 [l+8], 0d0000000000000000;\n");
  CHECK(line_cost(c) == 1 + 2 * 8);
}

TEST_CASE("line profile: advice is about what costs most, with its figures") {
  const auto advice = [](const std::string& body, unsigned block = 32) {
    return line_advice(counts(body, block));
  };
  CHECK(line_advice({}).empty());
  const auto begins = [](const std::string& text, const std::string& start) {
    INFO(text);
    CHECK(text.starts_with(start));
  };
  begins(advice(shared_at(128) + "ld.shared.u32 %r4, [%r2];\n"),
         "Bank conflicts: 32.0 passes over the banks of shared memory for each request, and 1.0 ");
  begins(advice(shared_at(4) + "ld.shared.u32 %r4, [%r2];\n"),
         "Shared memory: 1 request, each with 1.0 passes");
  begins(
      advice(at(128) + "ld.global.f32 %f1, [%rd2];\n"),
      "Scattered addresses: a request touches 32.0 sectors of global memory, and its bytes would "
      "fill 4.0.");
  begins(advice(at(4) + "ld.global.f32 %f1, [%rd2];\n"),
         "Global memory: 1 request, each with 4.0 sectors");
  begins(advice("red.global.add.u32 [%rd1], 1;\n"), "Contended atomics: 32.0 threads");
  begins(advice(at(4) + "red.global.add.u32 [%rd2], 1;\n"), "Instructions: warps execute 4.");
  begins(advice("st.local.f64 [l+8], 0d0000000000000000;\n"), "Local memory: 256 bytes.");
  begins(advice("add.u32 %r2, %r1, 1;\n", 8), "Idle lanes: 8.0 of 32 threads");
  begins(advice("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra A;\nadd.u32 %r2, %r1, 1;\n"
                "add.u32 %r2, %r2, 1;\nA:\n"),
         "Divergence: lanes part at 1 of 1 branches, and 24.0 of 32");
  begins(advice("add.u32 %r2, %r1, 1;\n", 64), "Instructions: warps execute 2.");
}

TEST_CASE("line profile: a table shares the cost of its total, and advises about the worst") {
  LineCounts light, heavy, whole;
  light.instructions = 1, light.thread_instructions = 32;
  heavy.instructions = 70, heavy.thread_instructions = 70 * 32;
  whole.instructions = 100, whole.thread_instructions = 100 * 32;  // with lines not shown
  const std::vector<LineCounts> rows = {light, heavy, {}};
  const LineTable table = line_table(rows, whole);
  CHECK(table.shares == std::vector<double>{0.01, 0.7, 0});
  REQUIRE(table.columns.size() == 3);
  CHECK(table.rows[0] == std::vector<std::string>{"1.0%", "1", "32.0"});
  CHECK(table.rows[2] == std::vector<std::string>{"-", "-", "-"});
  CHECK(table.total == std::vector<std::string>{"100.0%", "100", "32.0"});
  CHECK(table.advice[0].empty());
  CHECK(table.advice[1] == line_advice(heavy));
  CHECK(table.advice[2].empty());
  const std::vector<LineCounts> many(9, heavy);
  LineCounts sum;
  for (const LineCounts& each : many) sum += each;
  std::size_t told = 0;
  for (const std::string& text : line_table(many, sum).advice) told += text.empty() ? 0 : 1;
  CHECK(told == 5);
  CHECK(line_table({}, {}).columns.empty());
}

TEST_CASE("line profile: a table tells the weights of the cost, and what is in no cost") {
  LineCounts one, two, atomic, sector;
  one.instructions = one.uncounted = 1;
  two.uncounted = 2;
  atomic.atomic_passes = 1;
  sector.local_sectors = 1;
  const LineTable table = line_table({{one}}, one);
  REQUIRE(table.columns[0].name == "cost");
  const std::string weights = format(
      "{} for each instruction of a warp, {} for each pass over shared memory and of "
      "atomics, {} for each sector of global and local memory",
      line_cost(one), line_cost(atomic), line_cost(sector));
  CHECK(table.columns[0].meaning.find(weights) != std::string::npos);
  CHECK(table.note.starts_with("1 instruction moves memory in ways that no request counts"));
  CHECK(line_table({}, two).note.starts_with("2 instructions move memory"));
  CHECK(line_table({}, atomic).note.empty());
}

TEST_CASE("line profile: table and JSON") {
  WatchedKernel kernel(".loc 1 2 0\n" + at(8) + "st.global.u32 [%rd2], %r1;\n",
                       ".file 1 \"k.cu\"\n");
  const LineProfileScope scope;
  CHECK(kernel.launch() == CUDA_SUCCESS);
  const LineProfile profile = scope.profile();
  SourceText source;
  source.add("k.cu", "first\n  second;\n");
  const std::string text = profile.to_text(source);
  for (const char* part : {"k: 1 launch\n", "sect/req", "k.cu:2  second;", "50%", "total"}) {
    INFO(part, "\n", text);
    CHECK(text.find(part) != std::string::npos);
  }
  for (const char* part : {"conflicts", "atomics", "local B"}) {  // nobody did any
    INFO(part, "\n", text);
    CHECK(text.find(part) == std::string::npos);
  }
  const auto json = nlohmann::json::parse(profile.to_json());
  CHECK(json["launches"]["k"] == 1);
  CHECK(json["lines"].size() == profile.lines.size());
  for (std::size_t i = 0; i < profile.lines.size(); ++i) {
    for (const LineCountField& field : line_count_fields())
      CHECK(json["lines"][i]["counts"][field.name] == profile.lines[i].counts.*field.value);
  }
}
