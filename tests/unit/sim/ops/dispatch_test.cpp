// Every build of the op families that this CPU can run gives the same bits.
#include "base/errors.h"
#include "unit/sim/exec/exec_support.h"

#include "sim/code/dispatch.h"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace kernwright;
using namespace kernwright::sim::testing;

namespace {

/// Sets KERNWRIGHT_SIM_ISA for a scope.
class IsaGuard {
 public:
  explicit IsaGuard(const char* name) {
    if (const char* old = std::getenv("KERNWRIGHT_SIM_ISA")) old_ = old;
    setenv("KERNWRIGHT_SIM_ISA", name, 1);
  }
  ~IsaGuard() {
    if (old_.empty()) {
      unsetenv("KERNWRIGHT_SIM_ISA");
    } else {
      setenv("KERNWRIGHT_SIM_ISA", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

std::vector<std::uint64_t> noise(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = seed ^ (seed >> 29);
  }
  return values;
}

}  // namespace

TEST_CASE("instruction sets agree bit by bit on random inputs") {
  const auto a = noise(640, 1), b = noise(640, 2), c = noise(640, 3);
  const std::vector<Instruction> instructions{
      {"add.f32 %d, %a, %b;"},
      {"fma.rn.f32 %d, %a, %b, %c;"},
      {"fma.rn.ftz.sat.f32 %d, %a, %b, %c;"},
      {"div.rn.f32 %d, %a, %b;"},
      {"ex2.approx.ftz.f32 %d, %a;"},
      {"lg2.approx.f32 %d, %a;"},
      {"sin.approx.f32 %d, %a;"},
      {"cos.approx.ftz.f32 %d, %a;"},
      {"tanh.approx.f32 %d, %a;"},
      {"rsqrt.approx.f32 %d, %a;"},
      {"add.rp.f32 %d, %a, %b;"},
      {"max.NaN.f32 %d, %a, %b;"},
      {"mad.lo.u32 %d, %a, %b, %c;"},
      {"mul.hi.s32 %d, %a, %b;"},
      {"prmt.b32 %d, %a, %b, %c;"},
      {"shf.l.wrap.b32 %d, %a, %b, %c;"},
      {"bfe.s32 %d, %a, %b, %c;"},
      {"popc.b32 %d, %a;"},
      {"min.s16 %d, %a, %b;", "b16", "b16", "b16", "b16"},
      {"fma.rn.f64 %d, %a, %b, %c;", "b64", "b64", "b64", "b64"},
      {"mul.hi.u64 %d, %a, %b;", "b64", "b64", "b64", "b64"},
      {"setp.leu.f32 %d, %a, %b;", "pred", "b32", "b32", "b32"},
      {"selp.b32 %d, %a, %b, %c;", "b32", "b32", "b32", "pred"}};
  for (const Instruction& instruction : instructions) {
    std::vector<std::uint64_t> expected;
    {
      const IsaGuard guard("baseline");
      CHECK(std::string(sim::selected_isa()) == "baseline");
      expected = evaluate(instruction, a, b, c, 32);
    }
    for (const char* isa : {"avx2", "avx512"}) {
      const IsaGuard guard(isa);
      try {
        sim::selected_isa();
      } catch (const InvalidArgument&) {
        continue;  // this CPU lacks it
      }
      for (const unsigned block : {32u, 20u}) {
        INFO(instruction.text << " on " << isa << ", block of " << block);
        CHECK(evaluate(instruction, a, b, c, block) == expected);
      }
    }
  }
}

TEST_CASE("an instruction set that nobody knows is refused by name") {
  const IsaGuard guard("mmx");
  CHECK_THROWS_AS(sim::selected_isa(), InvalidArgument);
}
