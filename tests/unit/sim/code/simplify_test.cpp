// Dropped copies and instructions run once per warp: those moved, and those kept in place.
#include "unit/sim/exec/exec_support.h"

#include "sim/code/passes.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// Opcodes of the ops in [first, last), "" for those without an instruction.
std::vector<std::string> opcodes(const Program& program, std::uint32_t first, std::uint32_t last) {
  std::vector<std::string> found;
  for (std::uint32_t i = first; i < last; ++i) found.emplace_back(program.places[i].opcode);
  return found;
}

/// The instructions moved from `body` in front of the blocks' code; `%out` is left to it.
std::vector<std::string> moved(const std::string& body) {
  const auto program =
      compile(std::string(kHeader) +
              ".visible .entry k(.param .u64 out, .param .u64 n) {\n.reg .pred %p;\n"
              ".reg .b32 %a, %b, %c, %d;\n.reg .b64 %x, %y, %z;\n" +
              body + "ret;\n}\n");
  const FunctionInfo& info = program->functions[0];
  return opcodes(*program, info.first_op, info.block_op);
}

using Opcodes = std::vector<std::string>;

}  // namespace

TEST_CASE("simplify: parameters, thread indices and what follows from them run once per warp") {
  CHECK(moved("ld.param.u64 %x, [out];\nmov.u32 %a, %tid.x;\nmul.wide.u32 %y, %a, 4;\n"
              "add.s64 %z, %x, %y;\nst.global.u32 [%z], %a;\n") ==
        Opcodes{"ld.param.u64", "mov.u32", "add.s64"});  // mul.wide is part of the sum
}

TEST_CASE("simplify: what depends on the block, on memory or on a branch stays") {
  CHECK(moved("mov.u32 %a, %ctaid.x;\nadd.s32 %b, %a, 1;\nst.shared.u32 [0], %b;\n").empty());
  CHECK(moved("mov.u64 %y, 0;\nld.shared.u32 %a, [%y];\nadd.s32 %b, %a, 1;\n"
              "st.shared.u32 [%y], %b;\n")
            .empty());
  CHECK(moved("mov.u32 %a, %clock;\nst.shared.u32 [0], %a;\n").empty());
  CHECK(moved("add.cc.s32 %a, 1, 2;\naddc.s32 %b, 3, 4;\nst.shared.u32 [0], %b;\n").empty());
  // Written twice, written under a guard, and read before it is written.
  CHECK(moved("mov.u32 %a, %tid.x;\nmov.u32 %a, 7;\nst.shared.u32 [0], %a;\n").empty());
  CHECK(moved("setp.eq.u32 %p, 1, 1;\n@%p mov.u32 %a, 7;\nst.shared.u32 [0], %a;\n") ==
        Opcodes{"setp.eq.u32"});
  CHECK(moved("st.shared.u32 [0], %a;\nadd.s32 %a, 3, 4;\nst.shared.u32 [4], %a;\n").empty());
}

TEST_CASE("simplify: device functions keep their code") {
  const auto program = compile(std::string(kHeader) +
                               ".func f() {\n.reg .b32 %a;\nadd.s32 %a, 3, 4;\n"
                               "st.shared.u32 [0], %a;\nret;\n}\n");
  CHECK(program->functions[0].first_op == program->functions[0].block_op);
}

TEST_CASE("simplify: readers of a copy read its source; a source that changes keeps its copy") {
  const auto ops = [](const std::string& body) {
    const auto program = compile(std::string(kHeader) +
                                 ".visible .entry k() {\n.reg .b32 %a, %b, %c;\n.reg .f32 %f;\n" +
                                 body + "ret;\n}\n");
    return opcodes(*program, 0, static_cast<std::uint32_t>(program->full.size()));
  };
  CHECK(ops("ld.shared.u32 %a, [0];\nmov.b32 %f, %a;\nst.shared.f32 [4], %f;\n") ==
        Opcodes{"ld.shared.u32", "st.shared.f32", "ret"});
  CHECK(ops("mov.u32 %a, 5;\nmov.u32 %b, %a;\nst.shared.u32 [4], %b;\n") ==
        Opcodes{"st.shared.u32", "ret"});
  CHECK(ops("ld.shared.u32 %a, [0];\nmov.u32 %b, %a;\nld.shared.u32 %a, [4];\n"
            "st.shared.u32 [8], %a;\nst.shared.u32 [12], %b;\n") ==
        Opcodes{"ld.shared.u32", "mov.u32", "ld.shared.u32", "st.shared.u32", "st.shared.u32",
                "ret"});
}

TEST_CASE("simplify: many blocks of whole and partial warps see what the first one computed") {
  // Every block runs a loop with many registers, between the definition and the use of the kept
  // values.
  std::string text = kHeader;
  text +=
      ".visible .entry k(.param .u64 out, .param .u64 step) {\n.reg .pred %p;\n"
      ".reg .b32 %t, %n, %c, %i, %k, %s, %r<24>;\n.reg .b64 %o, %w, %at, %step;\n"
      "ld.param.u64 %o, [out];\nld.param.u64 %step, [step];\nmov.u32 %t, %tid.x;\n"
      "mov.u32 %n, %ntid.x;\nmul.lo.u32 %k, %t, 3;\ncvt.u32.u64 %s, %step;\n"
      "mov.u32 %c, %ctaid.x;\nmad.lo.u32 %i, %c, %n, %t;\nmov.u32 %r0, %i;\nLOOP:\n";
  for (int r = 1; r < 24; ++r) {
    text += "add.u32 %r" + std::to_string(r) + ", %r" + std::to_string(r - 1) + ", %s;\n";
  }
  text += "mov.u32 %r0, %r23;\nsetp.lt.u32 %p, %r0, 5000;\n@%p bra LOOP;\n";
  text +=
      "add.u32 %r0, %r0, %k;\nmul.wide.u32 %w, %i, 4;\nadd.s64 %at, %o, %w;\n"
      "st.global.u32 [%at], %r0;\nret;\n}\n";
  const auto program = compile(text);
  CHECK(program->functions[0].block_op > program->functions[0].first_op);
  for (const unsigned threads : {32u, 96u, 77u, 5u}) {
    constexpr unsigned kBlocks = 40;
    constexpr std::uint32_t kStep = 9;
    Machine machine;
    const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(kBlocks * threads, 0));
    REQUIRE_FALSE(machine.run(*program, {out, kStep}, {.grid = kBlocks, .block = threads}));
    const auto result = machine.download<std::uint32_t>(out, kBlocks * threads);
    for (unsigned i = 0; i < result.size(); ++i) {
      std::uint32_t expected = i;
      do expected += 23 * kStep;
      while (expected < 5000);
      CHECK(result[i] == expected + 3 * (i % threads));
    }
  }
}

TEST_CASE("simplify: a fault behind moved code names its own line, block and thread") {
  Machine machine;
  const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(64, 0));
  const auto program = compile(std::string(kHeader) +
                               ".visible .entry k(.param .u64 out) {\n.reg .b32 %t, %c, %i;\n"
                               ".reg .b64 %o, %w, %at;\nld.param.u64 %o, [out];\n"
                               "mov.u32 %c, %ctaid.x;\nmov.u32 %t, %tid.x;\n"
                               "mad.lo.u32 %i, %c, 48, %t;\nmul.wide.u32 %w, %i, 4;\n"
                               "add.s64 %at, %o, %w;\nst.global.u32 [%at], %t;\nret;\n}\n");
  const auto fault = machine.run(*program, {out}, {.grid = 2, .block = 48});
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::bounds);
  CHECK(fault->opcode == "st.global.u32");
  CHECK(fault->ptx_line == 13);
  CHECK(fault->block == std::array<unsigned, 3>{1, 0, 0});
  CHECK(fault->thread == std::array<unsigned, 3>{16, 0, 0});
}
