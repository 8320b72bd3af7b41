// The instructions that lanes do together, atomic ones, and the conditions of branches.
#include "sim/programs/program_arithmetic.h"
#include "sim/programs/program_operations.h"

namespace kernwright::sim {
namespace {

using namespace arithmetic;

/// The lanes of `members`, one by one.
template <typename F>
void each(U members, F visit) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((members >> lane & 1) != 0) visit(lane);
  }
}

U members_where(U members, const U* a, const U* b) {
  U result = 0;
  each(members, [&](unsigned i) { result |= (a[i] < b[i] ? 1u : 0u) << i; });
  return result;
}

/// shfl.sync as the manual's pseudocode says it: `from` gives the source lane and whether it is in
/// range.
struct Source {
  int lane;
  bool in_range;
};
template <typename F>
void shuffle(const U* a, const U* b, U c, U* d, F from) {
  for (int lane = 0; lane < 32; ++lane) {
    const int at = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c & 31);
    const int segment = static_cast<int>(c >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment);
    const Source source = from(lane, at, last, segment);
    const U value = a[source.in_range ? source.lane : lane];
    d[lane] = source.in_range ? value : value ^ 0xff;
  }
}

#define KW_SHUFFLE(mode) \
  "{ .reg .pred q; shfl.sync." mode ".b32 $d|q, $a, $b, $s, $m; @!q xor.b32 $d, $d, 0xff; }"

constexpr WarpOperation kWarp[] = {
    {KW_SHUFFLE("up"),
     [](const U* a, const U* b, U c, U, U* d) {
       shuffle(a, b, c, d, [](int lane, int at, int last, int) {
         return Source{lane - at, lane - at >= last};
       });
     },
     true},
    {KW_SHUFFLE("down"),
     [](const U* a, const U* b, U c, U, U* d) {
       shuffle(a, b, c, d, [](int lane, int at, int last, int) {
         return Source{lane + at, lane + at <= last};
       });
     },
     true},
    {KW_SHUFFLE("bfly"),
     [](const U* a, const U* b, U c, U, U* d) {
       shuffle(a, b, c, d, [](int lane, int at, int last, int) {
         return Source{lane ^ at, (lane ^ at) <= last};
       });
     },
     true},
    {KW_SHUFFLE("idx"),
     [](const U* a, const U* b, U c, U, U* d) {
       shuffle(a, b, c, d, [](int lane, int at, int last, int segment) {
         const int from = (lane & segment) | (at & ~segment & 31);
         return Source{from, from <= last};
       });
     },
     true},
    {"{ .reg .pred q; setp.lt.u32 q, $a, $b; vote.sync.ballot.b32 $d, q, $m; }",
     [](const U* a, const U* b, U, U members, U* d) {
       const U ballot = members_where(members, a, b);
       each(members, [&](unsigned i) { d[i] = ballot; });
     }},
    {"{ .reg .pred q; setp.lt.u32 q, $a, $b; vote.sync.any.pred q, !q, $m; selp.b32 $d, $a, 77, q; "
     "}",
     [](const U* a, const U* b, U, U members, U* d) {
       const bool any = members_where(members, a, b) != members;
       each(members, [&](unsigned i) { d[i] = any ? a[i] : 77; });
     }},
    {"{ .reg .pred q; setp.lt.u32 q, $a, $b; vote.sync.all.pred q, q, $m; selp.b32 $d, 3, $b, q; }",
     [](const U* a, const U* b, U, U members, U* d) {
       const bool all = members_where(members, a, b) == members;
       each(members, [&](unsigned i) { d[i] = all ? 3 : b[i]; });
     }},
    {"{ .reg .pred q; setp.lt.u32 q, $a, $b; vote.sync.uni.pred q, q, $m; selp.b32 $d, $b, $a, q; "
     "}",
     [](const U* a, const U* b, U, U members, U* d) {
       const U ballot = members_where(members, a, b);
       const bool uni = ballot == members || ballot == 0;
       each(members, [&](unsigned i) { d[i] = uni ? b[i] : a[i]; });
     }},
    {"{ .reg .b32 x; and.b32 x, $a, 5; match.any.sync.b32 $d, x, $m; }",
     [](const U* a, const U*, U, U members, U* d) {
       each(members, [&](unsigned i) {
         U same = 0;
         each(members, [&](unsigned j) { same |= ((a[i] & 5) == (a[j] & 5) ? 1u : 0u) << j; });
         d[i] = same;
       });
     }},
    {"{ .reg .b32 x; .reg .pred q; shr.u32 x, $a, 30; match.all.sync.b32 $d|q, x, $m; "
     "@!q add.u32 $d, $d, 6; }",
     [](const U* a, const U*, U, U members, U* d) {
       bool same = true;
       each(members, [&](unsigned i) {
         each(members, [&](unsigned j) { same = same && a[i] >> 30 == a[j] >> 30; });
       });
       each(members, [&](unsigned i) { d[i] = same ? members : 6; });
     }},
    {"redux.sync.add.u32 $d, $a, $m;",
     [](const U* a, const U*, U, U members, U* d) {
       U sum = 0;
       each(members, [&](unsigned i) { sum += a[i]; });
       each(members, [&](unsigned i) { d[i] = sum; });
     }},
    {"redux.sync.min.s32 $d, $a, $m;",
     [](const U* a, const U*, U, U members, U* d) {
       S least = INT32_MAX;
       each(members, [&](unsigned i) { least = std::min(least, s(a[i])); });
       each(members, [&](unsigned i) { d[i] = u(least); });
     }},
    {"redux.sync.max.u32 $d, $a, $m;",
     [](const U* a, const U*, U, U members, U* d) {
       U most = 0;
       each(members, [&](unsigned i) { most = std::max(most, a[i]); });
       each(members, [&](unsigned i) { d[i] = most; });
     }},
    {"redux.sync.xor.b32 $d, $a, $m;",
     [](const U* a, const U*, U, U members, U* d) {
       U all = 0;
       each(members, [&](unsigned i) { all ^= a[i]; });
       each(members, [&](unsigned i) { d[i] = all; });
     }},
    {"redux.sync.and.b32 $d, $b, $m;",
     [](const U*, const U* b, U, U members, U* d) {
       U all = ~0u;
       each(members, [&](unsigned i) { all &= b[i]; });
       each(members, [&](unsigned i) { d[i] = all; });
     }},
};

// $o is shared or global. Numbers are small integers: their sums do not depend on the order.
constexpr AtomicOperation kAtomic[] = {
    {"red.$o.add.u32 [$p], $a;", [](W slot, W a) -> W { return static_cast<U>(slot + a); }},
    {"atom.$o.min.s32 %old, [$p], $a;",
     [](W slot, W a) { return s(static_cast<U>(a)) < s(static_cast<U>(slot)) ? a : slot; }},
    {"atom.$o.max.u32 %old, [$p], $a;", [](W slot, W a) { return std::max(slot, a); }},
    {"red.$o.and.b32 [$p], $a;", [](W slot, W a) { return slot & a; }},
    {"red.$o.or.b32 [$p], $a;", [](W slot, W a) { return slot | a; }},
    {"atom.$o.xor.b32 %old, [$p], $a;", [](W slot, W a) { return slot ^ a; }},
    {"atom.$o.inc.u32 %old, [$p], 1000;",
     [](W slot, W) -> W { return slot >= 1000 ? 0 : slot + 1; }},
    {"{ .reg .b32 n; .reg .f32 x; and.b32 n, $a, 7; cvt.rn.f32.u32 x, n; red.$o.add.f32 [$p], x; }",
     [](W slot, W a) -> W { return bits(f(slot) + static_cast<float>(a & 7)); }},
    {"red.$o.add.u64 [$p], $A;", [](W slot, W a) { return slot + a; }, true},
    {"atom.$o.max.s64 %old64, [$p], $A;", [](W slot, W a) { return l(a) > l(slot) ? a : slot; },
     true},
    {"red.$o.min.u64 [$p], $A;", [](W slot, W a) { return std::min(slot, a); }, true},
    {"atom.$o.xor.b64 %old64, [$p], $A;", [](W slot, W a) { return slot ^ a; }, true},
};

constexpr Condition kConditions[] = {
    {"setp.lt.u32 q, $a, $b;", [](U a, U b) { return a < b; }},
    {"setp.ge.s32 q, $a, $b;", [](U a, U b) { return s(a) >= s(b); }},
    {"{ .reg .b32 x; and.b32 x, $a, 1; setp.eq.u32 q, x, 0; }",
     [](U a, U) { return (a & 1) == 0; }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; setp.lt.f32 q, x, y; }",
     [](U a, U b) { return f(a) < f(b); }},
    {"{ .reg .f32 x, y; mov.b32 x, $a; mov.b32 y, $b; setp.geu.f32 q, x, y; }",
     [](U a, U b) { return !(f(a) < f(b)); }},
};

}  // namespace

std::span<const WarpOperation> warp_operations() { return kWarp; }
std::span<const AtomicOperation> atomic_operations() { return kAtomic; }
std::span<const Condition> conditions() { return kConditions; }

}  // namespace kernwright::sim
