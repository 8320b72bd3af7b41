// f16 and bf16 arithmetic, minima and comparisons against exact references, full and masked.
#include "unit/sim/numeric/numeric_reference.h"
#include "unit/sim/ops/op_harness.h"

#include <cmath>
#include <random>

using namespace kernwright::sim;
using namespace kernwright::sim::testing;
using ptx::Rounding;

namespace {

struct HalfCase {
  const char* name;
  const char* packed;
  SmallFormat format;
};
const HalfCase kCases[] = {{"f16", "f16x2", kF16}, {"bf16", "bf16x2", kBF16}};

bool is_nan(const SmallFormat& format, std::uint32_t bits) {
  return (bits & 0x7fff) > format.largest + 1;
}
bool is_infinite(const SmallFormat& format, std::uint32_t bits) {
  return (bits & 0x7fff) == format.largest + 1;
}

/// Bits with plenty of specials, equal exponents and neighbours.
std::uint32_t random_half(const SmallFormat& format, std::mt19937_64& random) {
  const std::uint32_t specials[] = {0,
                                    0x8000,
                                    1,
                                    0x8001,
                                    format.largest,
                                    format.largest + 1,
                                    0x8000 | (format.largest + 1),
                                    0x7fff,
                                    0xfffe,
                                    0x7ff7,
                                    0xfff7,
                                    1u << format.mantissa_bits,
                                    (1u << format.mantissa_bits) - 1};
  if (random() % 8 == 0) return specials[random() % std::size(specials)];
  const std::uint32_t one = static_cast<std::uint32_t>(format.bias()) << format.mantissa_bits;
  if (random() % 2 == 0) {
    return static_cast<std::uint32_t>((one + random() % 4096 - 2048) & 0x7fff) |
           (random() & 0x8000);
  }
  return static_cast<std::uint32_t>(random() & 0xffff);
}

/// Exact a * b + c (b = 1 for a sum, c = 0 for a product), rounded once. `signed_zero`: sign of an
/// exact zero.
std::uint32_t fused_reference(const SmallRounder& rounder, std::uint32_t a, std::uint32_t b,
                              std::uint32_t c, bool has_addend) {
  const SmallFormat& f = rounder.format;
  if (is_nan(f, a) || is_nan(f, b) || (has_addend && is_nan(f, c))) return 0x7fff;
  const bool sign = ((a ^ b) & 0x8000) != 0, c_sign = (c & 0x8000) != 0;
  const bool product_infinite = is_infinite(f, a) || is_infinite(f, b);
  if (product_infinite) {
    const bool zero = (a & 0x7fff) == 0 || (b & 0x7fff) == 0;
    const bool against = has_addend && is_infinite(f, c) && c_sign != sign;
    if (zero || against) return 0x7fff;
    return (f.largest + 1) | (sign ? 0x8000u : 0u);
  }
  if (has_addend && is_infinite(f, c)) return c;
  const Wide product = Wide(small_value(f, a)) * Wide(small_value(f, b));
  const Wide addend = has_addend ? Wide(small_value(f, c)) : Wide(0);
  Wide exact = product + addend;
  // An addend that even this sum drops is far below a half's precision: only its direction matters.
  const Wide nudge = (exact < 0 ? -exact : exact) * Wide(0x1p-100);
  if (addend != 0 && exact == product) exact += addend > 0 ? nudge : -nudge;
  const bool negative_zero = sign && (!has_addend || c_sign || product != 0);
  return rounder.round(exact, Rounding::rn, false,
                       exact == 0 && product != 0 ? false : negative_zero);
}

std::uint32_t clamp_unit(const SmallFormat& format, std::uint32_t bits) {
  const std::uint32_t one = static_cast<std::uint32_t>(format.bias()) << format.mantissa_bits;
  if (is_nan(format, bits) || (bits & 0x8000) != 0) return 0;
  return std::min(bits, one);
}
std::uint32_t relu(const SmallFormat& format, std::uint32_t bits) {
  if (is_nan(format, bits)) return 0x7fff;
  return (bits & 0x8000) != 0 ? 0 : bits;
}

/// Runs scalar and packed forms in every build and compares all halves.
template <typename Expected>
void check_halves(const std::string& opcode, const HalfCase& half, int inputs, std::uint32_t seed,
                  Expected expected) {
  std::mt19937_64 random(seed);
  for (const bool packed : {false, true}) {
    const std::string type = packed ? half.packed : half.name;
    const std::string r = packed ? "%r" : "%h";
    std::string text = opcode + "." + type + " " + r + "1";
    for (int i = 0; i < inputs; ++i) text += ", " + r + std::to_string(i + 2);
    CAPTURE(text);
    for (const IsaBuild& build : isa_builds()) {
      CAPTURE(build.name);
      OneInstruction instruction(build, text + ";");
      REQUIRE(instruction.known());
      for (int repeat = 0; repeat < 60; ++repeat) {
        std::vector<Lanes> sources(static_cast<std::size_t>(inputs));
        for (Lanes& lanes : sources) {
          for (std::uint64_t& lane : lanes) {
            lane = random_half(half.format, random);
            if (packed) lane |= std::uint64_t{random_half(half.format, random)} << 16;
          }
        }
        const std::uint32_t mask =
            repeat % 2 == 0 ? kAllLanes : static_cast<std::uint32_t>(random() | 1);
        const Lanes result = instruction.run(sources, mask, 0x5a5a5a5a);
        for (std::size_t i = 0; i < result.size(); ++i) {
          for (int part = 0; part < (packed ? 2 : 1); ++part) {
            std::uint32_t in[3] = {};
            for (std::size_t k = 0; k < sources.size(); ++k)
              in[k] = sources[k][i] >> 16 * part & 0xffff;
            const std::uint32_t want =
                (mask >> i & 1) != 0 ? expected(in[0], in[1], in[2]) : 0x5a5a;
            const std::uint32_t got = result[i] >> 16 * part & 0xffff;
            if (got != want) {
              CAPTURE(in[0]);
              CAPTURE(in[1]);
              CAPTURE(in[2]);
              CHECK(got == want);
              return;
            }
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("half: add, sub, mul and fma round once") {
  for (const HalfCase& half : kCases) {
    const SmallRounder rounder(half.format);
    const SmallFormat& f = half.format;
    const std::uint32_t one = static_cast<std::uint32_t>(f.bias()) << f.mantissa_bits;
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
      return fused_reference(rounder, a, one, b, true);
    };
    check_halves("add.rn", half, 2, 1, add);
    check_halves("add", half, 2, 2, add);
    check_halves("sub", half, 2, 3, [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
      return fused_reference(rounder, a, one, is_nan(f, b) ? b : b ^ 0x8000, true);
    });
    check_halves("mul", half, 2, 4, [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
      return fused_reference(rounder, a, b, 0, false);
    });
    const auto fma = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      return fused_reference(rounder, a, b, c, true);
    };
    check_halves("fma.rn", half, 3, 5, fma);
    check_halves("fma.rn.relu", half, 3, 6, [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      return relu(f, fma(a, b, c));
    });
  }
}

TEST_CASE("half: fma.oob drops products with the fill of elements outside a tensor") {
  const auto is_fill = [](std::uint32_t x) { return (x & 0x7fff) == 0x7ff7; };
  for (const HalfCase& half : kCases) {
    const SmallRounder rounder(half.format);
    const auto fma = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      return is_fill(a) || is_fill(b) ? 0u : fused_reference(rounder, a, b, c, true);
    };
    check_halves("fma.rn.oob", half, 3, 10, fma);
    check_halves("fma.rn.oob.relu", half, 3, 11,
                 [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
                   return relu(half.format, fma(a, b, c));
                 });
  }
}

TEST_CASE("half: saturation and flushing") {
  const SmallRounder rounder(kF16);
  const auto flush = [](std::uint32_t x) { return (x & 0x7fff) < 0x400 ? x & 0x8000 : x; };
  check_halves("add.sat", kCases[0], 2, 7, [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
    return clamp_unit(kF16, fused_reference(rounder, a, 0x3c00, b, true));
  });
  check_halves(
      "mul.ftz.sat", kCases[0], 2, 8, [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
        return flush(clamp_unit(kF16, fused_reference(rounder, flush(a), flush(b), 0, false)));
      });
  check_halves("fma.rn.ftz", kCases[0], 3, 9,
               [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
                 return flush(fused_reference(rounder, flush(a), flush(b), flush(c), true));
               });
}

TEST_CASE("half: signs") {
  for (const HalfCase& half : kCases) {
    const auto sign = [&](std::uint32_t a, std::uint32_t result) {
      return is_nan(half.format, a) ? 0x7fffu : result;
    };
    check_halves("neg", half, 1, 10, [&](std::uint32_t a, std::uint32_t, std::uint32_t) {
      return sign(a, a ^ 0x8000);
    });
    check_halves("abs", half, 1, 11, [&](std::uint32_t a, std::uint32_t, std::uint32_t) {
      return sign(a, a & 0x7fff);
    });
  }
}

TEST_CASE("half: minima and maxima order zeros and treat NaN as told") {
  for (const HalfCase& half : kCases) {
    const SmallFormat& f = half.format;
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
      const double x =
          is_infinite(f, a) ? HUGE_VAL * ((a & 0x8000) != 0 ? -1 : 1) : small_value(f, a);
      const double y =
          is_infinite(f, b) ? HUGE_VAL * ((b & 0x8000) != 0 ? -1 : 1) : small_value(f, b);
      return x < y || (x == y && (a & 0x8000) > (b & 0x8000));
    };
    const auto choose = [&](bool max, bool nan, std::uint32_t a, std::uint32_t b) -> std::uint32_t {
      const bool a_nan = is_nan(f, a), b_nan = is_nan(f, b);
      if ((a_nan && b_nan) || (nan && (a_nan || b_nan))) return 0x7fff;
      if (a_nan || b_nan) return a_nan ? b : a;
      return less(a, b) != max ? a : b;
    };
    for (const bool max : {false, true}) {
      const std::string stem = max ? "max" : "min";
      check_halves(stem, half, 2, 12, [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
        return choose(max, false, a, b);
      });
      check_halves(
          stem + ".NaN", half, 2, 13,
          [&](std::uint32_t a, std::uint32_t b, std::uint32_t) { return choose(max, true, a, b); });
      check_halves(stem + ".NaN.xorsign.abs", half, 2, 14,
                   [&](std::uint32_t a, std::uint32_t b, std::uint32_t) {
                     const std::uint32_t chosen = choose(max, true, a & 0x7fff, b & 0x7fff);
                     return is_nan(f, chosen) ? chosen : chosen | ((a ^ b) & 0x8000);
                   });
    }
  }
}

TEST_CASE("half: functions are the rounded true values") {
  for (const HalfCase& half : kCases) {
    const SmallRounder rounder(half.format);
    const bool brain = half.name[0] == 'b';
    check_halves("tanh.approx", half, 1, 15, [&](std::uint32_t a, std::uint32_t, std::uint32_t) {
      if (is_nan(half.format, a)) return 0x7fffu;
      const std::uint32_t one = static_cast<std::uint32_t>(half.format.bias())
                                << half.format.mantissa_bits;
      if (is_infinite(half.format, a)) return one | (a & 0x8000);
      return rounder.round(Wide(std::tanh(small_value(half.format, a))), Rounding::rn, false,
                           (a & 0x8000) != 0);
    });
    check_halves(brain ? "ex2.approx.ftz" : "ex2.approx", half, 1, 16,
                 [&](std::uint32_t a, std::uint32_t, std::uint32_t) -> std::uint32_t {
                   if (is_nan(half.format, a)) return 0x7fff;
                   if (is_infinite(half.format, a)) return (a & 0x8000) != 0 ? 0 : a;
                   const double y = std::exp2(small_value(half.format, a));
                   const std::uint32_t bits = std::isinf(y)
                                                  ? half.format.largest + 1
                                                  : rounder.round(Wide(y), Rounding::rn, false);
                   return brain && bits < 0x80 ? 0 : bits;
                 });
  }
}

TEST_CASE("half: comparisons, scalar and packed") {
  std::mt19937_64 random(21);
  const char* names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                         "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (const HalfCase& half : kCases) {
    for (const std::string name : names) {
      const auto test = [&](std::uint32_t a, std::uint32_t b) {
        const SmallFormat& f = half.format;
        const bool unordered = is_nan(f, a) || is_nan(f, b);
        if (name == "num") return !unordered;
        if (name == "nan") return unordered;
        if (unordered) return name.size() == 3;
        const auto key = [](std::uint32_t x) {
          const int magnitude = static_cast<int>(x & 0x7fff);
          return (x & 0x8000) != 0 ? -magnitude : magnitude;
        };
        const int order = key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
        const std::string base = name.substr(0, 2);
        if (base == "eq") return order == 0;
        if (base == "ne") return order != 0;
        if (base == "lt") return order < 0;
        if (base == "le") return order <= 0;
        if (base == "gt") return order > 0;
        return order >= 0;
      };
      for (const IsaBuild& build : isa_builds()) {
        CAPTURE(build.name);
        CAPTURE(name);
        Lanes a{}, b{}, c{};
        for (std::size_t i = 0; i < a.size(); ++i) {
          a[i] = random_half(half.format, random) | random_half(half.format, random) << 16;
          b[i] = i % 4 == 0
                     ? a[i]
                     : random_half(half.format, random) | random_half(half.format, random) << 16;
        }
        c[0] = 0x0ff00ff0;
        std::uint32_t low = 0, high = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          low |= std::uint32_t{test(a[i] & 0xffff, b[i] & 0xffff)} << i;
          high |= std::uint32_t{test(a[i] >> 16 & 0xffff, b[i] >> 16 & 0xffff)} << i;
        }
        const std::string scalar = "setp." + name + "." + half.name + " %p1|%p2, %h1, %h2;";
        const Lanes one = OneInstruction(build, scalar).run({a, b});
        CHECK(one[0] == low);
        CHECK(one[1] == ~low);
        const std::string packed =
            "setp." + name + ".and." + half.packed + " %p1|%p2, %r1, %r2, %p3;";
        const Lanes two = OneInstruction(build, packed).run({a, b, c}, 0x00ffff00, 0);
        CHECK(two[0] == (low & 0x0ff00ff0 & 0x00ffff00));
        CHECK(two[1] == (high & 0x0ff00ff0 & 0x00ffff00));
        const std::string set =
            "set." + name + "." + half.packed + "." + half.packed + " %r1, %r2, %r3;";
        const Lanes three = OneInstruction(build, set).run({a, b});
        const std::string mask = "set." + name + ".u32." + half.name + " %r1, %h2, %h3;";
        const Lanes four = OneInstruction(build, mask).run({a, b});
        const std::uint32_t one_bits = half.name[0] == 'b' ? 0x3f80 : 0x3c00;
        for (std::size_t i = 0; i < a.size(); ++i) {
          const std::uint32_t want =
              ((low >> i & 1) != 0 ? one_bits : 0) | ((high >> i & 1) != 0 ? one_bits << 16 : 0);
          CHECK(three[i] == want);
          CHECK(four[i] == ((low >> i & 1) != 0 ? 0xffffffffu : 0u));
        }
      }
    }
  }
}
