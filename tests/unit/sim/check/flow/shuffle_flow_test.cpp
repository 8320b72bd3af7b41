// The steps of shuffles' values through a function.
#include "sim/check/flow/shuffle_flow.h"

#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright::sim;

namespace {

using Steps = std::unordered_map<std::uint32_t, FlowStep>;
using Sources = std::vector<std::uint32_t>;

/// Of a kernel with this body; instruction `hidden` is no op of its own.
Steps steps_of(const std::string& body, std::uint32_t hidden = ~0u) {
  const auto module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n" +
      body + "\nret;\n}\n");
  return find_shuffle_flow(module->functions[0], [&](std::uint32_t at) { return at != hidden; });
}

const std::string kShuffle = "shfl.sync.down.b32 %r1|%p1, %r0, 1, 31, -1;\n";  // 0

void check_step(const Steps& steps, std::uint32_t at, FlowRole role, std::uint32_t source,
                const Sources& values, const Sources& others = {}) {
  CAPTURE(at);
  REQUIRE(steps.contains(at));
  const FlowStep& step = steps.at(at);
  CHECK(step.role == role);
  if (role != FlowRole::use) CHECK(step.source == source);
  CHECK(step.values == values);
  CHECK(step.others == others);
}

}  // namespace

TEST_CASE("shuffle flow: through arithmetic to memory, by value and by address") {
  const Steps steps = steps_of(kShuffle +
                               "add.s32 %r2, %r1, %r3;\nmul.wide.u32 %rd1, %r2, 4;\n"     // 1, 2
                               "st.global.u32 [%rd1], %r4;\nst.shared.u32 [%r5], %r2;\n"  // 3, 4
                               "st.local.u32 [%r5], %r2;\nst.u32 [%rd2], %r2;\n"
                               "st.global.u32 [%rd2], %r4;\nred.global.add.u32 [%rd2], %r1;");  // 8
  CHECK(steps.size() == 4);
  check_step(steps, 0, FlowRole::shuffle, 0, {});
  check_step(steps, 3, FlowRole::use, 0, {0});
  check_step(steps, 4, FlowRole::use, 0, {0});
  check_step(steps, 8, FlowRole::use, 0, {0});
}

TEST_CASE("shuffle flow: from shuffle to shuffle, and apart where they are chosen from") {
  const Steps steps =
      steps_of(kShuffle +
               "add.s32 %r2, %r0, %r1;\nshfl.sync.bfly.b32 %r3, %r2, 2, 31, -1;\n"  // 1, 2
               "selp.b32 %r4, %r3, %r2, %p2;\nst.global.u32 [%rd1], %r4;\n"         // 3, 4
               "selp.b32 %r5, %r6, %r7, %p1;\nst.global.u32 [%rd1], %r5;");
  CHECK(steps.size() == 4);
  check_step(steps, 2, FlowRole::shuffle, 2, {0});
  check_step(steps, 3, FlowRole::choice, 3, {2}, {0});
  check_step(steps, 4, FlowRole::use, 0, {3});
}

TEST_CASE("shuffle flow: registers that several instructions write") {
  const std::string loop =
      "ld.global.u32 %r1, [%rd1];\nL:\nshfl.sync.down.b32 %r2, %r1, %r3, 31, -1;\n"  // 0, 1
      "add.s32 %r1, %r1, %r2;\n@%p1 bra L;\nst.global.u32 [%rd1], %r1;";             // 2, 3, 4
  const Steps steps = steps_of(loop);
  CHECK(steps.size() == 4);
  check_step(steps, 0, FlowRole::merge, 0, {});
  check_step(steps, 1, FlowRole::shuffle, 1, {0});
  check_step(steps, 2, FlowRole::merge, 0, {0, 1});
  check_step(steps, 4, FlowRole::use, 0, {0});
  // Where not all of them can be seen at work, nobody says anything.
  CHECK(steps_of(loop, 2).size() == 1);
  // cub writes to the shuffle's own register.
  const Steps own = steps_of(
      "shfl.sync.down.b32 %r1|%p1, %r0, 1, 31, -1;\n@%p1 add.u32 %r1, %r1, %r0;\n"
      "mov.u32 %r2, %r1;\nst.global.u32 [%rd1], %r2;");
  CHECK(own.size() == 4);
  check_step(own, 0, FlowRole::shuffle, 0, {});
  check_step(own, 1, FlowRole::merge, 0, {0});
  check_step(own, 2, FlowRole::merge, 2, {0});
  check_step(own, 3, FlowRole::use, 0, {2});
}

TEST_CASE("shuffle flow: what was computed from such a register before it changed stays") {
  const std::string sum =
      "mov.u32 %r1, %r0;\nadd.s32 %r2, %r1, 5;\nL:\n"           // 0, 1
      "shfl.sync.down.b32 %r1, %r1, 2, 31, -1;\n@%p1 bra L;\n"  // 2, 3
      "mul.lo.s32 %r3, %r2, %r4;\nst.global.u32 [%rd1], %r3;";  // 4, 5
  const Steps steps = steps_of(sum);
  CHECK(steps.size() == 4);
  check_step(steps, 0, FlowRole::merge, 0, {});
  check_step(steps, 1, FlowRole::merge, 1, {0});
  check_step(steps, 2, FlowRole::shuffle, 0, {0});
  check_step(steps, 5, FlowRole::use, 0, {1});
  CHECK(steps_of(sum, 1).size() == 2);  // nobody saw what it was then
}

TEST_CASE("shuffle flow: halves of a wide value come together") {
  const Steps steps = steps_of(
      "mov.b64 {%r1, %r2}, %rd1;\nshfl.sync.up.b32 %r3, %r1, 1, 0, -1;\n"
      "shfl.sync.up.b32 %r4, %r2, 1, 0, -1;\nmov.b64 %rd2, {%r3, %r4};\n"
      "st.global.u64 [%rd3], %rd2;");
  check_step(steps, 4, FlowRole::use, 0, {1, 2});
}

TEST_CASE("shuffle flow: none where there is no shuffle, nor through predicates and calls") {
  CHECK(steps_of("add.s32 %r1, %r2, %r3;\nst.global.u32 [%rd1], %r1;").empty());
  const Steps steps = steps_of(kShuffle +
                               "setp.eq.s32 %p2, %r1, %r2;\nselp.b32 %r3, %r4, %r5, %p2;\n"
                               "st.global.u32 [%rd1], %r3;");
  CHECK(steps.size() == 1);
}
