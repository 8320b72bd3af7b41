// Decoding: block order, slots, layouts, errors.
#include "unit/sim/exec/exec_support.h"

#include "sim/code/dispatch.h"
#include "sim/code/passes.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

LoweredBlock block(LoweredBlock::End end, std::uint32_t taken, std::uint32_t fall) {
  LoweredBlock b;
  b.end = end;
  b.taken = taken;
  b.fall = fall;
  return b;
}

std::size_t get_place(const std::vector<std::uint32_t>& order, std::uint32_t b) {
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), b) - order.begin());
}

std::string message_of(const std::string& text) {
  try {
    compile(text);
  } catch (const ptx::PtxError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("block order: the loop's blocks stand together, before its exit") {
  using End = LoweredBlock::End;
  // 0 -> 1; 1: branch to the exit 2 or fall to the body 3; 3 -> 1. The exit is written first.
  for (const bool exit_is_taken : {true, false}) {
    Lowered function;
    function.blocks.push_back(block(End::jump, 1, 0));
    function.blocks.push_back(exit_is_taken ? block(End::branch, 2, 3) : block(End::branch, 3, 2));
    function.blocks.push_back(block(End::leave, 0, 0));
    function.blocks.push_back(block(End::jump, 1, 0));
    function.blocks.push_back(block(End::leave, 0, 0));  // unreachable
    const auto order = block_order(function);
    REQUIRE(order.size() == 4);
    CHECK(order.front() == 0);
    CHECK(get_place(order, 3) < get_place(order, 2));
    CHECK(get_place(order, 1) < get_place(order, 3));
  }
}

TEST_CASE("block order: a join comes after both sides") {
  using End = LoweredBlock::End;
  Lowered function;
  function.blocks.push_back(block(End::branch, 1, 2));
  function.blocks.push_back(block(End::jump, 3, 0));
  function.blocks.push_back(block(End::jump, 3, 0));
  function.blocks.push_back(block(End::leave, 0, 0));
  const auto order = block_order(function);
  CHECK(order.back() == 3);
  CHECK(order.front() == 0);
}

TEST_CASE("slots: registers that are never alive together share, registers of one op never do") {
  Lowered function;
  function.blocks.emplace_back();
  LoweredBlock& b = function.blocks[0];
  b.end = LoweredBlock::End::leave;
  for (int i = 0; i < 40; ++i) function.add_register(4);
  for (std::uint32_t i = 0; i + 1 < 40; ++i) {  // r[i + 1] = f(r[i])
    LoweredOp op;
    op.d = {Ref::Kind::reg, i + 1};
    op.sources[0] = {Ref::Kind::reg, i};
    op.source_count = 1;
    b.ops.push_back(op);
  }
  const FrameLayout layout = assign_slots(function, {0});
  auto places = layout.registers;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) CHECK(places[i] != places[i + 1]);
  std::sort(places.begin(), places.end());
  CHECK(std::unique(places.begin(), places.end()) - places.begin() <= 3);
  CHECK(layout.live_at_entry == std::vector<std::uint32_t>{0});
}

TEST_CASE("slots: a value that a loop carries keeps its place for the whole loop") {
  Lowered function;
  using End = LoweredBlock::End;
  function.blocks.resize(3);
  for (int i = 0; i < 3; ++i) function.add_register(8);
  const auto define = [](std::uint32_t reg) {
    LoweredOp op;
    op.d = {Ref::Kind::reg, reg};
    return op;
  };
  LoweredOp use;
  use.sources[0] = {Ref::Kind::reg, 0};
  use.source_count = 1;
  function.blocks[0].ops = {define(0)};
  function.blocks[0].end = End::fall;
  function.blocks[0].fall = 1;
  function.blocks[1].ops = {use, define(1), define(2)};  // r0 is read again in the next round
  function.blocks[1].end = End::branch;
  function.blocks[1].taken = 1;
  function.blocks[1].fall = 2;
  function.blocks[2].end = End::leave;
  const FrameLayout layout = assign_slots(function, {0, 1, 2});
  CHECK(layout.registers[1] != layout.registers[0]);
  CHECK(layout.registers[2] != layout.registers[0]);
  CHECK(layout.live_at_entry.empty());
}

TEST_CASE("slot sizes") {
  CHECK(slot_bytes(kPredicateWidth) == 4);
  CHECK(slot_bytes(2) == 64);
  CHECK(slot_bytes(4) == 128);
  CHECK(slot_bytes(8) == 256);
  CHECK(slot_bytes(16) == 512);
}

TEST_CASE("parameters are packed at their alignment") {
  const auto program =
      compile(std::string(kHeader) +
              ".visible .entry k(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[6],\n"
              ".param .f32 d) { ret; }\n");
  const FunctionInfo* info = program->find("k");
  REQUIRE(info != nullptr);
  REQUIRE(info->parameters.size() == 4);
  CHECK(info->parameters[1].offset == 8);
  CHECK(info->parameters[2].offset == 16);
  CHECK(info->parameters[2].bytes == 6);
  CHECK(info->parameters[3].offset == 24);
  CHECK(info->parameter_bytes == 28);
  CHECK(program->find("missing") == nullptr);
}

TEST_CASE("shared memory: an entry pays for what it can reach") {
  const auto program = compile(std::string(kHeader) + R"(
.shared .align 8 .b8 common[100];
.func f() { .reg .b32 %r; st.shared.u32 [common], %r; ret; }
.visible .entry a() { .shared .b32 own[10]; .reg .b32 %r; st.shared.u32 [own], %r; ret; }
.visible .entry b() { .shared .b32 own[10]; .reg .b32 %r; st.shared.u32 [own], %r; call f; ret; }
)");
  CHECK(program->find("a")->shared_bytes == 40);
  CHECK(program->find("b")->shared_bytes == 140);
}

TEST_CASE("both code arrays have the same shape") {
  const auto program = compile(std::string(kHeader) + R"(
.visible .entry k(.param .u32 n) {
  .reg .b32 %r<3>; .reg .pred %p;
  ld.param.u32 %r0, [n];
  mov.u32 %r1, 0;
LOOP:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, %r0;
  @%p bra LOOP;
  ret;
})");
  REQUIRE(program->full.size() == program->masked.size());
  REQUIRE(program->full.size() == program->places.size());
  for (std::size_t i = 0; i < program->full.size(); ++i) {
    CHECK((program->full[i].fn != nullptr));
    CHECK((program->masked[i].fn != nullptr));
    CHECK(program->full[i].d == program->masked[i].d);
    CHECK(program->full[i].target == program->masked[i].target);
  }
  CHECK(program->places[0].opcode == "ld.param.u32");
}

TEST_CASE("what cannot run is refused with its place") {
  const std::string undefined = message_of(std::string(kHeader) +
                                           ".extern .func nowhere();\n"
                                           ".visible .entry k() {\ncall nowhere;\nret;\n}\n");
  CHECK(undefined.find("nowhere") != std::string::npos);
  const std::string global = message_of(std::string(kHeader) +
                                        ".extern .global .b32 elsewhere;\n.visible .entry k() {\n"
                                        ".reg .b64 %d;\nmov.u64 %d, elsewhere;\nret;\n}\n");
  CHECK(global.find("elsewhere") != std::string::npos);
  const std::string outside = message_of(std::string(kHeader) +
                                         ".visible .entry k(.param .u32 n) {\n.reg .b64 %d;\n"
                                         "ld.param.u64 %d, [n];\nret;\n}\n");
  CHECK(outside.find("outside") != std::string::npos);
}

TEST_CASE("the build of the handlers can be chosen") { CHECK(std::string(selected_isa()) != ""); }
