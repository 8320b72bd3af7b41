// The instructions on registers alone.
#include "sim/programs/program_operations.h"

#include "sim/programs/program_arithmetic.h"

#include <cstring>
#include <functional>
#include <iterator>

namespace kernwright::sim {
namespace {

using namespace arithmetic;

#define KW_F32_1(instruction) "{ .reg .f32 x; mov.b32 x, $a; " instruction " x, x; mov.b32 $d, x; }"
#define KW_F32_2(instruction) \
  "{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; " instruction " x, x, y; mov.b32 $d, x; }"
#define KW_F32_3(instruction)                                                      \
  "{ .reg .f32 x, y, z; mov.b32 x, $a; mov.b32 y, $b; mov.b32 z, $c; " instruction \
  " x, x, y, z; mov.b32 $d, x; }"
// Of 64 bits: the manual leaves open whose NaN comes out, so one is put there.
#define KW_ONE_NAN "setp.nan.f64 q, x, x; @q mov.b64 x, 0x7fffffffffffffff; mov.b64 $D, x; }"
#define KW_F64_1(instruction) \
  "{ .reg .f64 x; .reg .pred q; mov.b64 x, $A; " instruction " x, x; " KW_ONE_NAN
#define KW_F64_2(instruction)                                                  \
  "{ .reg .f64 x, y; .reg .pred q; mov.b64 x, $A; mov.b64 y, $B; " instruction \
  " x, x, y; " KW_ONE_NAN
#define KW_F64_3(instruction)                                                                    \
  "{ .reg .f64 x, y, z; .reg .pred q; mov.b64 x, $A; mov.b64 y, $B; mov.b64 z, $C; " instruction \
  " x, x, y, z; " KW_ONE_NAN
// GPUs take the whole of a position in 64 bits, the manual says its lowest byte.
#define KW_BYTES_OF_B_C "{ .reg .b32 x, y; and.b32 x, $b, 255; and.b32 y, $c, 255; "
#define KW_ONE_NAN_32 "setp.nan.f32 q, y, y; @q mov.b32 y, 0x7fffffff; mov.b32 $d, y; }"
#define KW_F16_2(instruction)                                            \
  "{ .reg .b16 x, y; cvt.u16.u32 x, $a; cvt.u16.u32 y, $b; " instruction \
  " x, x, y; "                                                           \
  "cvt.u32.u16 $d, x; }"

constexpr Operation kNarrow[] = {
    {"add.u32 $d, $a, $b;", [](U a, U b, U) { return a + b; }},
    {"add.u32 $d, $a, $i;", [](U a, U, U i) { return a + i; }},
    {"sub.s32 $d, $a, $b;", [](U a, U b, U) { return a - b; }},
    {"mul.lo.s32 $d, $a, $b;", [](U a, U b, U) { return a * b; }},
    {"mul.hi.u32 $d, $a, $b;", [](U a, U b, U) { return static_cast<U>(W{a} * b >> 32); }},
    {"mul.hi.s32 $d, $a, $b;", [](U a, U b, U) { return u(L{s(a)} * s(b) >> 32); }},
    {"mad.lo.u32 $d, $a, $b, $c;", [](U a, U b, U c) { return a * b + c; }},
    {"mad.lo.u32 $d, $a, $i, $b;", [](U a, U b, U i) { return a * i + b; }},
    {"mad.hi.s32 $d, $a, $b, $c;", [](U a, U b, U c) { return u(L{s(a)} * s(b) >> 32) + c; }},
    {"mul24.lo.u32 $d, $a, $b;",
     [](U a, U b, U) { return (a & 0xffffff) * (b & 0xffffff); }},
    {"add.sat.s32 $d, $a, $b;",
     [](U a, U b, U) { return u(std::clamp<L>(L{s(a)} + s(b), INT32_MIN, INT32_MAX)); }},
    {"sub.sat.s32 $d, $a, $b;",
     [](U a, U b, U) { return u(std::clamp<L>(L{s(a)} - s(b), INT32_MIN, INT32_MAX)); }},
    {"div.u32 $d, $a, $b;", [](U a, U b, U) { return b == 0 ? ~0u : a / b; }},
    {"rem.u32 $d, $a, $b;", [](U a, U b, U) { return b == 0 ? ~0u : a % b; }},
    {"{ .reg .b32 y; or.b32 y, $b, 1; div.s32 $d, $a, y; }",
     [](U a, U b, U) { return u(L{s(a)} / s(b | 1)); }},
    {"{ .reg .b32 y; or.b32 y, $b, 1; rem.s32 $d, $a, y; }",
     [](U a, U b, U) { return u(L{s(a)} % s(b | 1)); }},
    {"min.s32 $d, $a, $b;", [](U a, U b, U) { return s(a) < s(b) ? a : b; }},
    {"max.u32 $d, $a, $b;", [](U a, U b, U) { return a < b ? b : a; }},
    {"and.b32 $d, $a, $b;", [](U a, U b, U) { return a & b; }},
    {"or.b32 $d, $a, $b;", [](U a, U b, U) { return a | b; }},
    {"xor.b32 $d, $a, $i;", [](U a, U, U i) { return a ^ i; }},
    {"not.b32 $d, $a;", [](U a, U, U) { return ~a; }},
    {"cnot.b32 $d, $a;", [](U a, U, U) -> U { return a == 0 ? 1 : 0; }},
    {"shl.b32 $d, $a, $b;", [](U a, U b, U) { return b > 31 ? 0 : a << b; }},
    {"shl.b32 $d, $a, $j;", [](U a, U, U j) { return j > 31 ? 0 : a << j; }},
    {"shr.u32 $d, $a, $b;", [](U a, U b, U) { return b > 31 ? 0 : a >> b; }},
    {"shr.s32 $d, $a, $b;", [](U a, U b, U) { return u(s(a) >> std::min<U>(b, 31)); }},
    {"shf.l.wrap.b32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>((W{b} << 32 | a) << (c & 31) >> 32); }},
    {"shf.r.clamp.b32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>((W{b} << 32 | a) >> std::min<U>(c, 32)); }},
    {"popc.b32 $d, $a;", [](U a, U, U) { return static_cast<U>(std::popcount(a)); }},
    {"clz.b32 $d, $a;", [](U a, U, U) { return static_cast<U>(std::countl_zero(a)); }},
    {"brev.b32 $d, $a;", [](U a, U, U) { return reversed(a); }},
    {"bfind.u32 $d, $a;", [](U a, U, U) { return 31u - static_cast<U>(std::countl_zero(a)); }},
    {"bfind.s32 $d, $a;",
     [](U a, U, U) { return 31u - static_cast<U>(std::countl_zero(s(a) < 0 ? ~a : a)); }},
    {"bfe.u32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>(field(a, b, c, false)); }},
    {"bfe.s32 $d, $a, $b, $c;",
     [](U a, U b, U c) { return static_cast<U>(field(a, b, c, true)); }},
    {"bfe.s32 $d, $a, 3, $j;", [](U a, U, U j) { return static_cast<U>(field(a, 3, j, true)); }},
    {"bfi.b32 $d, $a, $b, $c, 5;",
     [](U a, U b, U c) { return static_cast<U>(insert(a, b, c, 5)); }},
    {"prmt.b32 $d, $a, $b, $c;", permute},
    {"prmt.b32 $d, $a, $b, $i;", permute},
    {"lop3.b32 $d, $a, $b, $a, 0xe8;", [](U a, U b, U) { return lop3(a, b, a, 0xe8); }},
    {"lop3.b32 $d, $a, $b, 0x0f0f3355, $j;",
     [](U a, U b, U j) { return lop3(a, b, 0x0f0f3355, j); }},
    {"sad.s32 $d, $a, $b, $c;", [](U a, U b, U c) { return c + u(std::abs(L{s(a)} - s(b))); }},
    {"slct.s32.s32 $d, $a, $b, $c;", [](U a, U b, U c) { return s(c) >= 0 ? a : b; }},
    {"abs.s32 $d, $a;", [](U a, U, U) { return s(a) < 0 ? 0 - a : a; }},
    {"neg.s32 $d, $a;", [](U a, U, U) { return 0 - a; }},
    {"dp4a.s32.u32 $d, $a, $b, $c;",
     [](U a, U b, U c) {
       for (int i = 0; i < 4; ++i)
         c += u(L{static_cast<std::int8_t>(a >> (8 * i))} * (b >> (8 * i) & 0xff));
       return c;
     }},
    {"dp2a.lo.s32.s32 $d, $a, $b, $c;",
     [](U a, U b, U c) {
       for (int i = 0; i < 2; ++i)
         c += u(L{static_cast<std::int16_t>(a >> (16 * i))} *
                static_cast<std::int8_t>(b >> (8 * i)));
       return c;
     }},
    {"{ .reg .b32 x; add.cc.u32 x, $a, $b; addc.u32 $d, $c, 0; }",
     [](U a, U b, U c) { return c + static_cast<U>((W{a} + b) >> 32); }},
    {"{ .reg .b32 x; sub.cc.u32 x, $a, $b; subc.u32 $d, $c, 5; }",
     [](U a, U b, U c) { return c - 5 - (a < b ? 1u : 0u); }},
    {"{ .reg .b16 x, y; cvt.u16.u32 x, $a; cvt.u16.u32 y, $b; mul.wide.s16 $d, x, y; }",
     [](U a, U b, U) {
       return u(L{static_cast<std::int16_t>(a)} * static_cast<std::int16_t>(b));
     }},
    {"{ .reg .b16 x, y; cvt.u16.u32 x, $a; cvt.u16.u32 y, $b; add.s16 x, x, y; shr.s16 x, x, 3; "
     "cvt.s32.s16 $d, x; }",
     [](U a, U b, U) { return u(static_cast<std::int16_t>(a + b) >> 3); }},
    {"cvt.s32.s8 $d, $a;", [](U a, U, U) { return u(static_cast<std::int8_t>(a)); }},
    {"cvt.sat.u8.s32 $d, $a;", [](U a, U, U) { return u(std::clamp<L>(s(a), 0, 255)); }},
    {"cvt.sat.s16.u32 $d, $a;", [](U a, U, U) { return std::min<U>(a, 0x7fff); }},
    // Predicates.
    {"{ .reg .pred q; setp.lt.s32 q, $a, $b; selp.b32 $d, $c, $a, q; }",
     [](U a, U b, U c) { return s(a) < s(b) ? c : a; }},
    {"{ .reg .pred q; setp.ne.u32 q, $a, $b; @q add.u32 $d, $c, 1; @!q mov.u32 $d, $b; }",
     [](U a, U b, U c) { return a != b ? c + 1 : b; }},
    {"{ .reg .b32 x; .reg .pred p, q, r; setp.ge.s32 p, $c, 0; setp.lt.and.u32 q|r, $a, $b, p; "
     "selp.b32 x, 5, $a, q; @r add.u32 x, x, $b; mov.b32 $d, x; }",
     [](U a, U b, U c) {
       const bool p = s(c) >= 0, less = a < b;
       return (less && p ? 5 : a) + (!less && p ? b : 0);
     }},
    {"{ .reg .pred p, q; setp.hi.u32 p, $a, $b; setp.le.xor.s32 q, $b, $c, !p; "
     "not.pred p, q; selp.b32 $d, $b, $c, p; }",
     [](U a, U b, U c) {
       const bool q = (s(b) <= s(c)) != !(a > b);
       return !q ? b : c;
     }},
    {"set.lt.u32.s32 $d, $a, $b;", [](U a, U b, U) { return s(a) < s(b) ? ~0u : 0u; }},
    {"{ .reg .f32 x, y; .reg .pred q; mov.b32 x, $a; mov.b32 y, $b; setp.ltu.f32 q, x, y; "
     "selp.b32 $d, $c, $a, q; }",
     [](U a, U b, U c) { return !(f(a) >= f(b)) ? c : a; }},
    {"{ .reg .f32 x; mov.b32 x, $a; set.gt.f32.f32 x, x, 0f3F800000; mov.b32 $d, x; }",
     [](U a, U, U) { return f(a) > 1 ? 0x3f800000u : 0u; }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; copysign.f32 x, x, y; mov.b32 $d, x; }",
     [](U a, U b, U) { return (b & 0x7fffffff) | (a & 0x80000000); }},
    // Floating point of 32 bits.
    {KW_F32_2("add.rn.f32"), [](U a, U b, U) { return bits(f(a) + f(b)); }},
    {KW_F32_2("add.rz.f32"),
     [](U a, U b, U) { return rounded<FE_TOWARDZERO>(f(a), f(b), std::plus()); }},
    {KW_F32_2("sub.rp.f32"),
     [](U a, U b, U) { return rounded<FE_UPWARD>(f(a), f(b), std::minus()); }},
    {KW_F32_2("mul.rn.f32"), [](U a, U b, U) { return bits(f(a) * f(b)); }},
    {KW_F32_2("mul.rz.f32"),
     [](U a, U b, U) { return rounded<FE_TOWARDZERO>(f(a), f(b), std::multiplies()); }},
    {KW_F32_2("mul.rm.f32"),
     [](U a, U b, U) { return rounded<FE_DOWNWARD>(f(a), f(b), std::multiplies()); }},
    {KW_F32_3("fma.rn.f32"), [](U a, U b, U c) { return bits(std::fma(f(a), f(b), f(c))); }},
    {KW_F32_2("div.rn.f32"), [](U a, U b, U) { return bits(f(a) / f(b)); }},
    {KW_F32_1("rcp.rn.f32"), [](U a, U, U) { return bits(1 / f(a)); }},
    {KW_F32_1("sqrt.rn.f32"), [](U a, U, U) { return bits(std::sqrt(f(a))); }},
    {KW_F32_2("min.f32"), [](U a, U b, U) { return bits(extremum(f(a), f(b), true)); }},
    {KW_F32_2("max.f32"), [](U a, U b, U) { return bits(extremum(f(a), f(b), false)); }},
    {KW_F32_1("cvt.rni.f32.f32"), [](U a, U, U) { return bits(std::nearbyint(f(a))); }},
    {KW_F32_1("cvt.rmi.f32.f32"), [](U a, U, U) { return bits(std::floor(f(a))); }},
    {"{ .reg .f32 x; mov.b32 x, $a; cvt.rzi.s32.f32 $d, x; }",
     [](U a, U, U) { return u(to_integer<S>(f(a), 0)); }},
    {"{ .reg .f32 x; mov.b32 x, $a; cvt.rni.u32.f32 $d, x; }",
     [](U a, U, U) { return to_integer<U>(std::nearbyint(double{f(a)}), 0); }},
    {"{ .reg .f32 x; cvt.rn.f32.s32 x, $a; mov.b32 $d, x; }",
     [](U a, U, U) { return bits(static_cast<float>(s(a))); }},
    {"{ .reg .f32 x; cvt.rz.f32.u32 x, $a; mov.b32 $d, x; }",
     [](U a, U, U) {
       volatile U x = a;
       return rounded<FE_TOWARDZERO>([&] { return static_cast<float>(U{x}); });
     }},
    // Floating point of 16 bits.
    {"add.rn.f16x2 $d, $a, $b;",
     [](U a, U b, U) {
       return halves(a, b, 0, [](double x, double y, double) { return x + y; });
     }},
    {"sub.rn.f16x2 $d, $a, $b;",
     [](U a, U b, U) {
       return halves(a, b, 0, [](double x, double y, double) { return x - y; });
     }},
    {"mul.rn.f16x2 $d, $a, $b;",
     [](U a, U b, U) {
       return halves(a, b, 0, [](double x, double y, double) { return x * y; });
     }},
    {"fma.rn.f16x2 $d, $a, $b, $c;",
     [](U a, U b, U c) {
       return halves(a, b, c, [](double x, double y, double z) { return std::fma(x, y, z); });
     }},
    {"min.f16x2 $d, $a, $b;",
     [](U a, U b, U) {
       return halves(a, b, 0, [](double x, double y, double) { return extremum(x, y, true); });
     }},
    {KW_F16_2("add.rn.f16"), [](U a, U b, U) { return to_half(half(a) + half(b)); }},
    {KW_F16_2("max.f16"),
     [](U a, U b, U) { return to_half(extremum(half(a), half(b), false)); }},
    {"{ .reg .b16 x, y; .reg .pred q; cvt.u16.u32 x, $a; cvt.u16.u32 y, $b; setp.gt.f16 q, x, y; "
     "selp.b32 $d, $b, $c, q; }",
     [](U a, U b, U c) { return half(a & 0xffff) > half(b & 0xffff) ? b : c; }},
    {"{ .reg .b16 x; .reg .f32 y; cvt.u16.u32 x, $a; cvt.f32.f16 y, x; mov.b32 $d, y; }",
     [](U a, U, U) { return bits(static_cast<float>(half(a & 0xffff))); }},
    // ptxas 13.0 takes the half alone, widened and read as f32, for the number that it came from.
    {"{ .reg .b16 x; .reg .f32 y; mov.b32 y, $a; cvt.rn.f16.f32 x, y; cvt.u32.u16 $d, x; "
     "not.b32 $d, $d; }",
     [](U a, U, U) { return ~U{to_half(f(a))}; }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; cvt.rn.f16x2.f32 $d, x, y; }",
     [](U a, U b, U) { return to_half(f(a)) << 16 | to_half(f(b)); }},
    {"{ .reg .b16 x; cvt.u16.u32 x, $a; cvt.rzi.s32.f16 $d, x; }",
     [](U a, U, U) { return u(to_integer<S>(half(a & 0xffff), 0)); }},
    {"{ .reg .b16 x; cvt.rn.f16.s32 x, $a; cvt.u32.u16 $d, x; }",
     [](U a, U, U) { return to_half(s(a)); }},
};

constexpr Operation kWide[] = {
    {"add.u64 $D, $A, $B;", nullptr, [](W a, W b, W) { return a + b; }},
    {"sub.s64 $D, $A, $B;", nullptr, [](W a, W b, W) { return a - b; }},
    {"mul.lo.u64 $D, $A, $B;", nullptr, [](W a, W b, W) { return a * b; }},
    {"mul.hi.u64 $D, $A, $B;", nullptr,
     [](W a, W b, W) {
       __extension__ using Wide = unsigned __int128;
       return static_cast<W>(Wide{a} * b >> 64);
     }},
    {"mul.wide.u32 $D, $a, $b;", nullptr, [](W a, W b, W) { return a * b; }},
    {"mad.wide.s32 $D, $a, $b, $C;", nullptr,
     [](W a, W b, W c) { return c + w(L{static_cast<S>(a)} * static_cast<S>(b)); }},
    {"xor.b64 $D, $A, $B;", nullptr, [](W a, W b, W) { return a ^ b; }},
    {"and.b64 $D, $A, $B;", nullptr, [](W a, W b, W) { return a & b; }},
    {"shl.b64 $D, $A, $b;", nullptr, [](W a, W b, W) { return b > 63 ? 0 : a << b; }},
    {"shr.s64 $D, $A, $b;", nullptr, [](W a, W b, W) { return w(l(a) >> std::min<W>(b, 63)); }},
    {"min.s64 $D, $A, $B;", nullptr, [](W a, W b, W) { return l(a) < l(b) ? a : b; }},
    {"max.u64 $D, $A, $B;", nullptr, [](W a, W b, W) { return std::max(a, b); }},
    {KW_BYTES_OF_B_C "bfe.u64 $D, $A, x, y; }", nullptr,
     [](W a, W b, W c) { return field(a, b, c, false, 64); }},
    {KW_BYTES_OF_B_C "bfe.s64 $D, $A, x, y; }", nullptr,
     [](W a, W b, W c) { return field(a, b, c, true, 64); }},
    {KW_BYTES_OF_B_C "bfi.b64 $D, $A, $B, y, 23; }", nullptr,
     [](W a, W b, W c) { return insert(a, b, c, 23, 64); }},
    {"popc.b64 $d, $A;", nullptr, [](W a, W, W) { return static_cast<W>(std::popcount(a)); }},
    {"clz.b64 $d, $A;", nullptr, [](W a, W, W) { return static_cast<W>(std::countl_zero(a)); }},
    {"{ .reg .b64 y; or.b64 y, $B, 1; div.u64 $D, $A, y; }", nullptr,
     [](W a, W b, W) { return a / (b | 1); }},
    {"{ .reg .b64 y; or.b64 y, $B, 4; rem.u64 $D, $A, y; }", nullptr,
     [](W a, W b, W) { return a % (b | 4); }},
    {"mov.b64 $D, {$a, $b};", nullptr, [](W a, W b, W) { return a | b << 32; }},
    {"{ .reg .b32 x; mov.b64 {x, $d}, $A; }", nullptr, [](W a, W, W) { return a >> 32; }},
    {"cvt.u32.u64 $d, $A;", nullptr, [](W a, W, W) { return a & 0xffffffff; }},
    {"cvt.s64.s32 $D, $a;", nullptr, [](W a, W, W) { return w(static_cast<S>(a)); }},
    {"{ .reg .pred q; setp.lt.s64 q, $A, $B; selp.b64 $D, $B, $C, q; }", nullptr,
     [](W a, W b, W c) { return l(a) < l(b) ? b : c; }},
    {KW_F64_2("add.rn.f64"), nullptr, [](W a, W b, W) { return bits(g(a) + g(b)); }},
    {KW_F64_2("sub.rm.f64"), nullptr,
     [](W a, W b, W) { return rounded<FE_DOWNWARD>(g(a), g(b), std::minus()); }},
    {KW_F64_2("mul.rn.f64"), nullptr, [](W a, W b, W) { return bits(g(a) * g(b)); }},
    {KW_F64_2("mul.rp.f64"), nullptr,
     [](W a, W b, W) { return rounded<FE_UPWARD>(g(a), g(b), std::multiplies()); }},
    {KW_F64_3("fma.rn.f64"), nullptr,
     [](W a, W b, W c) { return bits(std::fma(g(a), g(b), g(c))); }},
    {KW_F64_2("div.rn.f64"), nullptr, [](W a, W b, W) { return bits(g(a) / g(b)); }},
    {KW_F64_1("sqrt.rn.f64"), nullptr, [](W a, W, W) { return bits(std::sqrt(g(a))); }},
    {KW_F64_2("min.f64"), nullptr, [](W a, W b, W) { return bits(extremum(g(a), g(b), true)); }},
    {KW_F64_2("max.f64"), nullptr, [](W a, W b, W) { return bits(extremum(g(a), g(b), false)); }},
    {"{ .reg .f64 x, y; .reg .pred q; mov.b64 x, $A; mov.b64 y, $B; setp.le.f64 q, x, y; "
     "selp.b32 $d, $c, 9, q; }",
     nullptr, [](W a, W b, W c) { return g(a) <= g(b) ? c : 9; }},
    {"{ .reg .f32 y; .reg .f64 x; .reg .pred q; mov.b32 y, $a; cvt.f64.f32 x, y; " KW_ONE_NAN,
     nullptr, [](W a, W, W) { return bits(double{f(a)}); }},
    {"{ .reg .f32 y; .reg .f64 x; .reg .pred q; mov.b64 x, $A; cvt.rn.f32.f64 y, x; " KW_ONE_NAN_32,
     nullptr, [](W a, W, W) { return W{bits(static_cast<float>(g(a)))}; }},
    {"{ .reg .f32 y; .reg .f64 x; .reg .pred q; mov.b64 x, $A; cvt.rz.f32.f64 y, x; " KW_ONE_NAN_32,
     nullptr,
     [](W a, W, W) {
       volatile double x = g(a);
       return W{rounded<FE_TOWARDZERO>([&] { return static_cast<float>(double{x}); })};
     }},
    {"{ .reg .f64 x; mov.b64 x, $A; cvt.rzi.s32.f64 $d, x; }", nullptr,
     [](W a, W, W) { return W{u(to_integer<S>(g(a), INT32_MIN))}; }},
    {"{ .reg .f64 x; mov.b64 x, $A; cvt.rzi.s64.f64 $D, x; }", nullptr,
     [](W a, W, W) { return w(to_integer<L>(g(a), INT64_MIN)); }},
    {"{ .reg .f64 x; cvt.rn.f64.s64 x, $A; mov.b64 $D, x; }", nullptr,
     [](W a, W, W) { return bits(static_cast<double>(l(a))); }},
    {"{ .reg .f64 x; cvt.rn.f64.u32 x, $a; mov.b64 $D, x; }", nullptr,
     [](W a, W, W) { return bits(static_cast<double>(a)); }},
};

}  // namespace

bool Operation::is_extremum() const {
  const std::string_view words = text;
  return words.find("min.f") != words.npos || words.find("max.f") != words.npos;
}

bool Operation::has(char letter) const {
  const char mark[] = {'$', letter, 0};
  return std::strstr(text, mark) != nullptr;
}

std::span<const Operation> narrow_operations() { return kNarrow; }
std::span<const Operation> wide_operations() { return kWide; }

const Operation& operation(unsigned number) {
  return number < std::size(kNarrow) ? kNarrow[number] : kWide[number - std::size(kNarrow)];
}
unsigned operation_count() { return std::size(kNarrow) + std::size(kWide); }

}  // namespace kernwright::sim
