// What a wrong access reports: kind, lane, address, allocation, wording.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <cstdint>

namespace kernwright::sim {
namespace {

/// Reads 4 bytes at p0 + tid * p1.
const std::string kStridedRead =
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; cvt.u64.u32 %d2, %r0;\n"
    "mad.lo.u64 %d3, %d1, %d2, %d0; ld.global.u32 %r1, [%d3];\n";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("read past the end: the lowest lane outside, by how much, and the allocation") {
  OpsRunner runner;
  const auto from = runner.allocate(4 * 30);
  const auto report = runner.run(kStridedRead, {from, 4});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.thread[0] == 30);
  CHECK(report.address == from + 120);
  CHECK(report.access_size == 4);
  CHECK(report.opcode == "ld.global.u32");
  CHECK(report.ptx_line > 0);
  CHECK(contains(report.message, "read of 4 bytes"));
  CHECK(contains(report.message, "out of bounds"));
  CHECK(contains(report.allocation, "120 bytes"));
}

TEST_CASE("an access that only begins inside the allocation is out of bounds") {
  OpsRunner runner;
  const auto from = runner.allocate(4 * 31 + 2);
  const auto report = runner.run(kStridedRead, {from, 4});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.thread[0] == 31);
}

TEST_CASE("in a masked warp lanes that are off may hold any address") {
  OpsRunner runner;
  const auto from = runner.allocate(4 * 8);
  const std::string body = "setp.ge.u32 %p1, %r0, 8; @%p1 bra DONE;\n" + kStridedRead + "DONE:\n";
  CHECK(runner.run(body, {from, 4}).message == "");
  const auto report = runner.run(body, {from - 4, 4});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.thread[0] == 0);
}

TEST_CASE("null pointers, small offsets from null and host addresses are named as such") {
  OpsRunner runner;
  CHECK(contains(runner.run(kStridedRead, {0, 0}).message, "null pointer"));
  const auto near = runner.run(kStridedRead, {16, 0});
  CHECK(contains(near.message, "null pointer plus 16"));
  int host = 0;
  const auto report = runner.run(kStridedRead, {reinterpret_cast<std::uint64_t>(&host) & ~3ull, 0});
  CHECK(report.kind == FaultKind::bounds);
}

TEST_CASE("misaligned access inside an allocation is an alignment finding of that lane") {
  OpsRunner runner;
  const auto from = runner.allocate(256);
  const auto report = runner.run(kStridedRead, {from, 5});
  CHECK(report.kind == FaultKind::alignment);
  CHECK(report.thread[0] == 1);
  CHECK(report.address == from + 5);
  CHECK(contains(report.message, "not a multiple of 4"));
}

TEST_CASE("freed memory is reported as use after free") {
  OpsRunner runner;
  const auto from = runner.allocate(256);
  REQUIRE(runner.memory.free(from));
  const auto report = runner.run(kStridedRead, {from, 4});
  CHECK(report.kind == FaultKind::use_after_free);
  CHECK(contains(report.allocation, "freed"));
}

TEST_CASE("memory that the kernel itself frees is gone for a plan that was made before") {
  OpsRunner runner;
  const auto report = runner.run(
      "ld.param.u64 %d9, [p0];\n"
      "{ .param .b64 a0; .param .b64 r; st.param.b64 [a0], %d9; call.uni (r), malloc, (a0); "
      "ld.param.b64 %d1, [r]; }\n"
      "mov.u32 %r1, 0;\n"
      "LOOP: ld.u32 %r2, [%d1]; setp.eq.u32 %p1, %r1, 1; @%p1 bra FREE; mov.u32 %r1, 1; bra LOOP;\n"
      "FREE: { .param .b64 a0; st.param.b64 [a0], %d1; call.uni free, (a0); }\n"
      "mov.u32 %r1, 0; bra LOOP;\n",
      {64},
      ".extern .func (.param .b64 r) malloc (.param .b64 a);\n.extern .func free (.param .b64 a);");
  CHECK(report.kind == FaultKind::use_after_free);
  CHECK(report.opcode == "ld.u32");
}

TEST_CASE("constant memory and kernel parameters cannot be written") {
  OpsRunner runner;
  const auto report = runner.run("mov.u64 %d1, table; st.global.u32 [%d1], %r0;\n", {0},
                                 ".const .align 4 .u32 table[32] = {1};");
  CHECK(report.kind == FaultKind::bounds);
  CHECK(contains(report.message, "read-only"));
  const auto parameter =
      runner.run("mov.b64 %d2, p0; cvta.param.u64 %d4, %d2; st.u64 [%d4], %d2;\n", {0});
  CHECK(parameter.kind == FaultKind::bounds);
  CHECK(contains(parameter.message, "read-only"));
}

TEST_CASE("shared memory: offset and size of the block's shared memory") {
  OpsRunner runner;
  const std::string body =
      ".shared .align 4 .b8 tile[1024]; ld.param.u64 %d0, [p0]; cvt.u32.u64 %r1, %d0;\n"
      "shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;\n"
      "st.shared.u32 [%r3], %r0;\n";
  CHECK(runner.run(body, {1024 - 128}).message == "");
  const auto report = runner.run(body, {1024 - 124});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.thread[0] == 31);
  CHECK(contains(report.message, "shared memory of 1024 bytes"));
  CHECK(contains(report.message, "offset 1024"));
  const auto misaligned = runner.run(body, {2});
  CHECK(misaligned.kind == FaultKind::alignment);
  CHECK(misaligned.thread[0] == 0);
}

TEST_CASE("a 32-bit shared address wraps in 32 bits, then must be inside") {
  OpsRunner runner;
  const auto report = runner.run(
      ".shared .align 4 .b8 tile[64]; mov.u32 %r1, tile; sub.u32 %r1, %r1, 8; "
      "st.shared.u32 [%r1+12], %r0; ld.shared.u32 %r2, [%r1+-4];\n",
      {0});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.opcode == "ld.shared.u32");
}

TEST_CASE("local memory: a thread cannot leave its own") {
  OpsRunner runner;
  const std::string body =
      ".local .align 8 .b8 mine[64]; ld.param.u64 %d0, [p0]; mov.u64 %d1, mine;\n"
      "add.s64 %d1, %d1, %d0; st.local.u32 [%d1], %r0;\n";
  CHECK(runner.run(body, {60}).message == "");
  const auto report = runner.run(body, {64 << 20});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(contains(report.message, "local memory"));
}

TEST_CASE("addresses so far apart that their distance overflows are still checked one by one") {
  OpsRunner runner;
  const auto from = runner.allocate(256);
  const auto report = runner.run(kStridedRead, {from, std::uint64_t{1} << 60});
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.thread[0] == 1);
}

}  // namespace
}  // namespace kernwright::sim
