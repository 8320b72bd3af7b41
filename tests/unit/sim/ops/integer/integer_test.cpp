// Integer instructions against references in 128-bit arithmetic, in full and in masked code.
#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

#include <functional>

using namespace kernwright::sim::testing;

namespace {

__extension__ using Wide = __int128;
using Reference = std::function<std::uint64_t(std::uint64_t, std::uint64_t, std::uint64_t)>;

const std::vector<std::uint64_t> kValues{0,
                                         1,
                                         2,
                                         3,
                                         7,
                                         31,
                                         32,
                                         33,
                                         0x7f,
                                         0x80,
                                         0xff,
                                         0x7fff,
                                         0x8000,
                                         0xffff,
                                         0x12345678,
                                         0x7fffffff,
                                         0x80000000,
                                         0xfffffffe,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xfedcba9876543210,
                                         0xffffffffffffffff};
const std::vector<std::uint64_t> kSmall{0, 5, 0x80000001, 0xffffffffffffffff};

std::uint64_t cut(std::uint64_t value, int bits) {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}
/// The value of the low `bits` as a signed or unsigned number.
Wide number(std::uint64_t value, int bits, bool is_signed) {
  const Wide low = cut(value, bits);
  return is_signed && ((value >> (bits - 1)) & 1) != 0 ? low - (Wide{1} << bits) : low;
}

void check(const Instruction& inst, const Table& table, int result_bits, const Reference& expect) {
  for (const unsigned block : {32u, 21u}) {
    const auto got = evaluate(inst, table.a, table.b, table.c, block);
    int wrong = 0;
    for (std::size_t i = 0; i < got.size() && wrong < 3; ++i) {
      const std::uint64_t want = cut(expect(table.a[i], table.b[i], table.c[i]), result_bits);
      if (got[i] == want) continue;
      ++wrong;
      INFO(inst.text << " block " << block << " a=" << table.a[i] << " b=" << table.b[i]
                     << " c=" << table.c[i]);
      CHECK(got[i] == want);
    }
    CHECK(wrong == 0);
  }
}

struct IntegerType {
  std::string name;
  int bits;
  bool is_signed;
  std::string storage() const { return "b" + std::to_string(bits); }
};
const std::vector<IntegerType> kTypes{{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                                      {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

Instruction same(const std::string& text, const IntegerType& type) {
  return {text, type.storage(), type.storage(), type.storage(), type.storage()};
}

void check_all(const std::string& stem, const std::string& operands,
               const std::function<Wide(Wide, Wide, Wide, const IntegerType&)>& f) {
  const Table table = all_triples(kValues, kValues, kSmall);
  for (const IntegerType& type : kTypes) {
    check(same(stem + "." + type.name + " " + operands + ";", type), table, type.bits,
          [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
            const auto n = [&](std::uint64_t x) { return number(x, type.bits, type.is_signed); };
            return static_cast<std::uint64_t>(f(n(a), n(b), n(c), type));
          });
  }
}

}  // namespace

TEST_CASE("integer arithmetic wraps in every type") {
  using Ty = const IntegerType&;
  check_all("add", "%d, %a, %b", [](Wide a, Wide b, Wide, Ty) { return a + b; });
  check_all("sub", "%d, %a, %b", [](Wide a, Wide b, Wide, Ty) { return a - b; });
  // The low 64 bits hold all that is asked for, and unsigned numbers wrap.
  const auto product = [](Wide a, Wide b) -> Wide {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  };
  check_all("mul.lo", "%d, %a, %b", [&](Wide a, Wide b, Wide, Ty) { return product(a, b); });
  check_all("mad.lo", "%d, %a, %b, %c",
            [&](Wide a, Wide b, Wide c, Ty) { return product(a, b) + c; });
  check_all("min", "%d, %a, %b", [](Wide a, Wide b, Wide, Ty) { return a < b ? a : b; });
  check_all("max", "%d, %a, %b", [](Wide a, Wide b, Wide, Ty) { return a < b ? b : a; });
  check_all("sad", "%d, %a, %b, %c",
            [](Wide a, Wide b, Wide c, Ty) { return c + (a < b ? b - a : a - b); });
}

TEST_CASE("high halves, quotients and remainders are exact, zero divisors give what GPUs give") {
  using Ty = const IntegerType&;
  // The 64-bit unsigned product needs all 128 bits: shift it as unsigned.
  const auto high = [](Wide a, Wide b, Ty type) {
    __extension__ using UnsignedWide = unsigned __int128;
    if (!type.is_signed) {
      return static_cast<Wide>((static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)) >>
                               type.bits);
    }
    return (a * b) >> type.bits;
  };
  check_all("mul.hi", "%d, %a, %b", [&](Wide a, Wide b, Wide, Ty t) { return high(a, b, t); });
  check_all("mad.hi", "%d, %a, %b, %c",
            [&](Wide a, Wide b, Wide c, Ty t) { return high(a, b, t) + c; });
  check_all("div", "%d, %a, %b",
            [](Wide a, Wide b, Wide, Ty) { return b == 0 ? Wide{-1} : a / b; });
  check_all("rem", "%d, %a, %b",
            [](Wide a, Wide b, Wide, Ty) { return b == 0 ? Wide{-1} : a % b; });
}

TEST_CASE("abs and neg of signed types") {
  for (const IntegerType& type : kTypes) {
    if (!type.is_signed) continue;
    const Table table = all_triples(kValues, {0}, {0});
    check(same("abs." + type.name + " %d, %a;", type), table, type.bits, [&](auto a, auto, auto) {
      const Wide n = number(a, type.bits, true);
      return static_cast<std::uint64_t>(n < 0 ? -n : n);
    });
    check(same("neg." + type.name + " %d, %a;", type), table, type.bits, [&](auto a, auto, auto) {
      return static_cast<std::uint64_t>(-number(a, type.bits, true));
    });
  }
}

TEST_CASE("wide products double the width") {
  const Table table = all_triples(kValues, kValues, kSmall);
  for (const IntegerType& type : kTypes) {
    if (type.bits == 64) continue;
    const std::string wide = "b" + std::to_string(2 * type.bits);
    const auto product = [&](std::uint64_t a, std::uint64_t b) {
      return number(a, type.bits, type.is_signed) * number(b, type.bits, type.is_signed);
    };
    check({"mul.wide." + type.name + " %d, %a, %b;", wide, type.storage(), type.storage(), "b32"},
          table, 2 * type.bits,
          [&](auto a, auto b, auto) { return static_cast<std::uint64_t>(product(a, b)); });
    check(
        {"mad.wide." + type.name + " %d, %a, %b, %c;", wide, type.storage(), type.storage(), wide},
        table, 2 * type.bits,
        [&](auto a, auto b, auto c) { return static_cast<std::uint64_t>(product(a, b)) + c; });
  }
}

TEST_CASE("saturating 32-bit sums stop at the ends") {
  const Table table = all_triples(kValues, kValues, kSmall);
  const auto clamp = [](Wide x) {
    const Wide low = -(Wide{1} << 31), high = (Wide{1} << 31) - 1;
    return static_cast<std::uint64_t>(x < low ? low : x > high ? high : x);
  };
  const auto n = [](std::uint64_t x) { return number(x, 32, true); };
  check({"add.sat.s32 %d, %a, %b;"}, table, 32,
        [&](auto a, auto b, auto) { return clamp(n(a) + n(b)); });
  check({"sub.sat.s32 %d, %a, %b;"}, table, 32,
        [&](auto a, auto b, auto) { return clamp(n(a) - n(b)); });
  check({"mad.hi.sat.s32 %d, %a, %b, %c;"}, table, 32,
        [&](auto a, auto b, auto c) { return clamp(((n(a) * n(b)) >> 32) + n(c)); });
}

TEST_CASE("two 16-bit integers in a register are added and compared apart, .relu stops at zero") {
  const Table table = all_triples(kValues, kValues, kSmall);
  using Two = std::function<Wide(Wide, Wide)>;
  const auto check_pairs = [&](const std::string& opcode, bool is_signed, const Two& f) {
    check({opcode + " %d, %a, %b;"}, table, 32, [&](auto a, auto b, auto) {
      const auto n = [&](std::uint64_t x) { return number(x, 16, is_signed); };
      const auto half = [&](int at) {
        return cut(static_cast<std::uint64_t>(f(n(a >> at), n(b >> at))), 16);
      };
      return half(0) | half(16) << 16;
    });
  };
  const Two sum = [](Wide a, Wide b) { return a + b; };
  const Two least = [](Wide a, Wide b) { return a < b ? a : b; };
  const Two most = [](Wide a, Wide b) { return a < b ? b : a; };
  const auto relu = [](const Two& f) {
    return [f](Wide a, Wide b) { return f(a, b) < 0 ? Wide{0} : f(a, b); };
  };
  for (const bool is_signed : {false, true}) {
    const std::string type = is_signed ? ".s16x2" : ".u16x2";
    check_pairs("add" + type, is_signed, sum);
    check_pairs("min" + type, is_signed, least);
    check_pairs("max" + type, is_signed, most);
  }
  const auto n = [](std::uint64_t x) { return number(x, 32, true); };
  for (const Two& f : {least, most}) {
    const std::string stem = f(0, 1) == 0 ? "min" : "max";
    for (const std::string order : {".relu.s16x2", ".s16x2.relu"})
      check_pairs(stem + order, true, relu(f));
    for (const std::string order : {".relu.s32", ".s32.relu"}) {
      check({stem + order + " %d, %a, %b;"}, table, 32,
            [&](auto a, auto b, auto) { return static_cast<std::uint64_t>(relu(f)(n(a), n(b))); });
    }
  }
}

TEST_CASE("carries chain over words") {
  const Table table = all_triples(kValues, kValues, kSmall);
  // 96-bit sums and differences of values made of a, b, c in three words.
  check({".reg .b32 %t; add.cc.u32 %t, %a, %b; addc.cc.u32 %t, %c, %a; addc.u32 %d, %b, %c;"},
        table, 32, [](auto a, auto b, auto c) {
          const Wide first = number(a, 32, false) + number(b, 32, false);
          const Wide second = number(c, 32, false) + number(a, 32, false) + (first >> 32);
          return static_cast<std::uint64_t>(number(b, 32, false) + number(c, 32, false) +
                                            (second >> 32));
        });
  // What addc reads behind a subtraction: that nothing was borrowed.
  check({".reg .b32 %t; sub.cc.u32 %t, %a, %b; addc.u32 %d, 0, 0;"}, table, 32,
        [](auto a, auto b, auto) {
          return std::uint64_t{static_cast<std::uint32_t>(a) >= static_cast<std::uint32_t>(b)};
        });
  check({".reg .b32 %t; sub.cc.u32 %t, %a, %b; subc.cc.u32 %t, %c, %a; subc.u32 %d, %b, %c;"},
        table, 32, [](auto a, auto b, auto c) {
          const Wide first = number(a, 32, false) - number(b, 32, false);
          const Wide second = number(c, 32, false) - number(a, 32, false) - (first < 0 ? 1 : 0);
          return static_cast<std::uint64_t>(number(b, 32, false) - number(c, 32, false) -
                                            (second < 0 ? 1 : 0));
        });
  check({".reg .b64 %t; mad.lo.cc.u64 %t, %a, %b, %c; madc.hi.u64 %d, %a, %b, %c;", "b64", "b64",
         "b64", "b64"},
        table, 64, [](auto a, auto b, auto c) {
          __extension__ using UnsignedWide = unsigned __int128;
          const UnsignedWide product = static_cast<UnsignedWide>(a) * b;
          const UnsignedWide low =
              static_cast<UnsignedWide>(static_cast<std::uint64_t>(product)) + c;
          return static_cast<std::uint64_t>(product >> 64) + c +
                 static_cast<std::uint64_t>(low >> 64);
        });
  check({".reg .b32 %t; mad.hi.cc.s32 %t, %a, %b, %c; addc.u32 %d, 0, 0;"}, table, 32,
        [](auto a, auto b, auto c) {
          const Wide high = (number(a, 32, true) * number(b, 32, true)) >> 32;
          const Wide sum =
              number(static_cast<std::uint64_t>(high), 32, false) + number(c, 32, false);
          return static_cast<std::uint64_t>(sum >> 32);
        });
}

TEST_CASE("24-bit products use the low 24 bits of each factor") {
  const Table table = all_triples(kValues, kValues, kSmall);
  const auto narrow = [](std::uint64_t x, bool is_signed) { return number(x, 24, is_signed); };
  for (const bool is_signed : {false, true}) {
    const std::string type = is_signed ? "s32" : "u32";
    check({"mul24.lo." + type + " %d, %a, %b;"}, table, 32, [&](auto a, auto b, auto) {
      return static_cast<std::uint64_t>(narrow(a, is_signed) * narrow(b, is_signed));
    });
    check({"mad24.hi." + type + " %d, %a, %b, %c;"}, table, 32, [&](auto a, auto b, auto c) {
      return static_cast<std::uint64_t>((narrow(a, is_signed) * narrow(b, is_signed)) >> 16) + c;
    });
  }
}

TEST_CASE("bit counts and positions") {
  const Table table = all_triples(kValues, {0}, {0});
  for (const int width : {32, 64}) {
    const std::string storage = "b" + std::to_string(width);
    const auto inst = [&](const std::string& stem, const std::string& d) {
      return Instruction{stem + "." + storage + " %d, %a;", d, storage, "b32", "b32"};
    };
    check(inst("popc", "b32"), table, 32, [&](auto a, auto, auto) {
      std::uint64_t n = 0;
      for (int i = 0; i < width; ++i) n += (a >> i) & 1;
      return n;
    });
    check(inst("clz", "b32"), table, 32, [&](auto a, auto, auto) {
      std::uint64_t n = 0;
      for (int i = width - 1; i >= 0 && ((a >> i) & 1) == 0; --i) ++n;
      return n;
    });
    check(inst("brev", storage), table, width, [&](auto a, auto, auto) {
      std::uint64_t r = 0;
      for (int i = 0; i < width; ++i) r |= ((a >> i) & 1) << (width - 1 - i);
      return r;
    });
    for (const bool is_signed : {false, true}) {
      for (const bool shift : {false, true}) {
        const std::string text = std::string("bfind") + (shift ? ".shiftamt" : "") +
                                 (is_signed ? ".s" : ".u") + std::to_string(width) + " %d, %a;";
        check({text, "b32", storage, "b32", "b32"}, table, 32, [&](auto a, auto, auto) {
          const bool sign = is_signed && ((a >> (width - 1)) & 1) != 0;
          for (int i = width - 1; i >= 0; --i) {
            if ((((a >> i) & 1) != 0) != sign) {
              return static_cast<std::uint64_t>(shift ? width - 1 - i : i);
            }
          }
          return ~std::uint64_t{0};
        });
      }
    }
  }
}

TEST_CASE("fns finds the n-th set bit in both directions") {
  const std::vector<std::uint64_t> masks{0, 1, 0x80000000, 0xffffffff, 0x0f0f00f1};
  const std::vector<std::uint64_t> bases{0, 1, 5, 16, 31};
  const std::vector<std::uint64_t> counts{0, 1, 2, 7, 32, 0xffffffff, 0xfffffffd, 0x80000000};
  check({"fns.b32 %d, %a, %b, %c;"}, all_triples(masks, bases, counts), 32,
        [](auto m, auto base, auto n) {
          std::vector<std::uint64_t> set;
          const auto count = static_cast<std::int32_t>(n);
          if (count == INT32_MIN) return std::uint64_t{0};  // has no magnitude
          if (count >= 0) {
            for (std::uint64_t i = base; i < 32; ++i) {
              if (((m >> i) & 1) != 0) set.push_back(i);
            }
          } else {
            for (std::int64_t i = static_cast<std::int64_t>(base); i >= 0; --i) {
              if (((m >> i) & 1) != 0) set.push_back(static_cast<std::uint64_t>(i));
            }
          }
          if (count == 0) return ((m >> base) & 1) != 0 ? base : ~std::uint64_t{0};
          const std::uint64_t want =
              count < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(std::int64_t{count})
                        : static_cast<std::uint64_t>(count);
          return want <= set.size() ? set[want - 1] : ~std::uint64_t{0};
        });
}

TEST_CASE("bit fields are extracted and inserted") {
  const std::vector<std::uint64_t> places{0, 1, 5, 31, 32, 33, 63, 64, 65, 255, 256, 300};
  for (const IntegerType& type : kTypes) {
    if (type.bits == 16) continue;
    check({"bfe." + type.name + " %d, %a, %b, %c;", type.storage(), type.storage(), "b32", "b32"},
          all_triples(kValues, places, places), type.bits, [&](auto a, auto p, auto l) {
            // The manual's own description, bit by bit; of 64 bits GPUs take the whole counts.
            const int msb = type.bits - 1;
            const std::uint64_t low = type.bits == 64 ? ~std::uint64_t{0} : 0xff;
            const int pos = static_cast<int>(p & low), len = static_cast<int>(l & low);
            const auto bit = [&](int i) { return (a >> i) & 1; };
            const std::uint64_t sign =
                !type.is_signed || len == 0 ? 0 : bit(std::min(pos + len - 1, msb));
            std::uint64_t d = 0;
            for (int i = 0; i <= msb; ++i) {
              d |= (i < len && pos + i <= msb ? bit(pos + i) : sign) << i;
            }
            return d;
          });
    if (type.is_signed) continue;
    const std::string text = "bfi." + type.storage() + " %d, %a, %b, %c, 7;";
    check({text, type.storage(), type.storage(), type.storage(), "b32"},
          all_triples(kValues, kValues, places), type.bits, [&](auto a, auto b, auto p) {
            const int pos = static_cast<int>(type.bits == 64 ? p : p & 0xff);
            for (int i = 0; i < 7 && pos + i < type.bits; ++i) {
              const std::uint64_t mask = std::uint64_t{1} << (pos + i);
              b = ((a >> i) & 1) != 0 ? b | mask : b & ~mask;
            }
            return b;
          });
  }
  check({"bmsk.clamp.b32 %d, %a, %b;"}, all_triples(places, places, {0}), 32,
        [](auto a, auto b, auto) {
          std::uint64_t d = 0;
          for (std::uint64_t i = a; i < 32 && i < a + b; ++i) d |= std::uint64_t{1} << i;
          return d;
        });
  check({"szext.wrap.s32 %d, %a, %b;"}, all_triples(kValues, places, {0}), 32,
        [](auto a, auto b, auto) {
          const int width = static_cast<int>(b & 31);
          return width == 0 ? 0 : static_cast<std::uint64_t>(number(a, width, true));
        });
}

TEST_CASE("shifts beyond the width give zero or the sign") {
  const std::vector<std::uint64_t> counts{0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0xffffffff};
  for (const IntegerType& type : kTypes) {
    const Table table = all_triples(kValues, counts, {0});
    const std::string storage = type.storage();
    check({"shr." + type.name + " %d, %a, %b;", storage, storage, "b32", "b32"}, table, type.bits,
          [&](auto a, auto b, auto) {
            const Wide n = number(a, type.bits, type.is_signed);
            return static_cast<std::uint64_t>(n >> (b > 100 ? 100 : b));
          });
    check({"shl." + storage + " %d, %a, %b;", storage, storage, "b32", "b32"}, table, type.bits,
          [&](auto a, auto b, auto) { return b > 63 ? 0 : a << b; });
  }
  const Table funnel = all_triples(kValues, kValues, counts);
  const auto both = [](std::uint64_t a, std::uint64_t b) { return (b << 32) | cut(a, 32); };
  check({"shf.l.wrap.b32 %d, %a, %b, %c;"}, funnel, 32,
        [&](auto a, auto b, auto c) { return (both(a, b) << (c & 31)) >> 32; });
  check({"shf.r.clamp.b32 %d, %a, %b, %c;"}, funnel, 32,
        [&](auto a, auto b, auto c) { return both(a, b) >> (c > 32 ? 32 : c); });
  check({"shf.l.clamp.b32 %d, %a, %b, %c;"}, funnel, 32, [&](auto a, auto b, auto c) {
    return static_cast<std::uint64_t>((number(both(a, b), 64, false) << (c > 32 ? 32 : c)) >> 32);
  });
}

TEST_CASE("logic, lop3 and prmt work on every bit") {
  const Table table = all_triples(kValues, kValues, kValues);
  for (const int width : {16, 32, 64}) {
    const IntegerType type{"", width, false};
    const std::string suffix = "." + type.storage() + " ";
    check(same("and" + suffix + "%d, %a, %b;", type), table, width,
          [](auto a, auto b, auto) { return a & b; });
    check(same("or" + suffix + "%d, %a, %b;", type), table, width,
          [](auto a, auto b, auto) { return a | b; });
    check(same("xor" + suffix + "%d, %a, %b;", type), table, width,
          [](auto a, auto b, auto) { return a ^ b; });
    check(same("not" + suffix + "%d, %a;", type), table, width,
          [](auto a, auto, auto) { return ~a; });
    check(same("cnot" + suffix + "%d, %a;", type), table, width,
          [&](auto a, auto, auto) { return std::uint64_t{cut(a, width) == 0}; });
  }
  for (const unsigned lut : {0x00u, 0x1bu, 0x96u, 0xe8u, 0xcau, 0xffu}) {
    check({"lop3.b32 %d, %a, %b, %c, " + std::to_string(lut) + ";"}, table, 32,
          [&](auto a, auto b, auto c) {
            std::uint64_t d = 0;
            for (int i = 0; i < 32; ++i) {
              const auto index = ((a >> i) & 1) << 2 | ((b >> i) & 1) << 1 | ((c >> i) & 1);
              d |= std::uint64_t{(lut >> index) & 1} << i;
            }
            return d;
          });
  }
  const std::vector<std::uint64_t> selectors{0x3210, 0x7654, 0x0123, 0xba98,
                                             0x5140, 0xffff, 0x8f31};
  check({"prmt.b32 %d, %a, %b, %c;"}, all_triples(kValues, kValues, selectors), 32,
        [](auto a, auto b, auto c) {
          std::uint64_t d = 0;
          for (int i = 0; i < 4; ++i) {
            const auto s = (c >> (4 * i)) & 15;
            std::uint64_t byte = ((s & 4) != 0 ? b >> (8 * (s & 3)) : a >> (8 * (s & 3))) & 0xff;
            if ((s & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
            d |= byte << (8 * i);
          }
          return d;
        });
}

TEST_CASE("dot products of bytes and halves") {
  const Table table = all_triples(kValues, kValues, kSmall);
  for (const bool a_signed : {false, true}) {
    for (const bool b_signed : {false, true}) {
      const std::string types =
          std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
      const auto part = [](std::uint64_t x, int index, int width, bool is_signed) {
        return number(x >> (index * width), width, is_signed);
      };
      check({"dp4a" + types + " %d, %a, %b, %c;"}, table, 32, [&](auto a, auto b, auto c) {
        Wide sum = number(c, 32, false);
        for (int i = 0; i < 4; ++i) sum += part(a, i, 8, a_signed) * part(b, i, 8, b_signed);
        return static_cast<std::uint64_t>(sum);
      });
      check({"dp2a.hi" + types + " %d, %a, %b, %c;"}, table, 32, [&](auto a, auto b, auto c) {
        Wide sum = number(c, 32, false);
        for (int i = 0; i < 2; ++i) sum += part(a, i, 16, a_signed) * part(b, i + 2, 8, b_signed);
        return static_cast<std::uint64_t>(sum);
      });
    }
  }
}

TEST_CASE("video instructions work on words, halves and bytes") {
  const Table table = all_triples(kValues, kValues, kSmall);
  const auto field = [](std::uint64_t x, int index, int width, bool is_signed) {
    return number(x >> (index * width), width, is_signed);
  };
  check({"vadd.s32.u32.s32.sat %d, %a, %b;"}, table, 32, [&](auto a, auto b, auto) {
    const Wide sum = number(a, 32, false) + number(b, 32, true), top = (Wide{1} << 31) - 1;
    return static_cast<std::uint64_t>(sum > top ? top : sum < -top - 1 ? -top - 1 : sum);
  });
  check({"vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;"}, table, 32, [&](auto a, auto b, auto c) {
    Wide sum = number(c, 32, false);
    for (int i = 0; i < 4; ++i) {
      const Wide x = field(a, i, 8, false), y = field(b, i, 8, false);
      sum += x < y ? y - x : x - y;
    }
    return static_cast<std::uint64_t>(sum);
  });
  check({"vmax2.s32.s32.s32 %d, %a, %b, %c;"}, table, 32, [&](auto a, auto b, auto) {
    std::uint64_t d = 0;
    for (int i = 0; i < 2; ++i) {
      const Wide x = field(a, i, 16, true), y = field(b, i, 16, true);
      d |= cut(static_cast<std::uint64_t>(x < y ? y : x), 16) << (16 * i);
    }
    return d;
  });
}
