// cvt between every pair of types, against a scalar reference, in every build, full and masked.
#include "unit/sim/numeric/numeric_reference.h"
#include "unit/sim/ops/op_harness.h"

#include <bit>
#include <cmath>
#include <optional>
#include <random>

using namespace kernwright::sim;
using namespace kernwright::sim::testing;
using ptx::Rounding;

namespace {

struct IntegerKind {
  const char* name;
  int bits;
  bool is_signed;
};
constexpr IntegerKind kIntegers[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                     {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                     {"u64", 64, false}, {"s64", 64, true}};

__extension__ using Int128 = __int128;

Int128 value_of(std::uint64_t raw, const IntegerKind& kind) {
  const std::uint64_t low = kind.bits == 64 ? raw : raw & ((std::uint64_t{1} << kind.bits) - 1);
  const bool negative = kind.is_signed && (low >> (kind.bits - 1) & 1) != 0;
  return negative ? Int128{low} - (Int128{1} << kind.bits) : Int128{low};
}
Int128 lowest(const IntegerKind& kind) {
  return kind.is_signed ? -(Int128{1} << (kind.bits - 1)) : 0;
}
Int128 highest(const IntegerKind& kind) {
  return (Int128{1} << (kind.bits - (kind.is_signed ? 1 : 0))) - 1;
}
std::uint64_t register_bits(Int128 value, int bytes) {
  const auto raw = static_cast<std::uint64_t>(value);
  return bytes == 8 ? raw : raw & ((std::uint64_t{1} << bytes * 8) - 1);
}

/// Names of registers at least as wide as `bits`.
std::vector<std::pair<const char*, int>> registers_for(int bits) {
  std::vector<std::pair<const char*, int>> result;
  if (bits <= 16) result.push_back({"%h", 2});
  if (bits <= 32) result.push_back({"%r", 4});
  result.push_back({"%l", 8});
  return result;
}

Lanes random_lanes(std::mt19937_64& random) {
  Lanes lanes{};
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i] = random() >> (random() % 64);
    if (i % 5 == 0) lanes[i] = 0 - lanes[i];
  }
  lanes[0] = 0;
  lanes[1] = ~std::uint64_t{0};
  lanes[2] = 0x8080808080808080;
  lanes[3] = 0x7fffffffffffffff;
  return lanes;
}

double random_double(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return std::bit_cast<double>(random());
    case 1:
      return std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                        -static_cast<int>(random() % 90));
    case 2:
      return static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 4;
    default:
      return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  }
}

/// Runs the instruction in all builds and compares every lane with `expected`, masked lanes kept.
template <typename Expected>
void check_all(const std::string& text, const std::vector<Lanes>& sources, int bytes,
               Expected expected) {
  constexpr std::uint64_t kBefore = 0x1122334455667788;
  for (const IsaBuild& build : isa_builds()) {
    CAPTURE(build.name);
    CAPTURE(text);
    OneInstruction instruction(build, text);
    REQUIRE(instruction.known());
    for (const std::uint32_t mask : {kAllLanes, 0x55aa00ffu, 1u}) {
      const Lanes result = instruction.run(sources, mask, kBefore);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const bool active = (mask >> i & 1) != 0;
        const std::uint64_t want =
            active ? expected(i) : register_bits(static_cast<Int128>(kBefore), bytes);
        if (result[i] != want) {
          CAPTURE(i);
          CAPTURE(sources[0][i]);
          CHECK(result[i] == want);
          return;
        }
      }
    }
  }
}

/// What PTX says a floating value becomes as an integer.
Int128 integer_reference(double x, Rounding mode, const IntegerKind& to, bool from_double) {
  if (std::isnan(x)) {
    const std::uint64_t top = std::uint64_t{1} << (to.bits - 1);
    return from_double || to.bits == 64 ? value_of(top, to) : 0;
  }
  double rounded = std::floor(x);
  const double part = x - rounded;
  const bool odd = std::fmod(rounded, 2.0) != 0;
  if (mode == Rounding::rpi && part > 0) rounded += 1;
  if (mode == Rounding::rzi && part > 0 && x < 0) rounded += 1;
  if (mode == Rounding::rni && (part > 0.5 || (part == 0.5 && odd))) rounded += 1;
  if (rounded >= 0x1p100) return highest(to);
  if (rounded <= -0x1p100) return lowest(to);
  return std::clamp(static_cast<Int128>(rounded), lowest(to), highest(to));
}

}  // namespace

TEST_CASE("convert: every pair of integers, registers and saturation") {
  std::mt19937_64 random(11);
  for (const IntegerKind& to : kIntegers) {
    for (const IntegerKind& from : kIntegers) {
      for (const auto& [target, bytes] : registers_for(to.bits)) {
        for (const auto& [source, source_bytes] : registers_for(from.bits)) {
          const Lanes lanes = random_lanes(random);
          for (const char* sat : {"", ".sat"}) {
            const std::string text = std::string("cvt") + sat + "." + to.name + "." + from.name +
                                     " " + target + "1, " + source + "2;";
            check_all(text, {lanes}, bytes, [&, width = bytes](std::size_t i) {
              Int128 value = value_of(lanes[i], from);
              if (*sat != '\0') value = std::clamp(value, lowest(to), highest(to));
              value = value_of(static_cast<std::uint64_t>(value), to);
              return register_bits(value, width);
            });
          }
        }
      }
    }
  }
}

TEST_CASE("convert: floating point to every integer in every mode") {
  std::mt19937_64 random(13);
  const std::pair<const char*, Rounding> modes[] = {{"rni", Rounding::rni},
                                                    {"rzi", Rounding::rzi},
                                                    {"rmi", Rounding::rmi},
                                                    {"rpi", Rounding::rpi}};
  for (const IntegerKind& to : kIntegers) {
    for (const auto& [mode_name, mode] : modes) {
      for (const std::string_view from : {"f64", "f32", "f16", "bf16"}) {
        Lanes lanes{};
        std::array<double, kLanes> values{};
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          double x = i == 0 ? NAN : i == 1 ? HUGE_VAL : i == 2 ? -HUGE_VAL : random_double(random);
          if (i == 3) x = -0.5;
          if (i == 4) x = 2.5;
          if (from == "f64") {
            lanes[i] = std::bit_cast<std::uint64_t>(x);
          } else if (from == "f32") {
            const auto narrow = static_cast<float>(x);
            lanes[i] = std::bit_cast<std::uint32_t>(narrow);
            x = narrow;
          } else {
            const SmallFormat& format = from == "f16" ? kF16 : kBF16;
            lanes[i] = i < 2 ? format.largest + 1 + (i == 0 ? 1 : 0) : random() & 0xffff;
            if (i >= 2 && (lanes[i] & 0x7fff) > format.largest) lanes[i] &= 0x3fff;
            x = i == 0   ? NAN
                : i == 1 ? HUGE_VAL
                         : small_value(format, static_cast<std::uint32_t>(lanes[i]));
          }
          values[i] = x;
        }
        const char* source = from == "f64" ? "%d2" : from == "f32" ? "%f2" : "%h2";
        for (const auto& [target, bytes] : registers_for(to.bits)) {
          const std::string text = std::string("cvt.") + mode_name + "." + to.name + "." +
                                   std::string(from) + " " + target + "1, " + source + ";";
          check_all(text, {lanes}, bytes, [&, width = bytes, rounding = mode](std::size_t i) {
            return register_bits(integer_reference(values[i], rounding, to, from == "f64"), width);
          });
        }
      }
    }
  }
}

TEST_CASE("convert: integers to halves and to float in every mode") {
  std::mt19937_64 random(17);
  const std::pair<const char*, Rounding> modes[] = {
      {"rn", Rounding::rn}, {"rz", Rounding::rz}, {"rm", Rounding::rm}, {"rp", Rounding::rp}};
  const SmallRounder f16(kF16), bf16(kBF16);
  for (const IntegerKind& from : kIntegers) {
    for (const auto& [mode_name, mode] : modes) {
      for (const auto& [source, source_bytes] : registers_for(from.bits)) {
        const Lanes lanes = random_lanes(random);
        const auto text = [&, prefix = mode_name, reg = source](const char* to,
                                                                const char* target) {
          return std::string("cvt.") + prefix + "." + to + "." + from.name + " " + target + ", " +
                 reg + "2;";
        };
        const auto small = [&, rounding = mode](const SmallRounder& rounder) {
          return [&, rounding](std::size_t i) -> std::uint64_t {
            return rounder.round(Wide(value_of(lanes[i], from)), rounding, false);
          };
        };
        check_all(text("f16", "%h1"), {lanes}, 2, small(f16));
        check_all(text("bf16", "%h1"), {lanes}, 2, small(bf16));
        if (mode != Rounding::rn) continue;
        check_all(text("f32", "%f1"), {lanes}, 4, [&](std::size_t i) -> std::uint64_t {
          return std::bit_cast<std::uint32_t>(static_cast<float>(value_of(lanes[i], from)));
        });
        check_all(text("f64", "%d1"), {lanes}, 8, [&](std::size_t i) {
          return std::bit_cast<std::uint64_t>(static_cast<double>(value_of(lanes[i], from)));
        });
      }
    }
  }
}

TEST_CASE("convert: narrowing to halves and 8-bit floats") {
  std::mt19937_64 random(19);
  const SmallRounder f16(kF16), bf16(kBF16), e4m3(kE4M3), e5m2(kE5M2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Lanes wide{}, narrow{}, second{};
    for (std::size_t i = 0; i < wide.size(); ++i) {
      double x = random_double(random);
      if (std::isnan(x)) x = 1;
      if (i % 3 == 0) x = std::ldexp(std::fmod(x, 4.0), static_cast<int>(random() % 40) - 30);
      wide[i] = std::bit_cast<std::uint64_t>(x);
      narrow[i] = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      second[i] = std::bit_cast<std::uint32_t>(static_cast<float>(std::fmod(x, 500.0)));
    }
    const auto of = [](const Lanes& lanes, std::size_t i) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(lanes[i]));
    };
    const auto round = [](const SmallRounder& rounder, double x, Rounding mode, bool satfinite) {
      const bool infinite = std::isinf(x);
      if (infinite && !satfinite) return (rounder.format.largest + 1) | (x < 0 ? 0x8000u : 0u);
      return rounder.round(infinite ? Wide(std::copysign(1e300, x)) : Wide(x), mode, satfinite,
                           std::signbit(x));
    };
    const std::pair<const char*, Rounding> modes[] = {
        {"rn", Rounding::rn}, {"rz", Rounding::rz}, {"rm", Rounding::rm}, {"rp", Rounding::rp}};
    for (const auto& [name, mode] : modes) {
      const std::string head = std::string("cvt.") + name;
      check_all(head + ".f16.f64 %h1, %d2;", {wide}, 2, [&, m = mode](std::size_t i) {
        return std::uint64_t{round(f16, std::bit_cast<double>(wide[i]), m, false)};
      });
      check_all(head + ".f16.f32 %h1, %f2;", {narrow}, 2, [&, m = mode](std::size_t i) {
        return std::uint64_t{round(f16, of(narrow, i), m, false)};
      });
      check_all(head + ".bf16.f32 %h1, %f2;", {narrow}, 2, [&, m = mode](std::size_t i) {
        return std::uint64_t{round(bf16, of(narrow, i), m, false)};
      });
    }
    check_all("cvt.rn.f16x2.f32 %r1, %f2, %f3;", {narrow, second}, 4, [&](std::size_t i) {
      return std::uint64_t{round(f16, of(narrow, i), Rounding::rn, false) << 16 |
                           round(f16, of(second, i), Rounding::rn, false)};
    });
    check_all("cvt.rz.bf16x2.f32 %r1, %f2, %f3;", {narrow, second}, 4, [&](std::size_t i) {
      return std::uint64_t{round(bf16, of(narrow, i), Rounding::rz, false) << 16 |
                           round(bf16, of(second, i), Rounding::rz, false)};
    });
    check_all("cvt.rn.relu.f16.f32 %h1, %f2;", {narrow}, 2, [&](std::size_t i) {
      const float x = of(narrow, i);
      return std::uint64_t{std::signbit(x) ? 0 : round(f16, x, Rounding::rn, false)};
    });
    check_all("cvt.rn.satfinite.e4m3x2.f32 %h1, %f2, %f3;", {narrow, second}, 2,
              [&](std::size_t i) {
                return std::uint64_t{round(e4m3, of(narrow, i), Rounding::rn, true) << 8 |
                                     round(e4m3, of(second, i), Rounding::rn, true)};
              });
    check_all("cvt.rn.satfinite.relu.e5m2x2.f32 %h1, %f2, %f3;", {narrow, second}, 2,
              [&](std::size_t i) {
                const auto part = [&](float x) {
                  return std::signbit(x) ? 0u : round(e5m2, x, Rounding::rn, true);
                };
                return std::uint64_t{part(of(narrow, i)) << 8 | part(of(second, i))};
              });
  }
}

TEST_CASE("convert: widening is exact, also from 8-bit floats") {
  for (std::uint32_t base = 0; base < 65536; base += 32 * 17) {
    Lanes lanes{};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = (base + i * 2053) & 0xffff;
      if ((lanes[i] & 0x7c00) == 0x7c00) lanes[i] &= 0x83ff;
    }
    const auto half = [&](std::size_t i) {
      return small_value(kF16, static_cast<std::uint32_t>(lanes[i]));
    };
    check_all("cvt.f32.f16 %f1, %h2;", {lanes}, 4, [&](std::size_t i) -> std::uint64_t {
      return std::bit_cast<std::uint32_t>(static_cast<float>(half(i)));
    });
    check_all("cvt.f64.f16 %d1, %h2;", {lanes}, 8,
              [&](std::size_t i) { return std::bit_cast<std::uint64_t>(half(i)); });
    const SmallRounder f16(kF16);
    for (const auto& [name, format] : {std::pair{"e4m3x2", kE4M3}, std::pair{"e5m2x2", kE5M2}}) {
      check_all(std::string("cvt.rn.f16x2.") + name + " %r1, %h2;", {lanes}, 4,
                [&, f = format](std::size_t i) -> std::uint64_t {
                  const auto part = [&](std::uint64_t byte) -> std::uint32_t {
                    const std::uint32_t magnitude = byte & 0x7f;
                    if (magnitude > f.largest) {
                      const bool infinite = f.has_infinity && magnitude == f.largest + 1;
                      return infinite ? 0x7c00u | (byte >> 7 != 0 ? 0x8000u : 0u) : 0x7fffu;
                    }
                    const double x = small_value(f, static_cast<std::uint32_t>(byte));
                    return f16.round(Wide(x), Rounding::rn, false, byte >> 7 != 0);
                  };
                  return part(lanes[i] >> 8) << 16 | part(lanes[i] & 0xff);
                });
    }
  }
}

TEST_CASE("convert: single and double, flushing, clamping and integral values") {
  Lanes singles{}, doubles{};
  const float values[] = {0.0f, -0.0f, 1e-40f, -1e-40f,   0.5f,
                          1.5f, -2.5f, 3e38f,  HUGE_VALF, -HUGE_VALF};
  for (std::size_t i = 0; i < singles.size(); ++i) {
    const float x = values[i % std::size(values)];
    singles[i] = std::bit_cast<std::uint32_t>(x);
    doubles[i] = std::bit_cast<std::uint64_t>(static_cast<double>(x) * (1 + 1e-12));
  }
  const auto single = [&](std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(singles[i]));
  };
  const auto flushed = [](float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  };
  const auto bits = [](float x) { return std::uint64_t{std::bit_cast<std::uint32_t>(x)}; };
  check_all("cvt.f64.f32 %d1, %f2;", {singles}, 8, [&](std::size_t i) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(single(i)));
  });
  check_all("cvt.ftz.f64.f32 %d1, %f2;", {singles}, 8, [&](std::size_t i) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(flushed(single(i))));
  });
  check_all("cvt.rn.f32.f64 %f1, %d2;", {doubles}, 4, [&](std::size_t i) {
    return bits(static_cast<float>(std::bit_cast<double>(doubles[i])));
  });
  check_all("cvt.rn.ftz.f32.f64 %f1, %d2;", {doubles}, 4, [&](std::size_t i) {
    return bits(flushed(static_cast<float>(std::bit_cast<double>(doubles[i]))));
  });
  check_all("cvt.rzi.f32.f32 %f1, %f2;", {singles}, 4,
            [&](std::size_t i) { return bits(std::trunc(single(i))); });
  check_all("cvt.rpi.ftz.f32.f32 %f1, %f2;", {singles}, 4,
            [&](std::size_t i) { return bits(std::ceil(flushed(single(i)))); });
  check_all("cvt.sat.f32.f32 %f1, %f2;", {singles}, 4, [&](std::size_t i) {
    const float x = single(i);
    return bits(x > 0 ? std::min(x, 1.0f) : 0.0f);
  });
  check_all("cvt.rmi.f64.f64 %d1, %d2;", {doubles}, 8, [&](std::size_t i) {
    return std::bit_cast<std::uint64_t>(std::floor(std::bit_cast<double>(doubles[i])));
  });
}

TEST_CASE("convert: NaN as GPUs hand it on") {
  Lanes doubles{}, singles{}, halves{};
  doubles.fill(0xfff8123456789abc);
  singles.fill(0xffc12345);
  halves.fill(0x7f81);
  doubles[1] = 0x7ff0000000000001;
  singles[1] = 0x7fc00000;
  const auto by_lane = [](std::uint64_t others, std::uint64_t second) {
    return [=](std::size_t i) { return i == 1 ? second : others; };
  };
  check_all("cvt.rn.f32.f64 %f1, %d2;", {doubles}, 4, by_lane(0xffc091a2, 0x7fc00000));
  check_all("cvt.rz.f32.f64 %f1, %d2;", {doubles}, 4, by_lane(0xffc091a2, 0x7fc00000));
  check_all("cvt.rn.f16.f64 %h1, %d2;", {doubles}, 2, by_lane(0xfe04, 0x7e00));
  check_all("cvt.rp.f16.f64 %h1, %d2;", {doubles}, 2, by_lane(0xfe04, 0x7e00));
  check_all("cvt.rn.bf16.f64 %h1, %d2;", {doubles}, 2, by_lane(0xffc0, 0x7fc0));
  check_all("cvt.rn.f16.f32 %h1, %f2;", {singles}, 2, by_lane(0x7fff, 0x7fff));
  check_all("cvt.f32.f32 %f1, %f2;", {singles}, 4, by_lane(0xffc12345, 0x7fc00000));
  check_all("cvt.ftz.f64.f32 %d1, %f2;", {singles}, 8,
            by_lane(0x7fffffffe0000000, 0x7fffffffe0000000));
  check_all("cvt.f32.bf16 %f1, %h2;", {halves}, 4, by_lane(0x7f810000, 0x7f810000));
}

TEST_CASE("convert: between halves of both kinds to the nearest where no rounding is named") {
  std::mt19937_64 random(29);
  const SmallRounder f16(kF16), bf16(kBF16);
  for (int repeat = 0; repeat < 40; ++repeat) {
    Lanes lanes{};
    for (std::uint64_t& lane : lanes) lane = random() & 0xffff;
    const auto check = [&](const std::string& from, const SmallRounder& source,
                           const std::string& to, const SmallRounder& target) {
      Lanes finite = lanes;
      for (std::uint64_t& lane : finite) {
        if ((lane & 0x7fff) > source.format.largest) lane &= 0xbfff;
      }
      const auto nearest = [&](std::size_t i) {
        const auto bits = static_cast<std::uint32_t>(finite[i]);
        return std::uint64_t{target.round(Wide(small_value(source.format, bits)), Rounding::rn,
                                          false, (bits & 0x8000) != 0)};
      };
      for (const char* head : {"cvt.", "cvt.rn."})
        check_all(head + to + "." + from + " %h1, %h2;", {finite}, 2, nearest);
    };
    check("f16", f16, "bf16", bf16);
    check("bf16", bf16, "f16", f16);
  }
}

TEST_CASE("convert: .ftz and roundings of bf16 and wider types") {
  std::mt19937_64 random(31);
  const SmallRounder bf16(kBF16);
  const auto flushed = [](std::uint64_t x) { return (x & 0x7f800000) == 0 ? x & 0x80000000 : x; };
  for (int repeat = 0; repeat < 20; ++repeat) {
    Lanes singles{}, halves{};
    for (std::size_t i = 0; i < singles.size(); ++i) {
      singles[i] = random() & 0xff7fffff;  // finite
      if (i % 2 == 0) singles[i] &= 0x80ffffff;
      halves[i] = singles[i] >> 16;
    }
    halves[7] = 0x7f81;
    const std::pair<const char*, Rounding> modes[] = {
        {"rn", Rounding::rn}, {"rz", Rounding::rz}, {"rm", Rounding::rm}, {"rp", Rounding::rp}};
    for (const auto& [name, mode] : modes) {
      const std::string head = std::string("cvt.") + name;
      check_all(head + ".ftz.bf16.f32 %h1, %f2;", {singles}, 2, [&, m = mode](std::size_t i) {
        const auto bits = static_cast<std::uint32_t>(flushed(singles[i]));
        const std::uint32_t zero = bits >> 16;
        return std::uint64_t{(bits & 0x7fffffff) == 0
                                 ? zero
                                 : bf16.round(Wide(std::bit_cast<float>(bits)), m, false)};
      });
      check_all(head + ".f32.bf16 %f1, %h2;", {halves}, 4,
                [&](std::size_t i) { return halves[i] << 16; });
      check_all(head + ".ftz.f32.bf16 %f1, %h2;", {halves}, 4,
                [&](std::size_t i) { return i == 7 ? 0x7fffffff : flushed(halves[i] << 16); });
      Lanes finite = halves;
      finite[7] = 0x8001;
      check_all(head + ".f64.bf16 %d1, %h2;", {finite}, 8, [&](std::size_t i) {
        const auto bits = static_cast<std::uint32_t>(finite[i] << 16);
        return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
      });
    }
  }
}

TEST_CASE("convert: .ftz does not touch the input on the way to f16") {
  Lanes tiny{};
  tiny.fill(0x807fffff);
  check_all("cvt.rm.ftz.f16.f32 %h1, %f2;", {tiny}, 2, [](std::size_t) { return 0x8001u; });
  check_all("cvt.rn.ftz.f16.f32 %h1, %f2;", {tiny}, 2, [](std::size_t) { return 0x8000u; });
}

TEST_CASE("convert: packing with saturation") {
  Lanes a{}, b{}, c{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint32_t>(static_cast<int>(i * 9000) - 100000);
    b[i] = static_cast<std::uint32_t>(static_cast<int>(i * 20) - 300);
    c[i] = 0xabcd1234;
  }
  const auto clamp = [](std::uint64_t x, int low, int high) {
    return static_cast<std::uint32_t>(std::clamp(static_cast<std::int32_t>(x), low, high));
  };
  check_all("cvt.pack.sat.s16.s32 %r1, %r2, %r3;", {a, b}, 4, [&](std::size_t i) {
    return std::uint64_t{clamp(a[i], -32768, 32767) << 16 | (clamp(b[i], -32768, 32767) & 0xffff)};
  });
  check_all("cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;", {a, b, c}, 4, [&](std::size_t i) {
    return std::uint64_t{0x12340000u | clamp(a[i], 0, 255) << 8 | clamp(b[i], 0, 255)};
  });
}
