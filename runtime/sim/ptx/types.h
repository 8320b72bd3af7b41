// PTX's own vocabulary as enums: types, state spaces and all modifiers of instructions.
#pragma once

#include "sim/numeric/rounding_mode.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace kernwright::sim::ptx {

enum class Type : std::uint8_t {
#define KW_TYPE(name, bits) name,
#include "sim/ptx/types.inc"
#undef KW_TYPE
};

/// Size in bits; 1 for pred.
int bits(Type type) noexcept;
std::string_view name(Type type) noexcept;  ///< "f32"
/// Type::none when `text` names none ("f32", without a dot).
Type type_from_name(std::string_view text) noexcept;

/// `generic` is an address without a state space; `cluster` is .shared::cluster, the shared memory
/// of all blocks of a cluster.
enum class Space : std::uint8_t {
  generic,
  reg,
  sreg,
  global,
  shared,
  local,
  param,
  constant,
  cluster,
};

using sim::Rounding;
enum class Compare : std::uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
};
enum class BoolOp : std::uint8_t { none, and_, or_, xor_, popc };
enum class MulPart : std::uint8_t { none, lo, hi, wide };
enum class Semantics : std::uint8_t {
  none,
  weak,
  relaxed,
  acquire,
  release,
  acq_rel,
  volatile_,
  sc
};
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };
enum class AtomOp : std::uint8_t {
  none,
  and_,
  or_,
  xor_,
  cas,
  exch,
  add,
  inc,
  dec,
  min,
  max,
  popc,
};
enum class ShflMode : std::uint8_t { none, up, down, bfly, idx };
enum class VoteMode : std::uint8_t { none, all, any, uni, ballot };
enum class PrmtMode : std::uint8_t { none, f4e, b4e, rc8, ecl, ecr, rc16 };
enum class Layout : std::uint8_t { none, row, col };

/// The coordinates of a texture or surface instruction; a1d, a2d and acube have a layer's index in
/// front.
enum class Geometry : std::uint8_t { none, d1, d2, d3, a1d, a2d, cube, acube };

/// The action of an instruction with several verbs: mbarrier, cp.async, bar, wmma, griddepcontrol,
/// fence.
enum class Verb : std::uint8_t {
  none,
  init,
  inval,
  arrive,
  arrive_drop,
  test_wait,
  try_wait,
  pending_count,
  expect_tx,
  complete_tx,
  commit_group,
  wait_group,
  wait_all,
  mbarrier_arrive,
  warp_sync,
  load,
  store,
  mma,
  proxy,
  launch_dependents,
  wait,
  pack,
  prefetch,
  fence,
};

/// Everything after the stem of an opcode, in one plain struct. Types in the order written.
struct Modifiers {
  std::array<Type, 4> type{};
  std::uint8_t type_count = 0;
  Rounding rounding = Rounding::none;
  Compare compare = Compare::none;
  BoolOp bool_op = BoolOp::none;
  MulPart part = MulPart::none;
  Space space = Space::generic;
  Space space2 = Space::generic;  ///< cp.async: the source
  Semantics semantics = Semantics::none;
  Scope scope = Scope::none;
  AtomOp atom = AtomOp::none;
  ShflMode shfl = ShflMode::none;
  VoteMode vote = VoteMode::none;
  PrmtMode prmt = PrmtMode::none;
  std::uint8_t vector = 1;  ///< .v2 .v4 .v8; ldmatrix .x1 .x2 .x4
  std::uint8_t m = 0;       ///< .m16n8k16
  std::uint16_t n = 0, k = 0;
  Layout layout_a = Layout::none, layout_b = Layout::none;
  Verb verb = Verb::none;
#define KW_FLAG(member, word) bool member = false;
#include "sim/ptx/flags.inc"
#undef KW_FLAG
  Geometry geometry = Geometry::none;
  std::uint8_t component = 0;  ///< tld4: which of r, g, b, a; sust, sured: 1 = .p, 0 = .b
  /// wmma part: 1 = a, 2 = b, 3 = c, 4 = d. testp: 1 finite, 2 infinite, 3 number, 4 notanumber,
  /// 5 normal, 6 subnormal. prefetch: cache level. mma.sp, wgmma .sp: 1. Video: see isa.cpp.
  std::uint8_t selector = 0;
};

/// Kinds of types for matching an instruction's type with its registers'; packed: halves, and
/// several values in a word.
enum class TypeClass { predicate, untyped, integer, floating, packed };
TypeClass class_id(Type type);

/// PTX's rule: same size, and equal kinds unless one side is untyped. `wider` lets the register be
/// larger (ld, st, cvt), up to 64 bits. Halves and packed types live in untyped or integer
/// registers.
bool fits(Type reg, Type type, bool wider);

}  // namespace kernwright::sim::ptx
