// Forms of texture and surface instructions: what ptxas takes for sm_90a and what it refuses.
#include "unit/sim/ptx/ptx_fixture.h"

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

namespace {

bool is_taken(std::string_view text) {
  try {
    parse_instruction(text);
    return true;
  } catch (const PtxError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("texture forms: what ptxas takes") {
  for (const std::string_view text : {
           "tex.1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, %f4];",
           "tex.1d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%l1, {%f4}];",
           "tex.2d.v2.f16x2.f32 {%r0,%r1}, [%l1, {%f4,%f5}];",
           "tex.base.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}];",
           "tex.3d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%r5,%r5,%r5}];",
           "tex.a2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%r5,%r6,%r6}];",
           "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}], {1,-2};",
           "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}], {%r1,%r2};",
           "tex.1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4}], 3;",
           "tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5,%f6,%f6}], {1,2,3,0};",
           "tex.a1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%r1,%f4}], {3};",
           "tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}], 0f00000000, {1,2};",
           "tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}], {%f6,%f7},{%f8,%f0}, "
           "{1,2};",
           "tex.level.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%r5}], %r6;",
           "tex.2d.v4.f32.f32 {%f0,_,%f2,%f3}|%p1, [%l1, {%f4,%f5}];",
           "tex.1d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%l1, {0f3f000000}];",
           "tld4.r.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}|%p1, [%l1, {%f4,%f5}], {1,-3};",
           "tld4.b.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f3,%f4,%f5,%f5}];",
           "tld4.a.acube.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%l1, {%r1,%f4,%f5,%f5}];",
           "txq.num_mipmap_levels.b32 %r1, [%l1];",
           "txq.level.width.b32 %r1, [%l1], %r2;",
           "suld.b.1d.b32.trap %f1, [%l1, %r2];",
           "suld.b.2d.v2.b64.trap {%l0,%l2}, [%l1, {%r2,%r3}];",
           "suld.b.2d.v4.b8.clamp {%r0,%r1,%r2,%r3}, [%l1, {%r2,%r3}];",
           "sust.b.2d.wb.v2.b16.zero [%l1, {%r2,%r3}], {%h0,%h1};",
           "sust.b.1d.b32.trap [%l1, {3}], {4};",
           "sust.p.1d.b32.trap [%l1, {%r1}], {%r0};",
           "sured.b.min.2d.u64.zero [%l1, {%r1,%r2}], %l3;",
           "sured.b.and.2d.b32.zero [%l1, {%r1,%r2}], %r3;",
           "suq.depth.b32 %r1, [%l1];",
       }) {
    CAPTURE(std::string(text));
    CHECK(is_taken(text));
  }
}

TEST_CASE("texture forms: what ptxas refuses") {
  for (const std::string_view text : {
           "tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5,%f6}];",
           "tex.a2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%f5,%f6}];",
           "tex.cube.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%r5,%r6,%r6}];",
           "tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5,%f6,%f6}], {1,2,3};",
           "tex.level.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r4,%r5}], %f6;",
           "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1+8, {%f4,%f5}];",
           "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [12345678, {%f4,%f5}];",
           "tex.2d.v4.b32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4,%f5}];",
           "tex.1d.v4.s32.s32 {%f0,%f1,%f2,%f3}, [%l1, {%r3}];",
           "tld4.a.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f1,%f4,%f5,%f5}];",
           "tld4.r.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%l1, {%f4,%f5}];",
           "txq.level.array_size.b32 %r1, [%l1], 0;",
           "suld.b.1d.u32.trap {%r1}, [%l1, {%r2}];",
           "suld.b.2d.v4.b64.trap {%l0,%l2,%l3,%l4}, [%l1, {%r2,%r3}];",
           "suld.b.3d.b32.trap {%r1}, [%l1, {%r2,%r3,%r4}];",
           "suld.b.cube.b32.trap {%r1}, [%l1, {%r2,%r3,%r4,%r4}];",
           "suld.p.2d.v4.f32.trap {%f0,%f1,%f2,%f3}, [%l1, {%r2,%r3}];",
           "sust.p.1d.v4.f32.trap [%l1, {%r1}], {%f0,%f1,%f2,%f3};",
           "sured.b.or.2d.b32.zero [%l1, {%r1,%r2}], {%r3,%r4};",
           "sured.b.or.2d.b64.zero [%l1, {%r1,%r2}], %l3;",
           "sured.b.or.a2d.b32.zero [%l1, {%r1,%r2,%r3,%r3}], %r3;",
           "ld.global.v4.f32 {%f0,%f1,%f2,%f3}|%p1, [%l1];",
           "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4}|%p1];",
           "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%l1, %r1];",
       }) {
    CAPTURE(std::string(text));
    CHECK_FALSE(is_taken(text));
  }
}

TEST_CASE("texture forms: what is refused says why") {
  const auto message = [](std::string_view text) {
    return error_of([&] { parse_instruction(text); }, 7);
  };
  CHECK(contains(message("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f4}];"),
                 "2 coordinates are needed, not 1"));
  CHECK(contains(message("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%r1, {%f4,%f5}];"),
                 "a register of 64 bits with the handle"));
  CHECK(contains(message("tex.2d.v4.f32.f32 {%f0,%f1}, [%l1, {%f4,%f5}];"), "4 elements"));
  CHECK(contains(message("ld.global.v2.f32 {%f0,%f1}|%p1, [%l1];"), "no predicate stands"));
}
