// Operand counts, kinds and types.
#include "unit/sim/ptx/ptx_fixture.h"

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

TEST_CASE("verify: forms that PTX allows") {
  for (const std::string_view text :
       {"add.s32 %r1, %r2, 5;",
        "add.u32 %s1, %r2, %s3;",
        "mov.b32 %r1, %f2;",
        "mov.f32 %f1, 0f40000000;",
        "mov.b32 %r1, 0f40000000;",
        "mov.f32 %f1, 1.5;",
        "mov.u32 %r1, %tid.x;",
        "mov.u16 %h1, %tid.x;",
        "mov.u64 %l1, %clock64;",
        "mov.b64 {%r1,%r2}, %l1;",
        "mov.b64 {_,%r2}, %l1;",
        "mov.b32 %r1, {%h1,%h2};",
        "mov.b64 %d1, {%r1,%f2};",
        "mov.pred %p1, %p2;",
        "mov.pred %p1, 1;",
        "setp.lt.and.s32 %p1|%p2, %r1, 3, !%p3;",
        "setp.eq.f32 _|%p2, %f1, %f2;",
        "selp.f32 %f1, 1.0, %f2, %p1;",
        "ld.global.u8 %r1, [%l1];",
        "ld.global.s8 %l1, [%l1];",
        "ld.global.v2.f32 {%f1,%f2}, [%l1+8];",
        "ld.global.v4.u32 {%r1,_,%r3,%r4}, [%l1];",
        "st.shared.u16 [%r1], %r2;",
        "st.global.f32 [%l1], 0f00000000;",
        "st.volatile.global.v2.u32 [%l1], {%r1, 7};",
        "ld.relaxed.gpu.global.u32 %r1, [%l1];",
        "ld.global.relaxed.gpu.u32 %r1, [%l1];",
        "st.release.gpu.global.L1::no_allocate.b32 [%l1], %r1;",
        "ld.global.L2::cache_hint.f32 %f1, [%l1], %l2;",
        "cvt.u16.s8 %r1, %h1;",
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        "mul.wide.u16 %r1, %h1, 3;",
        "mad.wide.s32 %l1, %r1, 4, %l2;",
        "shl.b64 %l1, %l2, %r1;",
        "shfl.sync.bfly.b32 %r1|%p1, %f1, 1, 31, -1;",
        "vote.sync.all.pred %p1, !%p2, 0xffffffff;",
        "bar.sync 0;",
        "barrier.sync 1, 64;",
        "bar.red.popc.u32 %r1, 0, %p1;",
        "bar.red.and.pred %p1, 0, 64, !%p2;",
        "atom.global.add.u32 %r1, [%l1], 1;",
        "atom.add.acq_rel.gpu.global.u32 _, [%l1], %r1;",
        "red.global.add.f32 [%l1], %f1;",
        "atom.global.cas.b64 %l1, [%l2], %l3, 0;",
        "cvta.to.shared.u64 %l1, %l2;",
        "isspacep.global %p1, %l1;",
        "fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4;",
        "setp.lt.f16x2 %p1|%p2, %r1, %r2;",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1,%r2},{%r3,%r4},{%r5},{%r1,%r2};",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];",
        "cp.async.ca.shared.global [%r1], [%l1], 4;",
        "cp.async.cg.shared.global.L2::128B [%r1], [%l1], 16, %r2;",
        "lop3.b32 %r1, %r2, %r3, %r4, 0x96;",
        "bfi.b32 %r1, %r2, %r3, 0, 8;",
        "ret;",
        "@%p1 exit;",
        "membar.gl;",
        "fence.acq_rel.gpu;",
        "trap;",
        "mbarrier.arrive.shared.b64 _, [%r1];",
        "mbarrier.arrive.release.cta.shared::cta.b64 %l1, [%r1], 2;",
        "testp.finite.f32 %p1, %f1;",
        "prmt.b32.f4e %r1, %r2, %r3, %r4;",
        "nanosleep.u32 100;"}) {
    CAPTURE(std::string(text));
    CHECK_NOTHROW(parse_instruction(text));
  }
}

TEST_CASE("verify: forms that PTX refuses") {
  const auto message = [](std::string_view text) {
    CAPTURE(std::string(text));
    return error_of([=] { parse_instruction(text); }, 7);
  };
  CHECK(contains(message("add.s32 %r1, %r2;"), "takes 3 operands, not 2"));
  CHECK(contains(message("add.s32 %r1, %r2, %r3, %r4;"), "not 4"));
  CHECK(contains(message("add.s32 %f1, %r2, %r3;"), "%f1 of type .f32 does not fit .s32"));
  CHECK(contains(message("add.f32 %f1, %r2, %s3;"), "does not fit .f32"));
  CHECK(contains(message("add.s32 %r1, %l2, %r3;"), "does not fit"));
  CHECK(contains(message("add.s32 5, %r2, %r3;"), "must be a register"));
  CHECK(contains(message("add.s32 %r1, %r2, 1.5;"), "the constant is no .s32"));
  CHECK(contains(message("add.f32 %f1, %f2, 1;"), "the constant is no .f32"));
  CHECK(contains(message("add.s32 _, %r2, %r3;"), "_ is not allowed"));
  CHECK(contains(message("add.s32 %r1, !%r2, %r3;"), "negated"));
  CHECK(contains(message("add.s32 %r1|%p1, %r2, %r3;"), "pair"));
  CHECK(contains(message("add.s32 %r1, {%r2,%r3}, %r3;"), "value is needed"));
  CHECK(contains(message("add.s32 %r1, [%r2], %r3;"), "value is needed"));
  CHECK(contains(message("add.s32 %r1, k_p, %r3;"), "symbol"));
  CHECK(contains(message("setp.lt.s32 %r1, %r2, %r3;"), "does not fit .pred"));
  CHECK(contains(message("lop3.or.b32 %r1, %r2, %r3, %r1, 1, %p1;"), "needs a predicate beside"));
  CHECK(contains(message("selp.f32 %f1, %f2, %f3, !%p1;"), "negated"));
  CHECK(contains(message("ld.global.u32 %h1, [%l1];"), "does not fit .u32"));
  CHECK(contains(message("ld.global.f32 %d1, [%l1];"), "does not fit .f32"));
  CHECK(contains(message("ld.global.u32 %r1, %l1;"), "address in brackets"));
  CHECK(contains(message("ld.global.v2.u32 %r1, [%l1];"), "vector of 2"));
  CHECK(contains(message("ld.global.v2.u32 {%r1,%r2,%r3}, [%l1];"), "not 3"));
  CHECK(
      contains(message("ld.global.v8.u64 {%l1,%l1,%l1,%l1,%l1,%l1,%l1,%l1}, [%l1];"), "256 bits"));
  CHECK(contains(message("ld.global.u32 %r1, [%h1];"), "holds no address"));
  CHECK(contains(message("mov.b64 {%r1,%h2}, %l1;"), "does not fit .b32"));
  CHECK(contains(message("mov.b64 {%r1,%r2}, {%r3,%r4};"), "vector into a vector"));
  CHECK(contains(message("mov.u64 %l1, %tid.x;"), "narrower"));
  CHECK(contains(message("lop3.b32 %r1, %r2, %r3, %r4, %r5;"), "constant is needed"));
  CHECK(contains(message("shl.b32 %r1, %r2, %l3;"), "does not fit"));
  CHECK(contains(
      message("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1},{%r3,%r4},{%r5},{%r1,%r2};"),
      "vector of 2"));
  CHECK(contains(message("ld.global.f32 %f1, [%l1], %l2;"), "cache_hint"));
  CHECK(contains(message("red.global.L2::cache_hint.add.f32 [%l1], %f2;"), "cache_hint"));
  CHECK(contains(message("min.xorsign.f16 %h1, %h2, %h3;"), ".abs go together"));
  CHECK(contains(message("ret 5;"), "takes 0 operands"));
}

TEST_CASE("verify: a refused instruction of the manual says why, and what to do instead") {
  const auto message = [](const std::string& text) {
    return error_of([&] { parse_instruction(text); }, 7);
  };
  CHECK(contains(message("istypep.texref %p1, %l1;"),
                 "the instruction istypep.texref is not simulated: no texture references here"));
  CHECK(contains(message("tcgen05.mma.cta_group::1.kind::f16 [%r1], %l1, %l2, %r2, %p1;"),
                 "is not simulated: fifth-generation tensor cores"));
  CHECK(contains(message("multimem.red.relaxed.sys.global.add.u32 [%l1], %r1;"),
                 "is not simulated: no multicast memory"));
  CHECK(
      message("frobnicate.u32 %r1;").ends_with("the instruction frobnicate.u32 is not simulated"));
  CHECK(message("add.u31 %r1, %r2, %r3;").ends_with("the instruction add.u31 is not simulated"));
}

TEST_CASE("verify: operand types and destinations are filled in") {
  const auto module = parse_instruction(
      "mad.wide.s32 %l1, %r1, 4, %l2; mov.b64 {%r1,_}, %l2; cvt.rn.f32.s32 %f1, %r1; st.global.u32 "
      "[%l1], %r1;");
  const auto& body = module->functions[0].body;
  CHECK(body[0].operands[0].is_destination);
  CHECK(body[0].operands[0].type == Type::s64);
  CHECK(body[0].operands[1].type == Type::s32);
  CHECK(body[1].operands[0].is_destination);
  CHECK(body[1].operands[0].elements[0].is_destination);
  CHECK(body[1].operands[0].elements[0].type == Type::b32);
  CHECK(body[2].operands[0].type == Type::f32);
  CHECK(body[2].operands[1].type == Type::s32);
  CHECK_FALSE(body[3].operands[0].is_destination);
  CHECK(body[3].operands[1].type == Type::u32);
}

TEST_CASE("verify: an unknown instruction carries its opcode") {
  for (const std::string_view text :
       {"tcgen05.fence::before_thread_sync;", "add.f33 %f1, %f2, %f3;", "add;",
        "tex.2dms.v4.f32.s32 {%f1}, [t, {%f2}];", "foo.bar %r1;"}) {
    CAPTURE(std::string(text));
    try {
      parse_instruction(text);
      FAIL("parsed");
    } catch (const PtxError& error) {
      CHECK(error.opcode == text.substr(0, text.find_first_of(" ;")));
      CHECK(error.ptx_line == 7);
      CHECK(contains(error.what(), error.opcode));
    }
  }
}
