// Every comparison of numbers, in each instruction set that this CPU has: its predicate, and the
// branch behind it, which runs with it in full warps.
#include "unit/sim/exec/exec_support.h"
#include "unit/sim/ops/op_harness.h"

#include "sim/code/fast_handlers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// What PTX's comparison `name` says of two numbers.
template <typename T>
bool comparison_holds(const std::string& name, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (name == "num") return !unordered;
    if (name == "nan") return unordered;
    if (unordered) return name.size() == 3;  // equ, neu, ltu, ...
  }
  const std::string plain = name.substr(0, 2);
  if (plain == "eq") return a == b;
  if (plain == "ne") return a != b;
  if (plain == "lt" || plain == "lo") return a < b;
  if (plain == "le" || plain == "ls") return a <= b;
  if (plain == "gt" || plain == "hi") return a > b;
  return a >= b;  // ge, hs
}

/// Neighbours and extremes, so that rows of 32 pairs hold for all, none and some lanes.
template <typename T>
std::vector<T> compared_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> list{T{0}, T{1}, T{2}, T{7}, Limits::lowest(), Limits::max()};
  if constexpr (std::is_floating_point_v<T>) {
    list.insert(list.end(), {-T{0}, -T{1}, Limits::infinity(), -Limits::infinity(),
                             Limits::quiet_NaN(), Limits::denorm_min(), -Limits::min()});
  } else {
    list.insert(list.end(), {static_cast<T>(-1), static_cast<T>(Limits::max() / 2 + 1)});
  }
  return list;
}

template <typename T>
Table compared_pairs() {
  const auto raw = [](T x) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
  };
  Table table;
  const auto add = [&](T a, T b) {
    table.a.push_back(raw(a));
    table.b.push_back(raw(b));
  };
  const std::vector<T> list = compared_values<T>();
  for (const T a : list) {
    for (const T b : list) add(a, b);
  }
  while (table.a.size() % 32 != 0) add(list[1], list[2]);
  for (const T a : {list[1], list[2], list[3]}) {  // whole warps alike
    for (int lane = 0; lane < 32; ++lane) add(a, list[2]);
  }
  table.c.resize(table.a.size());
  return table;
}

template <typename T>
T number_of(std::uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <typename T>
void check_comparisons(const std::string& type, const std::vector<std::string>& names) {
  const Table table = compared_pairs<T>();
  const std::string reg = "b" + std::to_string(8 * sizeof(T));
  for (const std::string& name : names) {
    for (const bool negated : {false, true}) {
      const std::string text = "setp." + name + "." + type + " %q, %a, %b;";
      CAPTURE(text);
      CAPTURE(negated);
      // 1 or 2 by the branch, 4 more by the predicate.
      const Instruction branch{".reg .pred %q; .reg .b32 %m;\n" + text + "\n@" +
                                   (negated ? "!" : "") +
                                   "%q bra ON;\nmov.b32 %d, 1;\nbra DONE;\nON:\nmov.b32 %d, "
                                   "2;\nDONE:\nselp.b32 %m, 4, 0, %q;\nadd.u32 %d, %d, %m;",
                               "b32", reg, reg, "b32"};
      for (const unsigned block : {32u, 24u}) {
        const auto got = evaluate(branch, table.a, table.b, table.c, block);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const bool is_true =
              comparison_holds(name, number_of<T>(table.a[i]), number_of<T>(table.b[i]));
          INFO("row " << i << " of blocks of " << block);
          REQUIRE(got[i] == (is_true != negated ? 2u : 1u) + (is_true ? 4u : 0u));
        }
      }
    }
  }
}

const std::vector<std::string> kSignedComparisons{"eq", "ne", "lt", "le", "gt", "ge"};

}  // namespace

TEST_CASE("comparisons and the branches behind them, for every type and instruction set") {
  std::vector<std::string> unsigned_names = kSignedComparisons, float_names = kSignedComparisons;
  unsigned_names.insert(unsigned_names.end(), {"lo", "ls", "hi", "hs"});
  float_names.insert(float_names.end(), {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  for (const IsaBuild& build : isa_builds()) {
    CAPTURE(build.name);
    const test::EnvironmentGuard isa("KERNWRIGHT_SIM_ISA", build.name.c_str());
    check_comparisons<std::uint16_t>("u16", unsigned_names);
    check_comparisons<std::int16_t>("s16", kSignedComparisons);
    check_comparisons<std::uint32_t>("u32", unsigned_names);
    check_comparisons<std::int32_t>("s32", kSignedComparisons);
    check_comparisons<std::uint64_t>("u64", unsigned_names);
    check_comparisons<std::int64_t>("s64", kSignedComparisons);
    check_comparisons<std::uint32_t>("b32", {"eq", "ne"});
    check_comparisons<float>("f32", float_names);
    check_comparisons<double>("f64", float_names);
  }
}

TEST_CASE("comparisons run with the branch on their own result, and with no other") {
  const auto handler = [](const std::string& between, const std::string& branch) {
    const auto program = compile(
        std::string(kHeader) +
        ".visible .entry k() {\n.reg .pred %p, %q;\n.reg .b32 %a, %b;\nld.shared.u32 %a, [0];\n"
        "ld.shared.u32 %b, [4];\nsetp.eq.u32 %q, %b, 3;\nsetp.lt.u32 %p, %a, 8;\n" +
        between + branch + " bra ON;\nst.shared.u32 [8], %a;\nON:\nselp.b32 %a, %a, %b, %q;\n" +
        "selp.b32 %a, %a, %b, %p;\nst.shared.u32 [12], %a;\nret;\n}\n");
    for (std::size_t i = 0; i < program->full.size(); ++i) {
      if (program->places[i].opcode == "setp.lt.u32") return program->full[i].fn;
    }
    return OpFn{};
  };
  const OpFn alone = handler("", "@%q"), joined = branching_handler(alone);
  REQUIRE((alone != nullptr));
  const bool is_small = std::string_view(selected_isa()) == "baseline";
  CHECK((joined == nullptr) == is_small);
  const OpFn expected = is_small ? alone : joined;
  CHECK((handler("", "@%p") == expected));
  CHECK((handler("", "@!%p") == expected));
  CHECK((handler("add.u32 %b, %b, 1;\n", "@%p") == alone));
}
