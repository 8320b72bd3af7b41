// Vector registers: .reg .v2 and .v4, their parts, and moves of whole vectors.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <array>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace kernwright::sim {
namespace {

using Words = std::array<std::uint32_t, 4>;

const std::string kRegisters =
    ".reg .v4 .u32 u, v; .reg .v2 .u32 z; .reg .v4 .f32 q; .reg .v2 .f32 w; .reg .v2 .b64 l;\n"
    ".reg .v4 .u16 h; .reg .v2 .f64 g; .reg .v4 .b32 m<3>; .reg .v4 .b8 c; .reg .b128 whole;\n"
    ".reg .align 16 .v2 .s16 pair;\n";

Words word_of(std::uint32_t thread) {
  return {thread * 0x01020304u + 5, ~thread, thread << 20 | 0x77, 0x80000000u + thread};
}

std::string load_text(const std::string& body) {
  return kRegisters +
         "ld.param.u64 %d1, [p0];\nmad.wide.u32 %d1, %r0, 16, %d1;\n"
         "ld.global.v4.u32 u, [%d1];\nand.b32 %r1, %r0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n" +
         body + "\nst.global.v4.u32 [%d1], u;";
}

/// Each thread has the four words of word_of() in u, runs `body`, and stores u.
void check_words(const std::string& body,
                 const std::function<Words(Words, std::uint32_t)>& expected) {
  for (const std::uint32_t threads : {32u, 51u}) {
    OpsRunner runner;
    runner.block = {threads, 1, 1};
    std::vector<std::uint32_t> in, out;
    for (std::uint32_t t = 0; t < threads; ++t) {
      const Words words = word_of(t), result = expected(words, t);
      in.insert(in.end(), words.begin(), words.end());
      out.insert(out.end(), result.begin(), result.end());
    }
    const std::uint64_t memory = runner.upload(in);
    const Fault report = runner.run(load_text(body), {memory});
    INFO(body, "\n", report.to_string());
    REQUIRE(report.kind == FaultKind::none);
    CHECK(runner.download<std::uint32_t>(memory, in.size()) == out);
  }
}

std::string refusal(const std::string& body) {
  OpsRunner runner;
  const std::uint64_t memory = runner.upload(std::vector<std::uint32_t>(4 * 32));
  try {
    runner.run(load_text(body), {memory});
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("vector registers: parts are registers of their own") {
  check_words("mov.u32 u.x, u.w;\nadd.u32 u.g, u.b, u.a;", [](Words u, std::uint32_t) {
    return Words{u[3], u[2] + u[3], u[2], u[3]};
  });
  check_words(
      "mad.lo.u32 u.r, u.y, u.z, u.w;\nsetp.lt.u32 %p2, u.x, u.y;\nselp.u32 u.z, 1, 0, %p2;",
      [](Words u, std::uint32_t) {
        const std::uint32_t x = u[1] * u[2] + u[3];
        return Words{x, u[1], x < u[1] ? 1u : 0u, u[3]};
      });
  check_words("mov.u32 m1 .x, u.y;\nmov.b32 m2.x, m1.x;\nmov.b32 u.x, m2.x;",
              [](Words u, std::uint32_t) {
                return Words{u[1], u[1], u[2], u[3]};
              });
  check_words("{ .reg .u32 u; mov.u32 u, 9; mov.u32 m0.w, u; }\nmov.b32 u.y, m0.w;",
              [](Words u, std::uint32_t) {
                return Words{u[0], 9, u[2], u[3]};
              });
}

TEST_CASE("vector registers: whole vectors move at once, whichever parts they share") {
  check_words("mov.v4.u32 {u.y, u.x, u.w, u.z}, u;", [](Words u, std::uint32_t) {
    return Words{u[1], u[0], u[3], u[2]};
  });
  check_words("mov.v4.b32 u, {u.w, u.w, u.x, %tid.x};", [](Words u, std::uint32_t t) {
    return Words{u[3], u[3], u[0], t};
  });
  check_words("mov.v4.u32 v, u;\nmov.v4.s32 {u.x, _, %r2, u.w}, {v.w, v.w, v.w, v.x};",
              [](Words u, std::uint32_t) {
                return Words{u[3], u[1], u[2], u[0]};
              });
  check_words(
      "mov.v2.u32 {%r2, %r3}, {u.x, u.y};\nmov.v2.u32 {%r3, %r2}, {%r2, %r3};\n"
      "mov.v2.u32 {u.x, u.y}, {%r2, %r3};",
      [](Words u, std::uint32_t) {
        return Words{u[1], u[0], u[2], u[3]};
      });
  const auto odd_are_turned = [](Words u, std::uint32_t t) {
    return t % 2 == 0 ? u : Words{u[3], u[2], u[1], u[0]};
  };
  check_words("@%p1 mov.v4.u32 u, {u.w, u.z, u.y, u.x};", odd_are_turned);
  check_words("@!%p1 bra OVER;\nmov.v4.u32 u, {u.w, u.z, u.y, u.x};\nOVER:\n", odd_are_turned);
}

TEST_CASE("vector registers: a single value is the first part of a vector") {
  check_words("mov.v4.u32 u, 7;", [](Words, std::uint32_t) { return Words{7, 0, 0, 0}; });
  check_words("mov.v2.f32 w, 1.5;\nmov.b32 u.x, w.x;\nmov.b32 u.y, w.y;",
              [](Words u, std::uint32_t) {
                return Words{0x3fc00000, 0, u[2], u[3]};
              });
  check_words("mov.v4.u32 u, %tid;", [](Words, std::uint32_t t) { return Words{t, 0, 0, 0}; });
  check_words("mov.v4.u32 {%r1, u.x, u.y, u.z}, %ntid;", [](Words u, std::uint32_t) {
    return Words{1, 1, 0, u[3]};
  });
  check_words(
      "mov.v4.u16 h, %tid;\nmov.b64 {u.x, u.y}, %d1;\ncvt.u32.u16 u.x, h.x;\n"
      "cvt.u32.u16 u.y, h.w;",
      [](Words u, std::uint32_t t) {
        return Words{t, 0, u[2], u[3]};
      });
  check_words("mov.u32 u.x, %tid.r;\nmov.u32 u.y, %clusterid.a;", [](Words u, std::uint32_t t) {
    return Words{t, 0, u[2], u[3]};
  });
}

TEST_CASE("vector registers: packed, taken apart, loaded and stored") {
  check_words(
      "mov.v2.u32 z, {u.z, u.w};\nmov.b64 %d2, z;\nmov.b64 h, %d2;\n"
      "mov.v4.u16 {h.w, h.z, h.y, h.x}, h;\nmov.b64 %d2, h;\nmov.b64 {u.x, u.y}, %d2;",
      [](Words u, std::uint32_t) {
        const auto turn = [](std::uint32_t x) { return x << 16 | x >> 16; };
        return Words{turn(u[3]), turn(u[2]), u[2], u[3]};
      });
  check_words(
      "mov.b128 whole, u;\nmov.b128 l, whole;\nmov.v2.b64 {l.y, l.x}, l;\n"
      "mov.b128 whole, l;\nmov.b128 u, whole;",
      [](Words u, std::uint32_t) {
        return Words{u[2], u[3], u[0], u[1]};
      });
  check_words(
      "ld.global.v2.f64 g, [%d1];\nst.global.v2.f64 [%d1], {g.y, g.x};\n"
      "ld.global.v4.f32 q, [%d1];\nmov.b32 u.x, q.x;\nmov.b32 u.w, q.w;",
      [](Words u, std::uint32_t) {
        return Words{u[2], u[1], u[2], u[1]};
      });
  check_words(
      "ld.global.v4.u8 v, [%d1];\nld.global.v4.b8 c, [%d1+4];\nmov.b32 u.y, c;\n"
      "mov.u32 u.x, v.y;\nst.global.v2.u32 [%d1+8], {v.x, v.w};\n"
      "ld.global.v2.u32 {u.z, u.w}, [%d1+8];",
      [](Words u, std::uint32_t) {
        return Words{u[0] >> 8 & 255, u[1], u[0] & 255, u[0] >> 24};
      });
  check_words("mov.b32 pair, u.x;\nmov.b32 u.y, {pair.y, pair.x};", [](Words u, std::uint32_t) {
    return Words{u[0], u[0] << 16 | u[0] >> 16, u[2], u[3]};
  });
}

TEST_CASE("vector registers: what ptxas takes is taken") {
  for (const std::string body : {
           "ldmatrix.sync.aligned.m8n8.x4.shared.b16 m1, [%r1];",
           "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], m1;",
           "red.global.v2.f32.add [%d1], w;",
           "ldu.global.v4.f32 q, [%d1];",
           "ld.global.nc.v4.f32 q, [%d1];",
           "ld.param.v2.f32 w, [p0];",
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {q.x, q.y, q.z, q.w}, "
           "{u.x, u.y, u.z, u.w}, {z.x, z.y}, {q.x, q.y, q.z, q.w};",
           "shfl.sync.idx.b32 u.x, u.y, u.z, 31, 0xffffffff;",
           "atom.global.add.f32 q.x, [%d1], q.y;",
           ".reg .v4 .f16x2 x; .reg.v2.s8 y; .reg .v2 .u64 e, f;",
       }) {
    // Shared memory is missing: the run may fail, but the load does not refuse it.
    INFO(body, ": ", refusal(body));
    CHECK(refusal(body).empty());
  }
}

TEST_CASE("vector registers: what ptxas refuses is refused, with a reason") {
  const auto refused = [](const std::string& body, const std::string& part) {
    const std::string message = refusal(body);
    INFO(body, ": ", message);
    CHECK(!message.empty());
    CHECK(message.find(part) != std::string::npos);
  };
  refused(".reg .v4 .f64 x;", "a vector register of more than 128 bits");
  refused(".reg .v2 .pred x;", "predicates make no vectors");
  refused(".reg .f32 .v2 x;", ".v2 is no type here");
  refused(".reg .v8 .b16 x;", ".v8 is no type here");
  refused("mov.u32 u.s, 0;", "u of 4 parts has no part .s");
  refused("mov.u32 z.z, 0;", "z of 2 parts has no part .z");
  refused("mov.u32 u.x.y, 0;", "");
  refused("add.u32 u, u, v;", "operand 1: a destination must be a register");
  refused("mov.u32 u, v;", "moves a vector into a vector");
  refused("mov.v2.u32 u, v;", "a vector of 2 elements is needed, not 4");
  refused("mov.v4.u32 u, z;", "a vector of 4 elements is needed, not 2");
  refused("mov.v4.u32 q, u;", "register q.x of type .f32 does not fit .u32");
  refused("mov.v2.b64 l, %tid;", "a vector of 2 elements is needed, not 4");
  refused("mov.v4.u64 {%d2, %d3, %d4, %d5}, {%d2, %d3, %d4, %d5};", "128 bits");
  refused("mov.u32 %r1, %tid;", "packs 2 or 4 parts");
  refused("add.u32 %r1, %tid, 5;", "operand 2");
  refused("ld.global.v2.u32 u, [%d1];", "a vector of 2 elements is needed, not 4");
  refused("ld.global.u32 u, [%d1];", "");
  refused("ld.global.f32 %f1, [l.x];", "l holds no address");
  refused("ld.global.v4.u32 {z, z}, [%d1];", "a vector inside a vector");
  refused("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 q, u, z, q;",
          "the parts of a vector register are named in braces here");
  refused("@u bra OVER;\nOVER:", "u is a vector register");
  refused("shfl.sync.idx.b32 u.x|%p2, u.y, u.z, 31, -1;", "");
}

}  // namespace
}  // namespace kernwright::sim
