// The end of counted loops as one step, and shuffles by constants: against loops on the host.
#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <random>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

constexpr std::uint32_t kMostRounds = 9;

/// Adds `step` to a number until `comparison`, whose operands are %i and %e in some order, fails or
/// the rounds are used up.
std::string counting_kernel(const std::string& comparison, const std::string& sum) {
  return std::string(kHeader) +
         ".visible .entry k(.param .u64 start, .param .u64 step, .param .u64 bound, "
         ".param .u64 out) {\n.reg .pred %p, %q;\n.reg .b32 %t, %i, %s, %e, %n;\n"
         ".reg .b64 %a, %b, %c, %o;\nld.param.u64 %a, [start];\nld.param.u64 %b, [step];\n"
         "ld.param.u64 %c, [bound];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n"
         "mad.wide.u32 %a, %t, 4, %a;\nmad.wide.u32 %b, %t, 4, %b;\nmad.wide.u32 %c, %t, 4, %c;\n"
         "mad.wide.u32 %o, %t, 12, %o;\nld.global.u32 %i, [%a];\nld.global.u32 %s, [%b];\n"
         "ld.global.u32 %e, [%c];\nmov.u32 %n, 0;\nLOOP:\nadd.u32 %n, %n, 1;\n"
         "setp.ge.u32 %q, %n, " +
         std::to_string(kMostRounds) + ";\n@%q bra DONE;\n" + sum + comparison +
         "@%p bra LOOP;\nDONE:\nst.global.u32 [%o], %n;\nst.global.u32 [%o+4], %i;\n"
         "selp.u32 %n, 1, 0, %p;\nst.global.u32 [%o+8], %n;\nret;\n}\n";
}

using Test = std::function<bool(std::uint32_t, std::uint32_t)>;

template <typename T>
Test as(bool (*test)(T, T)) {
  return [test](std::uint32_t a, std::uint32_t b) {
    return test(static_cast<T>(a), static_cast<T>(b));
  };
}
template <typename T>
std::map<std::string, Test> tests_of() {
  return {{"eq", as<T>([](T a, T b) { return a == b; })},
          {"ne", as<T>([](T a, T b) { return a != b; })},
          {"lt", as<T>([](T a, T b) { return a < b; })},
          {"le", as<T>([](T a, T b) { return a <= b; })},
          {"gt", as<T>([](T a, T b) { return a > b; })},
          {"ge", as<T>([](T a, T b) { return a >= b; })}};
}

struct Counted {
  std::vector<std::uint32_t> start, step, bound;
};

/// Lanes that take as many rounds all, mostly, or each its own number; near zero and where signs
/// end.
Counted random_loops(std::mt19937& random) {
  Counted made;
  const auto pick = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random()) % limit;
  };
  const std::uint32_t kind = pick(3);
  const std::uint32_t origin = std::vector<std::uint32_t>{0, 0x7ffffffau, 0xfffffffau}[pick(3)];
  const std::uint32_t step = pick(2) == 0 ? 1 + pick(3) : ~pick(3), first = pick(8),
                      last = pick(16);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const bool own = kind == 2 || (kind == 1 && lane == 5);
    made.start.push_back(origin + (own ? pick(8) : first));
    made.step.push_back(own ? step + pick(2) : step);
    made.bound.push_back(origin + (own ? pick(16) : last));
  }
  return made;
}

void expect_counts(const std::string& comparison, const std::string& sum, const Test& holds,
                   std::mt19937& random) {
  INFO(sum << comparison);
  const auto program = compile(counting_kernel(comparison, sum));
  Machine machine;
  for (int round = 0; round < 24; ++round) {
    const Counted loops = random_loops(random);
    const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(96));
    REQUIRE_FALSE(machine.run(
        *program,
        {machine.upload(loops.start), machine.upload(loops.step), machine.upload(loops.bound), out},
        {.block = 32}));
    const auto got = machine.download<std::uint32_t>(out, 96);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      std::uint32_t rounds = 0, number = loops.start[lane];
      bool last = false;
      while (++rounds < kMostRounds) {
        number += loops.step[lane];
        last = holds(number, loops.bound[lane]);
        if (!last) break;
      }
      INFO("round " << round << " lane " << lane);
      CHECK(got[3 * lane] == rounds);
      CHECK(got[3 * lane + 1] == number);
      CHECK(got[3 * lane + 2] == (last ? 1 : 0));
    }
  }
}

}  // namespace

TEST_CASE("counted loops: every comparison, the sum on either side, signed and unsigned") {
  std::mt19937 random(17);
  for (const std::string type : {"u32", "s32"}) {
    for (const auto& [name, holds] :
         type == "u32" ? tests_of<std::uint32_t>() : tests_of<std::int32_t>()) {
      const std::string compare = "setp." + name + "." + type + " %p, ";
      const auto swapped = [&test = holds](std::uint32_t a, std::uint32_t b) { return test(b, a); };
      expect_counts(compare + "%i, %e;\n", "add." + type + " %i, %i, %s;\n", holds, random);
      expect_counts(compare + "%e, %i;\n", "add." + type + " %i, %s, %i;\n", swapped, random);
    }
  }
}

TEST_CASE("counted loops: what is no plain sum, or compared with itself, counts the same") {
  std::mt19937 random(19);
  const Test less = as<std::int32_t>([](std::int32_t a, std::int32_t b) { return a < b; });
  const std::string compare = "setp.lt.s32 %p, %i, %e;\n", add = "add.s32 %i, %i, %s;\n";
  expect_counts(compare, "sub.s32 %s, 0, %s;\nsub.s32 %i, %i, %s;\nsub.s32 %s, 0, %s;\n", less,
                random);
  expect_counts(compare, "setp.eq.u32 %q, %t, %t;\n@%q " + add, less, random);
  expect_counts(compare, "add.cc.s32 %i, %i, %s;\n", less, random);
  expect_counts(
      "setp.le.s32 %p, %i, %i;\n", add, [](auto, auto) { return true; }, random);
  expect_counts(
      "setp.lt.s32 %p, %i, %i;\n", add, [](auto, auto) { return false; }, random);
}

TEST_CASE("shuffles by a constant: every mode and distance as by a register") {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    const std::string clamp = mode == "up" ? "0" : "31";
    std::string body;
    for (int delta = 0; delta < 34; ++delta) {  // 32 and 33 count as 0 and 1
      const std::string number = std::to_string(delta);
      body += "mov.u32 %a, 0;\nmov.u32 %b, 0;\nmov.u32 %d, %n;\nshfl.sync." + mode +
              ".b32 %a|%p, %v, " + number + ", " + clamp + ", -1;\nadd.u32 %n, %z, " + number +
              ";\nshfl.sync." + mode + ".b32 %b|%q, %v, %n, " + clamp +
              ", -1;\nselp.u32 %c, 100, 0, %p;\nadd.u32 %a, %a, %c;\nselp.u32 %c, 100, 0, %q;\n"
              "add.u32 %b, %b, %c;\nst.global.v2.u32 [%o+" +
              std::to_string(delta * 256) + "], {%a, %b};\n";
    }
    const auto program =
        compile(std::string(kHeader) +
                ".visible .entry k(.param .u64 out, .param .u64 zero) {\n.reg .pred %p, %q;\n"
                ".reg .b32 %a, %b, %c, %d, %n, %t, %v, %z;\n.reg .b64 %o, %y;\n"
                "ld.param.u64 %o, [out];\nld.param.u64 %y, [zero];\nld.global.u32 %z, [%y];\n"
                "mov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 8, %o;\nmad.lo.u32 %v, %t, 3, 5;\n" +
                body + "ret;\n}\n");
    Machine machine;
    const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(34 * 64));
    REQUIRE_FALSE(
        machine.run(*program, {out, machine.upload(std::vector<std::uint32_t>{0})}, {.block = 32}));
    const auto got = machine.download<std::uint32_t>(out, 34 * 64);
    for (int delta = 0; delta < 34; ++delta) {
      for (int lane = 0; lane < 32; ++lane) {
        const int by = delta % 32;
        const int from = mode == "up"     ? lane - by
                         : mode == "down" ? lane + by
                         : mode == "bfly" ? (lane ^ by)
                                          : by;
        const bool inside = from >= 0 && from < 32;
        const auto expected =
            static_cast<std::uint32_t>((inside ? from : lane) * 3 + 5 + (inside ? 100 : 0));
        INFO(mode << " by " << delta << " lane " << lane);
        CHECK(got[static_cast<std::size_t>(delta * 64 + lane * 2)] == expected);
        CHECK(got[static_cast<std::size_t>(delta * 64 + lane * 2 + 1)] == expected);
      }
    }
  }
}
