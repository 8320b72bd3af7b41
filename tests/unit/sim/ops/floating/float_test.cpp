// Floating-point instructions against wider references: rounding, flushing, NaN, order,
// approximations.
#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace kernwright::sim::testing;

namespace {

const std::vector<float> kFloats{
    0.0f,   -0.0f,     1.0f,     -1.0f,     1.5f,     3.14159274f,   -2.71828f,
    1e-3f,  0.1f,      65504.0f, 1e10f,     -3.3e20f, 3.4028235e38f, 1.1754944e-38f,
    1e-40f, -1.4e-45f, INFINITY, -INFINITY, NAN,      16777217.0f,   0.99999994f};
const std::vector<double> kDoubles{0.0,      -0.0,      1.0,      -1.5,  3.141592653589793,
                                   1e-300,   1e-310,    4.9e-324, 1e300, 1.7976931348623157e308,
                                   INFINITY, -INFINITY, NAN,      0.1,   9007199254740993.0};

template <typename T>
std::vector<std::uint64_t> bit_values(const std::vector<T>& values) {
  std::vector<std::uint64_t> result;
  for (const T x : values) result.push_back(bits(x));
  return result;
}
const std::vector<std::uint64_t> kFloatBits = bit_values(kFloats);
const std::vector<std::uint64_t> kDoubleBits = bit_values(kDoubles);

float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

/// The same for a product, whose size counts before its last bits are lost to being subnormal.
float flush_product(float x, long double exact) {
  const bool tiny = std::fabs(static_cast<float>(exact * 0x1p64L)) < 0x1p-62f;
  return tiny ? std::copysign(0.0f, x) : x;
}

using Reference = std::function<std::uint64_t(std::uint64_t, std::uint64_t, std::uint64_t)>;

void check(const Instruction& inst, const Table& table, const Reference& expect) {
  for (const unsigned block : {32u, 27u}) {
    const auto got = evaluate(inst, table.a, table.b, table.c, block);
    int wrong = 0;
    for (std::size_t i = 0; i < got.size() && wrong < 3; ++i) {
      const std::uint64_t want = expect(table.a[i], table.b[i], table.c[i]);
      if (got[i] == want) continue;
      ++wrong;
      INFO(inst.text << " block " << block << std::hex << " a=" << table.a[i] << " b=" << table.b[i]
                     << " c=" << table.c[i]);
      CHECK(got[i] == want);
    }
    CHECK(wrong == 0);
  }
}

std::uint64_t form(float x) { return std::isnan(x) ? 0x7fffffffu : bits(x); }
Instruction f32(const std::string& text) { return {text, "b32", "b32", "b32", "b32"}; }
Instruction f64(const std::string& text) { return {text, "b64", "b64", "b64", "b64"}; }

/// f32: operation in long double is exact enough for sums, products and quotients of the table.
void check_f32(const std::string& stem, const std::string& operands,
               const std::function<float(float, float, float)>& f) {
  const Table table = all_triples(kFloatBits, kFloatBits, kFloatBits);
  check(f32(stem + ".f32 " + operands + ";"), table,
        [&](auto a, auto b, auto c) { return form(f(as_float(a), as_float(b), as_float(c))); });
}

/// Rounds the exact value x to a float towards the given side (-1 down, +1 up, 0 towards zero).
float directed(long double x, int side) {
  if (std::isnan(x) || std::isinf(x)) return static_cast<float>(x);
  float r = static_cast<float>(x);
  const int wanted = side != 0 ? side : (x < 0 ? 1 : -1);
  if (static_cast<long double>(r) < x && wanted > 0) r = std::nextafter(r, INFINITY);
  if (static_cast<long double>(r) > x && wanted < 0) r = std::nextafter(r, -INFINITY);
  return r;
}

}  // namespace

TEST_CASE("float: operations to nearest are exact and NaN has one form") {
  check_f32("add", "%d, %a, %b", [](float a, float b, float) { return a + b; });
  check_f32("sub.rn", "%d, %a, %b", [](float a, float b, float) { return a - b; });
  check_f32("mul", "%d, %a, %b", [](float a, float b, float) {
    return static_cast<float>(static_cast<double>(a) * b);  // exact in double
  });
  check_f32("fma.rn", "%d, %a, %b, %c",
            [](float a, float b, float c) { return std::fma(a, b, c); });
  check_f32("div.rn", "%d, %a, %b", [](float a, float b, float) {
    return static_cast<float>(static_cast<double>(a) / b);  // innocuous double rounding
  });
  check_f32("rcp.rn", "%d, %a", [](float a, float, float) { return 1.0f / a; });
  check_f32("sqrt.rn", "%d, %a", [](float a, float, float) {
    return static_cast<float>(std::sqrt(static_cast<double>(a)));
  });
}

TEST_CASE("float: ftz flushes operands and results, sat clamps") {
  check_f32("add.ftz", "%d, %a, %b",
            [](float a, float b, float) { return flush(flush(a) + flush(b)); });
  check_f32("mul.ftz", "%d, %a, %b", [](float a, float b, float) {
    const float x = flush(a), y = flush(b);
    return flush_product(x * y, static_cast<long double>(x) * y);
  });
  check_f32("fma.rn.ftz", "%d, %a, %b, %c", [](float a, float b, float c) {
    const float x = flush(a), y = flush(b), z = flush(c);
    return flush_product(std::fma(x, y, z), static_cast<long double>(x) * y + z);
  });
  check_f32("add.sat", "%d, %a, %b", [](float a, float b, float) {
    const float sum = a + b;
    return sum > 0 ? (sum < 1 ? sum : 1.0f) : 0.0f;  // NaN and -0 give +0
  });
  check_f32("fma.rn.sat", "%d, %a, %b, %c", [](float a, float b, float c) {
    const float sum = std::fma(a, b, c);
    return sum > 0 ? (sum < 1 ? sum : 1.0f) : 0.0f;
  });
}

TEST_CASE("float: directed rounding goes to the right side") {
  // Moderate values: their sums, products and quotients' sides are decided exactly in long double.
  const std::vector<std::uint64_t> values =
      bit_values(std::vector<float>{0.0f, 1.0f, -1.0f, 0.1f, -0.3f, 3.1415927f, 1e3f, -7.7f,
                                    1.0000001f, 16777215.0f, 1e-5f, INFINITY, NAN, 3.4028235e38f});
  const Table table = all_triples(values, values, values);
  const std::vector<std::pair<std::string, int>> sides{{"rz", 0}, {"rm", -1}, {"rp", 1}};
  for (const auto& [mode, side] : sides) {
    const int s = side;
    const auto wide = [](std::uint64_t x) { return static_cast<long double>(as_float(x)); };
    const auto zero = [s](long double exact, float r) {  // an exact zero from cancellation
      return exact == 0 && r == 0 ? (s < 0 ? -0.0f : 0.0f) : r;
    };
    check(f32("mul." + mode + ".f32 %d, %a, %b;"), table,
          [&](auto a, auto b, auto) { return form(directed(wide(a) * wide(b), s)); });
    check(f32("add." + mode + ".f32 %d, %a, %b;"), table, [&](auto a, auto b, auto) {
      const bool cancels = wide(a) + wide(b) == 0 && wide(a) != 0;
      const bool big = std::fabs(wide(a)) > 1e30L || std::fabs(wide(b)) > 1e30L;
      if (big && !std::isinf(wide(a)) && !std::isinf(wide(b)) && !std::isnan(wide(a) + wide(b))) {
        // The sum does not fit 64 bits: decide by hand.
        const long double major = std::fabs(wide(a)) > std::fabs(wide(b)) ? wide(a) : wide(b);
        const long double minor = std::fabs(wide(a)) > std::fabs(wide(b)) ? wide(b) : wide(a);
        if (major == minor) return form(directed(2 * major, s));
        const float at = static_cast<float>(major);
        if (minor == 0) return form(at);
        const bool up = minor > 0;
        if (up && s > 0) return form(std::nextafter(at, INFINITY));
        if (!up && s <= 0) return form(std::nextafter(at, 0.0f));
        return form(at);
      }
      const float r = directed(wide(a) + wide(b), s);
      return form(cancels ? zero(0, r) : r);
    });
    check(f32("div." + mode + ".f32 %d, %a, %b;"), table, [&](auto a, auto b, auto) {
      const long double q = wide(a) / wide(b);
      if (std::isnan(q) || std::isinf(q) || q == 0) return form(static_cast<float>(q));
      // The side of the quotient's rounding: compare r * b with a, exactly.
      float r = static_cast<float>(q);
      const long double back = static_cast<long double>(r) * wide(b);
      const bool below = wide(b) > 0 ? back < wide(a) : back > wide(a);
      const bool above = wide(b) > 0 ? back > wide(a) : back < wide(a);
      const int wanted = s != 0 ? s : (q < 0 ? 1 : -1);
      if (below && wanted > 0) r = std::nextafter(r, INFINITY);
      if (above && wanted < 0) r = std::nextafter(r, -INFINITY);
      return form(r);
    });
    check(f32("sqrt." + mode + ".f32 %d, %a;"), table,
          [&](auto a, auto, auto) { return form(directed(std::sqrt(wide(a)), s)); });
    check(f32("rcp." + mode + ".f32 %d, %a;"), table,
          [&](auto a, auto, auto) { return form(directed(1.0L / wide(a), s)); });
  }
}

TEST_CASE("double: operations match the host bit for bit") {
  const Table table = all_triples(kDoubleBits, kDoubleBits, kDoubleBits);
  const auto same = [](double want) { return bits(want); };
  const auto run = [&](const std::string& text,
                       const std::function<double(double, double, double)>& f) {
    for (const unsigned block : {32u, 9u}) {
      const auto got = evaluate(f64(text), table.a, table.b, table.c, block);
      int wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double want = f(as_double(table.a[i]), as_double(table.b[i]), as_double(table.c[i]));
        const bool both_nan = std::isnan(want) && std::isnan(as_double(got[i]));
        if (!both_nan && got[i] != same(want)) ++wrong;
      }
      INFO(text);
      CHECK(wrong == 0);
    }
  };
  run("add.f64 %d, %a, %b;", [](double a, double b, double) { return a + b; });
  run("sub.f64 %d, %a, %b;", [](double a, double b, double) { return a - b; });
  run("mul.f64 %d, %a, %b;", [](double a, double b, double) { return a * b; });
  run("fma.rn.f64 %d, %a, %b, %c;", [](double a, double b, double c) { return std::fma(a, b, c); });
  run("div.rn.f64 %d, %a, %b;", [](double a, double b, double) { return a / b; });
  run("sqrt.rn.f64 %d, %a;", [](double a, double, double) { return std::sqrt(a); });
  run("min.f64 %d, %a, %b;", [](double a, double b, double) {
    if (a == b) return std::signbit(a) ? a : b;
    return std::fmin(a, b);
  });
  run("copysign.f64 %d, %a, %b;", [](double a, double b, double) { return std::copysign(b, a); });
}

TEST_CASE("float: min and max order zeros and treat NaN as asked") {
  const auto ordered = [](bool max, float a, float b) {
    if (a == b) return std::signbit(a) == max ? b : a;
    return max ? std::fmax(a, b) : std::fmin(a, b);
  };
  for (const bool max : {false, true}) {
    const std::string stem = max ? "max" : "min";
    check_f32(stem, "%d, %a, %b", [&](float a, float b, float) { return ordered(max, a, b); });
    check_f32(stem + ".NaN", "%d, %a, %b", [&](float a, float b, float) {
      return std::isnan(a) || std::isnan(b) ? NAN : ordered(max, a, b);
    });
    check_f32(stem + ".ftz", "%d, %a, %b",
              [&](float a, float b, float) { return ordered(max, flush(a), flush(b)); });
    check_f32(stem + ".xorsign.abs", "%d, %a, %b", [&](float a, float b, float) {
      const float r = ordered(max, std::fabs(a), std::fabs(b));
      return std::signbit(a) != std::signbit(b) ? -std::fabs(r) : r;
    });
  }
}

TEST_CASE("float: abs, neg, copysign and testp work on bits") {
  const Table table = all_triples(kFloatBits, kFloatBits, {0});
  const auto or_nan = [](auto a, std::uint64_t number) {
    return std::isnan(as_float(a)) ? 0x7fffffff : number;
  };
  check(f32("abs.f32 %d, %a;"), table,
        [&](auto a, auto, auto) { return or_nan(a, a & 0x7fffffff); });
  check(f32("neg.f32 %d, %a;"), table,
        [&](auto a, auto, auto) { return or_nan(a, a ^ 0x80000000); });
  check(f32("neg.ftz.f32 %d, %a;"), table,
        [&](auto a, auto, auto) { return or_nan(a, bits(flush(as_float(a))) ^ 0x80000000); });
  check(f32("copysign.f32 %d, %a, %b;"), table,
        [](auto a, auto b, auto) { return (b & 0x7fffffff) | (a & 0x80000000); });
  const auto property = [&](const std::string& name, bool (*f)(float)) {
    check({"testp." + name + ".f32 %d, %a;", "pred", "b32", "b32", "b32"}, table,
          [&](auto a, auto, auto) { return std::uint64_t{f(as_float(a))}; });
  };
  property("finite", [](float x) { return std::isfinite(x); });
  property("infinite", [](float x) { return std::isinf(x); });
  property("number", [](float x) { return !std::isnan(x); });
  property("notanumber", [](float x) { return std::isnan(x); });
  property("normal", [](float x) { return std::isnormal(x) || x == 0; });
  property("subnormal", [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; });
}

TEST_CASE("comparisons: ordered and unordered, for every type") {
  const Table floats = all_triples(kFloatBits, kFloatBits, {0, 1});
  const auto pred = [](const std::string& text) {
    return Instruction{text, "pred", "b32", "b32", "pred"};
  };
  struct Case {
    std::string name;
    bool (*f)(float, float);
  };
  const std::vector<Case> cases{
      {"eq", [](float a, float b) { return a == b; }},
      {"ne", [](float a, float b) { return !std::isunordered(a, b) && a != b; }},
      {"lt", [](float a, float b) { return std::isless(a, b); }},
      {"ge", [](float a, float b) { return std::isgreaterequal(a, b); }},
      {"equ", [](float a, float b) { return std::isunordered(a, b) || a == b; }},
      {"neu", [](float a, float b) { return a != b; }},
      {"ltu", [](float a, float b) { return std::isunordered(a, b) || a < b; }},
      {"gtu", [](float a, float b) { return std::isunordered(a, b) || a > b; }},
      {"num", [](float a, float b) { return !std::isunordered(a, b); }},
      {"nan", [](float a, float b) { return std::isunordered(a, b); }}};
  for (const Case& test : cases) {
    check(pred("setp." + test.name + ".f32 %d, %a, %b;"), floats,
          [&](auto a, auto b, auto) { return std::uint64_t{test.f(as_float(a), as_float(b))}; });
    check(pred("setp." + test.name + ".and.ftz.f32 %d, %a, %b, !%c;"), floats,
          [&](auto a, auto b, auto c) {
            return std::uint64_t{test.f(flush(as_float(a)), flush(as_float(b))) && c == 0};
          });
  }
  const std::vector<std::uint64_t> values{0,
                                          1,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff};
  const Table integers = all_triples(values, values, {0, 1});
  check({"setp.lt.s16 %d, %a, %b;", "pred", "b16", "b16", "b32"}, integers,
        [](auto a, auto b, auto) {
          return std::uint64_t{static_cast<std::int16_t>(a) < static_cast<std::int16_t>(b)};
        });
  check({"setp.hs.u32 %d, %a, %b;", "pred", "b32", "b32", "b32"}, integers,
        [](auto a, auto b, auto) {
          return std::uint64_t{static_cast<std::uint32_t>(a) >= static_cast<std::uint32_t>(b)};
        });
  check({"setp.gt.s64 %d, %a, %b;", "pred", "b64", "b64", "b32"}, integers,
        [](auto a, auto b, auto) {
          return std::uint64_t{static_cast<std::int64_t>(a) > static_cast<std::int64_t>(b)};
        });
  check({".reg .pred %q; setp.ne.xor.b32 %d|%q, %a, %b, %c; xor.pred %d, %d, %q;", "pred", "b32",
         "b32", "pred"},
        integers, [](auto, auto, auto) { return std::uint64_t{1}; });
  check({"set.le.u32.s32 %d, %a, %b;"}, integers, [](auto a, auto b, auto) {
    return static_cast<std::int32_t>(a) <= static_cast<std::int32_t>(b) ? std::uint64_t{0xffffffff}
                                                                        : 0;
  });
  check({"set.lt.and.f32.f32 %d, %a, %b, %c;", "b32", "b32", "b32", "pred"}, floats,
        [](auto a, auto b, auto c) {
          return std::isless(as_float(a), as_float(b)) && c != 0 ? bits(1.0f) : std::uint64_t{0};
        });
  check({"selp.b64 %d, %a, %b, %c;", "b64", "b64", "b64", "pred"}, integers,
        [](auto a, auto b, auto c) { return c != 0 ? a : b; });
  check({"slct.b32.f32 %d, %a, %b, %c;"}, all_triples({1, 2}, {3, 4}, kFloatBits),
        [](auto a, auto b, auto c) { return as_float(c) >= 0 ? a : b; });
}

TEST_CASE("approximations stay within the bounds of the PTX manual") {
  std::vector<std::uint64_t> inputs;
  for (int i = -4000; i < 4000; ++i) inputs.push_back(bits(static_cast<float>(i) * 0.0173f));
  for (int e = -140; e < 128; ++e) inputs.push_back(bits(std::ldexp(1.2345f, e)));
  const Table table = all_triples(inputs, {0}, {0});
  const auto worst = [&](const std::string& text, double (*f)(double), bool relative,
                         bool (*skip)(float)) {
    double most = 0;
    for (const unsigned block : {32u, 15u}) {
      const auto got = evaluate(f32(text), table.a, table.b, table.c, block);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const float x = as_float(table.a[i]);
        if (skip(x)) continue;
        const double want = f(x), have = as_float(got[i]);
        if (std::fabs(want) > 3.4e38 || std::fabs(want) < 1.2e-38) continue;
        const double error = std::fabs(have - want) / (relative ? std::fabs(want) : 1.0);
        most = std::isnan(error) ? 1e9 : std::max(most, error);
      }
    }
    return most;
  };
  const auto none = [](float) { return false; };
  const auto not_positive = [](float x) { return !(x > 0); };
  const auto beyond_pi = [](float x) { return std::fabs(x) > 3.1415927f; };
  const double half_ulp = 0x1p-24 * 1.0001;
  CHECK(worst(
            "ex2.approx.f32 %d, %a;", [](double x) { return std::exp2(x); }, true, none) <
        half_ulp);
  CHECK(worst(
            "lg2.approx.f32 %d, %a;", [](double x) { return std::log2(x); }, true, not_positive) <
        half_ulp);
  CHECK(worst(
            "sin.approx.f32 %d, %a;", [](double x) { return std::sin(x); }, false, beyond_pi) <
        std::exp2(-20.5));  // this and the next as the manual has them
  CHECK(worst(
            "cos.approx.f32 %d, %a;", [](double x) { return std::cos(x); }, false, beyond_pi) <
        std::exp2(-20.9));
  static constexpr auto in_cycles =
      [](double x) {  // but for the last rounding all of the error is here
        const double cycles = static_cast<float>(x) * 0.15915494f;
        return 2 * M_PI * (cycles - std::round(cycles));
      };
  const auto sine = [](double x) { return std::sin(in_cycles(x)); };
  const auto cosine = [](double x) { return std::cos(in_cycles(x)); };
  CHECK(worst("sin.approx.f32 %d, %a;", sine, false, none) < half_ulp);
  CHECK(worst("cos.approx.f32 %d, %a;", cosine, false, none) < half_ulp);
  CHECK(worst(
            "tanh.approx.f32 %d, %a;", [](double x) { return std::tanh(x); }, true, none) < 1e-7);
  CHECK(worst(
            "rsqrt.approx.f32 %d, %a;", [](double x) { return 1 / std::sqrt(x); }, true,
            not_positive) < half_ulp);
  CHECK(worst(
            "rcp.approx.f32 %d, %a;", [](double x) { return 1 / x; }, true,
            [](float x) { return x == 0; }) < half_ulp);
}

TEST_CASE("approximations: special values") {
  const auto one = [](const std::string& text, float x) {
    return as_float(evaluate(f32(text), {bits(x)}, {0}, {0}, 32)[0]);
  };
  CHECK(one("ex2.approx.ftz.f32 %d, %a;", -INFINITY) == 0.0f);
  CHECK(one("ex2.approx.f32 %d, %a;", INFINITY) == INFINITY);
  CHECK(one("ex2.approx.f32 %d, %a;", -148.0f) == std::ldexp(1.0f, -148));
  CHECK(one("ex2.approx.ftz.f32 %d, %a;", -148.0f) == 0.0f);
  CHECK(one("lg2.approx.f32 %d, %a;", 0.0f) == -INFINITY);
  CHECK(std::isnan(one("lg2.approx.f32 %d, %a;", -1.0f)));
  CHECK(one("lg2.approx.f32 %d, %a;", INFINITY) == INFINITY);
  CHECK(std::isnan(one("sin.approx.f32 %d, %a;", INFINITY)));
  CHECK(one("cos.approx.f32 %d, %a;", 1e20f) == 1.0f);  // a whole number of cycles
  CHECK(bits(one("sin.approx.f32 %d, %a;", -1e20f)) == 0x80000000u);
  CHECK(one("tanh.approx.f32 %d, %a;", 50.0f) == 1.0f);
  CHECK(one("rsqrt.approx.f32 %d, %a;", 0.0f) == INFINITY);
  CHECK(one("rsqrt.approx.ftz.f32 %d, %a;", 1e-40f) == INFINITY);
  const auto seed = evaluate(f64("rcp.approx.ftz.f64 %d, %a;"), {bits(3.0)}, {0}, {0}, 32)[0];
  CHECK((seed & 0xffffffff) == 0);
  CHECK(as_double(seed) == doctest::Approx(1.0 / 3).epsilon(1e-6));
}
