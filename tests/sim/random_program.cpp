// Makes, prints and interprets random programs.
#include "sim/random_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace kernwright::sim {
namespace {

using U = std::uint32_t;
using S = std::int32_t;
using W = std::uint64_t;

class Random {
 public:
  explicit Random(W seed) : state_(seed) {}
  W next() {  // SplitMix64
    W z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(next() % limit); }

 private:
  W state_;
};

S s(U x) { return static_cast<S>(x); }
U u(std::int64_t x) { return static_cast<U>(x); }
float f(U x) { return std::bit_cast<float>(x); }
/// All NaN results of PTX are one.
U bits(float x) { return std::isnan(x) ? 0x7fffffffu : std::bit_cast<U>(x); }

template <int kMode, typename F>
U rounded(F compute) {
  std::fesetround(kMode);
  volatile float result = compute();
  std::fesetround(FE_TONEAREST);
  return bits(result);
}

U permute(U a, U b, U selector) {
  const W both = W{b} << 32 | a;
  U result = 0;
  for (int i = 0; i < 4; ++i) {
    const U pick = selector >> (4 * i) & 15;
    U byte = static_cast<U>(both >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

U field(U a, U at, U length, bool is_signed) {
  at &= 255;
  length &= 255;
  const U top = std::min<U>(at + length - 1, 31);
  const U sign = is_signed && length != 0 ? a >> top & 1 : 0;
  U result = 0;
  for (U i = 0; i < 32; ++i) {
    const U bit = i < length && at + i < 32 ? a >> (at + i) & 1 : sign;
    result |= bit << i;
  }
  return result;
}

U insert(U a, U b, U at, U length) {
  at &= 255;
  length &= 255;
  for (U i = 0; i < length && at + i < 32; ++i) {
    b = (b & ~(1u << (at + i))) | (a >> i & 1) << (at + i);
  }
  return b;
}

U to_integer(float x) {
  if (std::isnan(x)) return 0;
  if (x >= 2147483648.0f) return 0x7fffffff;
  if (x <= -2147483648.0f) return 0x80000000;
  return u(static_cast<std::int64_t>(x));
}

float extremum(float a, float b, bool low) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == low ? a : b;
  return (a < b) == low ? a : b;
}

/// An instruction on words; $d $a $b $c stand for registers.
struct Operation {
  const char* text;
  U (*compute)(U a, U b, U c);
};

constexpr Operation kOperations[] = {
    {"add.u32 $d, $a, $b;", [](U a, U b, U) { return a + b; }},
    {"sub.s32 $d, $a, $b;", [](U a, U b, U) { return a - b; }},
    {"mul.lo.s32 $d, $a, $b;", [](U a, U b, U) { return a * b; }},
    {"mul.hi.u32 $d, $a, $b;", [](U a, U b, U) { return static_cast<U>(W{a} * b >> 32); }},
    {"mul.hi.s32 $d, $a, $b;", [](U a, U b, U) { return u(std::int64_t{s(a)} * s(b) >> 32); }},
    {"mad.lo.u32 $d, $a, $b, $c;", [](U a, U b, U c) { return a * b + c; }},
    {"mad.hi.s32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return u(std::int64_t{s(a)} * s(b) >> 32) + c; }},
    {"add.sat.s32 $d, $a, $b;",
     [](U a, U b, U) {
       return u(std::clamp<std::int64_t>(std::int64_t{s(a)} + s(b), INT32_MIN, INT32_MAX));
     }},
    {"div.u32 $d, $a, $b;", [](U a, U b, U) { return b == 0 ? ~0u : a / b; }},
    {"rem.u32 $d, $a, $b;", [](U a, U b, U) { return b == 0 ? ~0u : a % b; }},
    {"min.s32 $d, $a, $b;", [](U a, U b, U) { return s(a) < s(b) ? a : b; }},
    {"max.u32 $d, $a, $b;", [](U a, U b, U) { return a < b ? b : a; }},
    {"and.b32 $d, $a, $b;", [](U a, U b, U) { return a & b; }},
    {"or.b32 $d, $a, $b;", [](U a, U b, U) { return a | b; }},
    {"xor.b32 $d, $a, $b;", [](U a, U b, U) { return a ^ b; }},
    {"not.b32 $d, $a;", [](U a, U, U) { return ~a; }},
    {"cnot.b32 $d, $a;", [](U a, U, U) -> U { return a == 0 ? 1 : 0; }},
    {"shl.b32 $d, $a, $b;", [](U a, U b, U) { return b > 31 ? 0 : a << b; }},
    {"shr.u32 $d, $a, $b;", [](U a, U b, U) { return b > 31 ? 0 : a >> b; }},
    {"shr.s32 $d, $a, $b;", [](U a, U b, U) { return u(s(a) >> std::min<U>(b, 31)); }},
    {"shf.l.wrap.b32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>((W{b} << 32 | a) << (c & 31) >> 32); }},
    {"shf.r.clamp.b32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>((W{b} << 32 | a) >> std::min<U>(c, 32)); }},
    {"popc.b32 $d, $a;", [](U a, U, U) { return static_cast<U>(std::popcount(a)); }},
    {"clz.b32 $d, $a;", [](U a, U, U) { return static_cast<U>(std::countl_zero(a)); }},
    {"bfind.u32 $d, $a;", [](U a, U, U) { return 31u - static_cast<U>(std::countl_zero(a)); }},
    {"bfe.u32 $d, $a, $b, $c;", [](U a, U b, U c) { return field(a, b, c, false); }},
    {"bfe.s32 $d, $a, $b, $c;", [](U a, U b, U c) { return field(a, b, c, true); }},
    {"bfi.b32 $d, $a, $b, $c, 5;", [](U a, U b, U c) { return insert(a, b, c, 5); }},
    {"prmt.b32 $d, $a, $b, $c;", permute},
    {"lop3.b32 $d, $a, $b, $c, 0xe8;", [](U a, U b, U c) { return (a & b) | (a & c) | (b & c); }},
    {"sad.s32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return c + u(std::abs(std::int64_t{s(a)} - s(b))); }},
    {"slct.s32.s32 $d, $a, $b, $c;", [](U a, U b, U c) { return s(c) >= 0 ? a : b; }},
    {"abs.s32 $d, $a;", [](U a, U, U) { return s(a) < 0 ? 0 - a : a; }},
    {"dp4a.s32.u32 $d, $a, $b, $c;",
     [](U a, U b, U c) {
       for (int i = 0; i < 4; ++i)
         c += u(std::int64_t{static_cast<std::int8_t>(a >> (8 * i))} * (b >> (8 * i) & 0xff));
       return c;
     }},
    // Floating point on the same registers' bits.
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; add.rn.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) { return bits(f(a) + f(b)); }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; mul.rz.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) {
       volatile float x = f(a), y = f(b);
       return rounded<FE_TOWARDZERO>([&] { return x * y; });
     }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; sub.rp.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) {
       volatile float x = f(a), y = f(b);
       return rounded<FE_UPWARD>([&] { return x - y; });
     }},
    {"{ .reg .f32 x, y, z; mov.b32 x, $a; mov.b32 y, $b; mov.b32 z, $c; fma.rn.f32 x, x, y, z; "
     "mov.b32 $d, x; }",
     [](U a, U b, U c) { return bits(std::fma(f(a), f(b), f(c))); }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; div.rn.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) { return bits(f(a) / f(b)); }},
    {"{ .reg .f32 x; mov.b32 x, $a; sqrt.rn.f32 x, x; mov.b32 $d, x; }",
     [](U a, U, U) { return bits(std::sqrt(f(a))); }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; min.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) { return bits(extremum(f(a), f(b), true)); }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; max.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) { return bits(extremum(f(a), f(b), false)); }},
    {"{ .reg .f32 x; mov.b32 x, $a; cvt.rzi.s32.f32 $d, x; }",
     [](U a, U, U) { return to_integer(f(a)); }},
    {"{ .reg .f32 x; cvt.rn.f32.s32 x, $a; mov.b32 $d, x; }",
     [](U a, U, U) { return bits(static_cast<float>(s(a))); }},
    {"{ .reg .f64 x, y; cvt.rn.f64.s32 x, $a; cvt.rn.f64.u32 y, $b; mul.rn.f64 x, x, y; "
     "{ .reg .b32 h; mov.b64 {h, $d}, x; } }",
     [](U a, U b, U) {
       return static_cast<U>(std::bit_cast<W>(static_cast<double>(s(a)) * b) >> 32);
     }},
    // 64 bits.
    {"{ .reg .b64 x, y; mul.wide.u32 x, $a, $b; mul.wide.s32 y, $b, $c; sub.u64 x, x, y; "
     "shr.u64 x, x, 17; cvt.u32.u64 $d, x; }",
     [](U a, U b, U c) {
       return static_cast<U>((W{a} * b - static_cast<W>(std::int64_t{s(b)} * s(c))) >> 17);
     }},
    {"{ .reg .b16 x, y; cvt.u16.u32 x, $a; cvt.u16.u32 y, $b; mul.wide.s16 $d, x, y; }",
     [](U a, U b, U) {
       return u(std::int64_t{static_cast<std::int16_t>(a)} * static_cast<std::int16_t>(b));
     }},
    {"{ .reg .pred q; setp.lt.s32 q, $a, $b; selp.b32 $d, $c, $a, q; }",
     [](U a, U b, U c) { return s(a) < s(b) ? c : a; }},
    {"{ .reg .pred q; setp.ne.u32 q, $a, $b; @q add.u32 $d, $c, 1; @!q mov.u32 $d, $b; }",
     [](U a, U b, U c) { return a != b ? c + 1 : b; }},
};

constexpr U kEdges[] = {0,          1,          2,          31,         32,         0x7f,
                        0x80,       0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000,
                        0xbf800000, 0x00000001, 0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000,
                        0x7fc00000, 0x4f000000, 0xcf000000, 0x12345678};

}  // namespace

struct RandomProgram::Node {
  enum class Kind : std::uint8_t { operation, branch, loop };
  Kind kind = Kind::operation;
  unsigned operation = 0;
  unsigned d = 0, a = 0, b = 0, c = 0;  ///< branch: a < b; loop: a & 7 times
  std::vector<Node> body, other;
};

class RandomProgram::Maker {
 public:
  explicit Maker(W seed) : random_(seed) {}

  std::vector<Node> block(int depth, unsigned length) {
    std::vector<Node> nodes;
    for (unsigned i = 0; i < length; ++i) {
      Node node;
      node.d = random_.below(kOutputs);
      node.a = random_.below(kOutputs);
      node.b = random_.below(kOutputs);
      node.c = random_.below(kOutputs);
      node.operation = random_.below(static_cast<unsigned>(std::size(kOperations)));
      const unsigned choice = random_.below(10);
      if (depth < 3 && choice < 2) {
        node.kind = choice == 0 ? Node::Kind::branch : Node::Kind::loop;
        node.body = block(depth + 1, 2 + random_.below(5));
        if (choice == 0 && random_.below(2) == 0) node.other = block(depth + 1, 3);
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  static void print(const std::vector<Node>& nodes, std::string& text, unsigned& labels) {
    const auto reg = [](unsigned index) { return "%r" + std::to_string(index); };
    for (const Node& node : nodes) {
      const std::string label = "L" + std::to_string(labels);
      switch (node.kind) {
        case Node::Kind::operation:
          for (const char* c = kOperations[node.operation].text; *c != 0; ++c) {
            if (*c != '$') {
              text += *c;
              continue;
            }
            ++c;
            text += reg(*c == 'd' ? node.d : *c == 'a' ? node.a : *c == 'b' ? node.b : node.c);
          }
          text += "\n";
          break;
        case Node::Kind::branch:
          ++labels;
          text += "{ .reg .pred q; setp.ge.u32 q, " + reg(node.a) + ", " + reg(node.b) +
                  "; @q bra " + label + "_else; }\n";
          print(node.body, text, labels);
          text += "bra " + label + "_end;\n" + label + "_else:\n";
          print(node.other, text, labels);
          text += label + "_end:\n";
          break;
        case Node::Kind::loop: {
          ++labels;
          const std::string counter = "%c_" + label, done = "%p_" + label;
          text += ".reg .b32 " + counter + "; .reg .pred " + done + ";\nand.b32 " + counter + ", " +
                  reg(node.a) + ", 7;\n" + label + ":\nsetp.eq.u32 " + done + ", " + counter +
                  ", 0;\n@" + done + " bra " + label + "_end;\nsub.u32 " + counter + ", " +
                  counter + ", 1;\n";
          print(node.body, text, labels);
          text += "bra " + label + ";\n" + label + "_end:\n";
          break;
        }
      }
    }
  }

  static void run(const std::vector<Node>& nodes, std::array<U, kOutputs>& r) {
    for (const Node& node : nodes) {
      switch (node.kind) {
        case Node::Kind::operation:
          r[node.d] = kOperations[node.operation].compute(r[node.a], r[node.b], r[node.c]);
          break;
        case Node::Kind::branch:
          run(r[node.a] < r[node.b] ? node.body : node.other, r);
          break;
        case Node::Kind::loop:
          for (U count = r[node.a] & 7; count != 0; --count) run(node.body, r);
          break;
      }
    }
  }

 private:
  Random random_;
};

RandomProgram::RandomProgram(std::uint64_t seed) : body_(Maker(seed).block(0, 24)) {}
RandomProgram::~RandomProgram() = default;

std::string RandomProgram::ptx() const {
  std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry random_program(.param .u64 in, .param .u64 out) {\n"
      ".reg .b32 %r<16>; .reg .b32 %t, %n; .reg .b64 %at, %to, %by;\n"
      "mov.u32 %t, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmul.lo.u32 %t, %t, %n;\nmov.u32 %n, %tid.x;\n"
      "add.u32 %t, %t, %n;\nld.param.u64 %at, [in];\nld.param.u64 %to, [out];\n"
      "mul.wide.u32 %by, %t, 32;\nadd.s64 %at, %at, %by;\nmul.wide.u32 %by, %t, 64;\n"
      "add.s64 %to, %to, %by;\n";
  for (unsigned i = 0; i < kInputs; ++i) {
    const std::string n = std::to_string(i);
    text += "ld.global.u32 %r" + n + ", [%at+" + std::to_string(4 * i) + "];\n";
    text += "xor.b32 %r" + std::to_string(i + 8) + ", %r" + n + ", 0x5a5a5a5a;\n";
  }
  unsigned labels = 0;
  Maker::print(body_, text, labels);
  for (unsigned i = 0; i < kOutputs; ++i)
    text += "st.global.u32 [%to+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

std::vector<U> RandomProgram::expected(const std::vector<U>& input, unsigned threads) const {
  std::vector<U> result;
  for (unsigned t = 0; t < threads; ++t) {
    std::array<U, kOutputs> r{};
    for (unsigned i = 0; i < kInputs; ++i) {
      r[i] = input[t * kInputs + i];
      r[i + 8] = r[i] ^ 0x5a5a5a5a;
    }
    Maker::run(body_, r);
    result.insert(result.end(), r.begin(), r.end());
  }
  return result;
}

std::vector<U> RandomProgram::input(std::uint64_t seed, unsigned threads) {
  Random random(seed ^ 0x1234567);
  std::vector<U> values(std::size_t{threads} * kInputs);
  for (U& value : values) {
    value = random.below(2) == 0 ? kEdges[random.below(static_cast<unsigned>(std::size(kEdges)))]
                                 : static_cast<U>(random.next());
  }
  return values;
}

}  // namespace kernwright::sim
