// atom and red: each operation and type against a sequential reference, and under contention.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>

namespace kernwright::sim {
namespace {

/// Each lane applies `op` to location[tid % locations] with operand values[tid]; old values go to
/// `old`.
template <typename T>
struct Case {
  std::string op;
  std::function<T(T, T)> apply;
};

template <typename T>
void check(const std::string& type, const std::vector<Case<T>>& cases, const std::vector<T>& values,
           const std::vector<T>& locations, const std::string& space) {
  const std::string size = std::to_string(sizeof(T)), bits = "b" + std::to_string(sizeof(T) * 8);
  const std::string v = sizeof(T) == 8 ? "%d20" : "%r20", o = sizeof(T) == 8 ? "%d21" : "%r21";
  for (const auto& one : cases) {
    const bool shared = space == ".shared";
    const std::string body =
        ".shared .align 8 .b8 tile[64];\n"
        "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; ld.param.u64 %d2, [p2];\n"
        "mul.wide.u32 %d3, %r0, " +
        size + "; add.s64 %d4, %d1, %d3; ld.global." + bits + " " + v +
        ", [%d4]; add.s64 %d6, %d2, %d3;\n"
        "and.b32 %r1, %r0, 3; mul.wide.u32 %d5, %r1, " +
        size + "; add.s64 %d7, %d0, %d5;\n" +
        (shared ? "mov.u64 %d8, tile; add.s64 %d8, %d8, %d5; ld.global." + bits + " " + o +
                      ", [%d7]; st.shared." + bits + " [%d8], " + o + "; bar.sync 0;\n"
                : "mov.b64 %d8, %d7;\n") +
        "atom" + space + "." + one.op + "." + type + " " + o + ", [%d8], " + v +
        ";\n"
        "st.global." +
        bits + " [%d6], " + o + ";\n" +
        (shared ? "bar.sync 0; ld.shared." + bits + " " + o + ", [%d8]; st.global." + bits +
                      " [%d7], " + o + ";\n"
                : "");
    OpsRunner runner;
    const auto location = runner.upload(locations), old = runner.allocate(32 * sizeof(T));
    INFO("atom" << space << "." << one.op << "." << type);
    REQUIRE(runner.run(body, {location, runner.upload(values), old}).message == "");
    std::vector<T> expected = locations, seen(32);
    for (std::size_t i = 0; i < 32; ++i) {
      seen[i] = expected[i % 4];
      expected[i % 4] = one.apply(seen[i], values[i]);
    }
    CHECK(runner.download<T>(location, 4) == expected);
    CHECK(runner.download<T>(old, 32) == seen);
  }
}

template <typename T>
std::vector<T> edge_values() {
  std::vector<T> values;
  for (std::size_t i = 0; i < 32; ++i)
    values.push_back(static_cast<T>(i % 5 == 0 ? std::numeric_limits<T>::max() - static_cast<T>(i)
                                               : i * 0x9e3779b97f4a7c15ull >> (i % 7)));
  return values;
}

template <typename T>
void check_integers(const std::string& type, const std::string& space) {
  using U = std::make_unsigned_t<T>;
  std::vector<Case<T>> cases{
      {"add", [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }},
      {"min", [](T a, T b) { return std::min(a, b); }},
      {"max", [](T a, T b) { return std::max(a, b); }}};
  if (std::is_same_v<T, std::uint32_t>) {
    cases.push_back({"inc", [](T a, T b) { return a >= b ? T{0} : static_cast<T>(a + 1); }});
    cases.push_back({"dec", [](T a, T b) { return a == 0 || a > b ? b : static_cast<T>(a - 1); }});
  }
  check<T>(type, cases, edge_values<T>(),
           {0, 1, std::numeric_limits<T>::max(), std::numeric_limits<T>::min()}, space);
}

template <typename T>
void check_bits(const std::string& type, const std::string& space) {
  check<T>(type,
           {{"and", [](T a, T b) { return a & b; }},
            {"or", [](T a, T b) { return a | b; }},
            {"xor", [](T a, T b) { return a ^ b; }},
            {"exch", [](T, T b) { return b; }}},
           edge_values<T>(), {0, 1, static_cast<T>(-1), 0x12345678}, space);
}

TEST_CASE("atom: integer operations in global, shared and generic space, lanes in order") {
  for (const std::string space : {".global", ".shared", ""}) {
    check_integers<std::uint32_t>("u32", space);
    check_integers<std::int32_t>("s32", space);
    check_integers<std::uint64_t>("u64", space);
    check_integers<std::int64_t>("s64", space);
    check_bits<std::uint32_t>("b32", space);
    check_bits<std::uint64_t>("b64", space);
  }
}

TEST_CASE(
    "atom.add of f32 and f64: rounded at each step; global f32 flushes subnormals, shared keeps") {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (int i = 0; i < 32; ++i) {
    floats.push_back(static_cast<float>(i) * 1.1f + 1e7f);
    doubles.push_back(i * 1.1 + 1e15);
  }
  for (const std::string space : {".global", ".shared"}) {
    check<float>("f32", {{"add", [](float a, float b) { return a + b; }}}, floats, {0, 1, 2, 3},
                 space);
    check<double>("f64", {{"add", [](double a, double b) { return a + b; }}}, doubles, {0, 1, 2, 3},
                  space);
  }
  const float tiny = 1e-41f;
  const std::vector<float> small(32, tiny);
  check<float>("f32", {{"add", [](float a, float b) { return a + b; }}}, small, {0, 0, 0, 0},
               ".shared");
  check<float>("f32", {{"add", [](float, float) { return 0.0f; }}}, small, {0, tiny, 0, 0},
               ".global");
}

TEST_CASE("atom.cas: 16, 32 and 64 bits swap only on equality") {
  for (const auto& [bits, reg] :
       {std::pair{"16", "%h"}, std::pair{"32", "%r"}, std::pair{"64", "%d"}}) {
    const std::string b = bits, r = reg;
    OpsRunner runner;
    const auto location = runner.upload<std::uint64_t>({5});
    const auto old = runner.upload(std::vector<std::uint64_t>(32, 0));
    // Lane i replaces i + 5 by i + 6: in lane order each lane finds its value.
    const auto report = runner.run(
        "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mul.wide.u32 %d2, %r0, 8;\n"
        "add.s64 %d1, %d1, %d2; add.u32 %r20, %r0, 5; add.u32 %r21, %r0, 6; cvt.u64.u32 %d20, "
        "%r20;\n"
        "cvt.u64.u32 %d21, %r21; cvt.u16.u32 %h20, %r20; cvt.u16.u32 %h21, %r21;\n"
        "atom.global.cas.b" +
            b + " " + r + "22, [%d0], " + r + "20, " + r +
            "21;\n"
            "st.global.b" +
            b + " [%d1], " + r + "22;\n",
        {location, old});
    REQUIRE(report.message == "");
    CHECK(runner.download<std::uint64_t>(location, 1)[0] == 37);
    const auto seen = runner.download<std::uint64_t>(old, 32);
    for (std::size_t i = 0; i < 32; ++i) CHECK(seen[i] == i + 5);
  }
}

TEST_CASE("atom.cas and atom.exch of 128 bits: both halves at once, lanes in order") {
  for (const std::string space : {".global", ".shared", ""}) {
    CAPTURE(space);
    OpsRunner runner;
    const auto location = runner.upload<std::uint64_t>({5, 105, 0, 0});
    const auto old = runner.upload(std::vector<std::uint64_t>(128, 0));
    const std::string first = space == ".shared" ? "%r5" : "%d0", base = first + "+16";
    // Lane i replaces (i + 5, i + 105) by (i + 6, i + 106), and puts (i, ~i) into the next
    // location; a last comparison differs in the high half alone.
    const auto report = runner.run(
        ".reg .b128 %q<8>;\nld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];\n"
        "mul.wide.u32 %d2, %r0, 32; add.s64 %d1, %d1, %d2; cvt.u64.u32 %d3, %r0;\n"
        "add.s64 %d4, %d3, 5; add.s64 %d5, %d3, 105; add.s64 %d6, %d3, 6; add.s64 %d7, %d3, 106;\n"
        "mov.b128 %q0, {%d4, %d5}; mov.b128 %q1, {%d6, %d7}; not.b64 %d8, %d3;\n"
        "mov.b128 %q2, {%d3, %d8}; mov.b128 %q6, {%d6, %d8};\n"
        "mov.u32 %r5, tile; ld.global.b128 %q5, [%d0]; st.shared.b128 [%r5], %q5; bar.sync 0;\n"
        "atom" +
            space + ".cas.b128 %q3, [" + first + "], %q0, %q1;\natom" + space +
            ".exch.b128 %q4, [" + base + "], %q2;\natom" + space + ".acq_rel.gpu.cas.b128 _, [" +
            first +
            "], %q6, %q2;\n"
            "mov.b128 {%d10, %d11}, %q3; st.global.v2.b64 [%d1], {%d10, %d11};\n"
            "mov.b128 {%d10, %d11}, %q4; st.global.v2.b64 [%d1+16], {%d10, %d11};\n" +
            (space == ".shared"
                 ? "bar.sync 0; ld.shared.b128 %q5, [%r5]; st.global.b128 [%d0], %q5;\n"
                   "ld.shared.b128 %q5, [%r5+16]; st.global.b128 [%d0+16], %q5;\n"
                 : ""),
        {location, old}, ".shared .align 16 .b8 tile[32];");
    REQUIRE(report.message == "");
    CHECK(runner.download<std::uint64_t>(location, 4) ==
          std::vector<std::uint64_t>{37, 137, 31, ~std::uint64_t{31}});
    const auto seen = runner.download<std::uint64_t>(old, 128);
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(seen[4 * i] == i + 5);
      CHECK(seen[4 * i + 1] == i + 105);
      if (i == 0) continue;
      CHECK(seen[4 * i + 2] == i - 1);
      CHECK(seen[4 * i + 3] == ~(i - 1));
    }
  }
}

TEST_CASE("atom.cas of 128 bits: blocks on several host threads lose nothing") {
  OpsRunner runner;
  runner.threads = 3;
  runner.grid = {60, 1, 1};
  const auto location = runner.upload<std::uint64_t>({0, 7, 0, 0});
  const auto report = runner.run(
      ".reg .b128 %q<4>;\nld.param.u64 %d0, [p0]; mov.b64 %d1, 0; mov.b64 %d2, 0;\n"
      "AGAIN: add.s64 %d3, %d1, 1; add.s64 %d4, %d2, 3;\n"
      "mov.b128 %q0, {%d1, %d2}; mov.b128 %q1, {%d3, %d4};\n"
      "atom.global.cas.b128 %q2, [%d0], %q0, %q1; mov.b128 {%d5, %d6}, %q2;\n"
      "setp.eq.u64 %p1, %d5, %d1; setp.eq.and.u64 %p1, %d6, %d2, %p1;\n"
      "mov.b64 %d1, %d5; mov.b64 %d2, %d6; @!%p1 bra AGAIN;\n",
      {location});
  REQUIRE(report.message == "");
  CHECK(runner.download<std::uint64_t>(location, 2) == std::vector<std::uint64_t>{1920, 5767});
  const std::string misaligned =
      ".reg .b128 %q<4>;\nld.param.u64 %d0, [p0]; mov.b128 %q0, {%d0, %d0};\n"
      "atom.exch.b128 %q1, [%d0+8], %q0;\n";
  CHECK(runner.run(misaligned, {location}).kind == FaultKind::alignment);
}

TEST_CASE("red and atom.noftz on halves: one rounding, subnormals kept, both halves of a pair") {
  OpsRunner runner;
  const auto locations =
      runner.upload<std::uint16_t>({0x3c00, 0x0001, 0x3c00, 0x7bff, 0x3f80, 0x0001, 0, 0});
  const auto report = runner.run(
      "setp.ne.u32 %p1, %r0, 0; @%p1 bra DONE; ld.param.u64 %d0, [p0];\n"
      "mov.b16 %h1, 0x1400; atom.global.add.noftz.f16 %h2, [%d0], %h1;\n"    // 1 + 2^-10
      "mov.b16 %h1, 0x0003; red.global.add.noftz.f16 [%d0+2], %h1;\n"        // subnormals
      "mov.b32 %r1, 0x7bff0c00; red.global.add.noftz.f16x2 [%d0+4], %r1;\n"  // 1 + 2^-12, overflow
      "mov.b16 %h1, 0x3b80; red.global.add.noftz.bf16 [%d0+8], %h1;\n"  // 1 + 2^-8: tie to even
      "mov.b16 %h1, 0x0002; red.global.add.noftz.bf16 [%d0+10], %h1;\nDONE:\n",
      {locations});
  REQUIRE(report.message == "");
  CHECK(runner.download<std::uint16_t>(locations, 6) ==
        std::vector<std::uint16_t>{0x3c01, 0x0004, 0x3c00, 0x7c00, 0x3f80, 0x0003});
}

TEST_CASE("red on vectors of floats adds element by element") {
  OpsRunner runner;
  const auto locations = runner.upload<float>({1, 2, 3, 4});
  const auto report = runner.run(
      "ld.param.u64 %d0, [p0]; mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000;\n"
      "red.global.add.v4.f32 [%d0], {%f1, %f2, %f1, %f2};\n"
      "atom.global.add.v2.f32 {%f3, %f4}, [%d0], {%f1, %f1};\n",
      {locations});
  REQUIRE(report.message == "");
  CHECK(runner.download<float>(locations, 4) == std::vector<float>{1 + 64, 2 + 96, 3 + 32, 4 + 64});
}

TEST_CASE("red: vectors of halves take the smaller or larger value, numbers before NaN") {
  OpsRunner runner;
  const auto locations =
      runner.upload<std::uint16_t>({0x3c00, 0x7fff, 0x8000, 0x4000, 0x3c00, 0x3c00, 0, 0});
  const auto report = runner.run(
      "setp.ne.u32 %p1, %r0, 0; @%p1 bra DONE; ld.param.u64 %d0, [p0];\n"
      "mov.b16 %h1, 0x4000; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0; mov.b16 %h4, 0x7fff;\n"
      "red.global.max.noftz.v4.f16 [%d0], {%h1, %h2, %h3, %h4};\n"
      "mov.b32 %r1, 0x40003800; mov.b32 %r2, 0; red.global.min.noftz.v2.f16x2 [%d0+8], {%r1, "
      "%r2};\n"
      "DONE:\n",
      {locations});
  REQUIRE(report.message == "");
  CHECK(runner.download<std::uint16_t>(locations, 8) ==
        std::vector<std::uint16_t>{0x4000, 0x3c00, 0x0000, 0x4000, 0x3800, 0x3c00, 0, 0});
}

TEST_CASE("atomics of blocks on several host threads lose nothing") {
  OpsRunner runner;
  runner.threads = 3;
  runner.grid = {300, 1, 1};
  runner.block = {96, 1, 1};
  const auto locations = runner.upload(std::vector<std::uint64_t>(4, 0));
  const auto report = runner.run(
      "ld.param.u64 %d0, [p0]; mov.u32 %r1, 1; red.global.add.u32 [%d0], %r1;\n"
      "mov.f32 %f1, 0f3f800000; red.global.add.f32 [%d0+8], %f1; mov.b64 %d1, 1;\n"
      "atom.global.add.u64 %d2, [%d0+16], %d1; mov.u32 %r2, 6; red.global.inc.u32 [%d0+24], %r2;\n",
      {locations});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint64_t>(locations, 4);
  CHECK(result[0] == 28800);
  CHECK(std::bit_cast<float>(static_cast<std::uint32_t>(result[1])) == 28800.0f);
  CHECK(result[2] == 28800);
  CHECK(result[3] == 28800 % 7);
}

TEST_CASE("only the lanes of a divergent warp take part") {
  OpsRunner runner;
  const auto location = runner.upload<std::uint32_t>({0});
  const auto report = runner.run(
      "ld.param.u64 %d0, [p0]; and.b32 %r1, %r0, 3; setp.ne.u32 %p1, %r1, 1; @%p1 bra DONE;\n"
      "atom.global.add.u32 %r2, [%d0], %r0;\nDONE:\n",
      {location});
  REQUIRE(report.message == "");
  CHECK(runner.download<std::uint32_t>(location, 1)[0] == 1 + 5 + 9 + 13 + 17 + 21 + 25 + 29);
}

TEST_CASE("an atomic outside its allocation, misaligned or on constant memory is a finding") {
  OpsRunner runner;
  const auto location = runner.allocate(8);
  const std::string body = "ld.param.u64 %d0, [p0]; red.global.add.u32 [%d0], %r0;\n";
  const auto outside = runner.run(body, {location + 8});
  CHECK(outside.kind == FaultKind::bounds);
  CHECK(outside.message.find("atomic access of 4 bytes") != std::string::npos);
  CHECK(runner.run(body, {location + 2}).kind == FaultKind::alignment);
  const auto constant = runner.run("mov.u64 %d1, c; atom.add.u32 %r1, [%d1], %r0;\n", {0},
                                   ".const .align 4 .u32 c = 1;");
  CHECK(constant.kind == FaultKind::bounds);
}

}  // namespace
}  // namespace kernwright::sim
