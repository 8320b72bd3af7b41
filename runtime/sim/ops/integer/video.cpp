// Video instructions: small integer operations on a word, its halves or its bytes, rarely used; one
// lane after the other, the operation chosen at run time.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/parse/selectors.h"

#include <algorithm>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_video(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

using ptx::AtomOp;
using ptx::Compare;

enum class Verb : std::uint8_t {
  none,
  add,
  subtract,
  absolute_difference,
  minimum,
  maximum,
  average,
  compare,
  shift_left,
  shift_right,
  multiply_add
};

/// What Op::flags says of a video instruction.
struct Form {
  Verb verb = Verb::none;
  unsigned parts = 1;  ///< 1 word, 2 halves or 4 bytes
  bool d_signed = false, a_signed = false, b_signed = false, saturates = false;
  AtomOp second = AtomOp::none;  ///< what joins the result with c
  Compare compare = Compare::none;
  bool wraps = false;     ///< counts of shifts modulo 32, else up to 32
  bool plus_one = false;  ///< multiply_add
  unsigned scale = 0;     ///< multiply_add: 0, 1 = >> 7, 2 = >> 15
  bool has_c = false;
  bool has_selectors = false;  ///< they are the source behind the last one written

  std::uint32_t pack() const {
    return static_cast<std::uint32_t>(verb) | parts << 4 | (d_signed ? 1u << 8 : 0u) |
           (a_signed ? 1u << 9 : 0u) | (b_signed ? 1u << 10 : 0u) | (saturates ? 1u << 11 : 0u) |
           static_cast<std::uint32_t>(second) << 12 | static_cast<std::uint32_t>(compare) << 16 |
           (wraps ? 1u << 24 : 0u) | (plus_one ? 1u << 25 : 0u) | scale << 26 |
           (has_c ? 1u << 28 : 0u) | (has_selectors ? 1u << 29 : 0u);
  }
  static Form unpack(std::uint32_t bits) {
    const auto flag = [bits](int at) { return ((bits >> at) & 1) != 0; };
    Form form;
    form.verb = static_cast<Verb>(bits & 15);
    form.parts = (bits >> 4) & 15;
    form.d_signed = flag(8);
    form.a_signed = flag(9);
    form.b_signed = flag(10);
    form.saturates = flag(11);
    form.second = static_cast<AtomOp>((bits >> 12) & 15);
    form.compare = static_cast<Compare>((bits >> 16) & 255);
    form.wraps = flag(24);
    form.plus_one = flag(25);
    form.scale = (bits >> 26) & 3;
    form.has_c = flag(28);
    form.has_selectors = flag(29);
    return form;
  }
};

/// What stands behind the operands of one instruction.
struct Selectors {
  ptx::Selector d, a, b, c;
  explicit Selectors(std::uint64_t packed)
      : d(ptx::unpack_selector(packed, 0)),
        a(ptx::unpack_selector(packed, 1)),
        b(ptx::unpack_selector(packed, 2)),
        c(ptx::unpack_selector(packed, 3)) {}
};

std::int64_t extract(std::uint32_t value, unsigned bits, unsigned index, bool is_signed) {
  const std::uint64_t field =
      (std::uint64_t{value} >> (bits * index)) & ((std::uint64_t{1} << bits) - 1);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return static_cast<std::int64_t>(is_signed ? (field ^ sign) - sign : field);
}

bool holds(Compare compare, std::int64_t a, std::int64_t b) {
  switch (compare) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::gt: return a > b;
    default: return a >= b;
  }
}

std::int64_t compute(const Form& form, std::int64_t a, std::int64_t b) {
  switch (form.verb) {
    case Verb::add: return a + b;
    case Verb::subtract: return a - b;
    case Verb::absolute_difference: return a < b ? b - a : a - b;
    case Verb::minimum: return std::min(a, b);
    case Verb::maximum: return std::max(a, b);
    case Verb::average: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Verb::shift_left: {
      const std::int64_t count = form.wraps ? b & 31 : std::min<std::int64_t>(b, 32);
      // The lower 32 bits of a shift by 32 are zero whatever it shifts; more would not fit.
      if (count == 32) a = std::min<std::int64_t>(a, INT32_MAX);
      return a * (std::int64_t{1} << count);
    }
    case Verb::shift_right: return a >> (form.wraps ? b & 31 : std::min<std::int64_t>(b, 32));
    default: return holds(form.compare, a, b) ? 1 : 0;
  }
}

std::int64_t saturate(std::int64_t value, unsigned bits, bool is_signed) {
  const std::int64_t top = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, is_signed ? -top - 1 : std::int64_t{0}, top);
}

std::uint32_t join(const Form& form, std::uint32_t value, std::uint32_t c) {
  const auto less = [&](std::uint32_t x, std::uint32_t y) {
    return form.d_signed ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y) : x < y;
  };
  switch (form.second) {
    case AtomOp::add: return value + c;
    case AtomOp::min: return less(c, value) ? c : value;
    case AtomOp::max: return less(value, c) ? c : value;
    default: return value;
  }
}

/// Where a part of a word lies: the whole, a byte or a half.
struct Part {
  unsigned bits = 32, index = 0;
  explicit Part(const ptx::Selector& selector) {
    if (!selector.given) return;
    bits = selector.parts <= 4 ? 8 : 16;
    index = selector.parts - (bits == 8 ? 1u : 5u);
  }
  std::uint32_t mask() const {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << bits) - 1) << (bits * index));
  }
};

std::int64_t part_of(std::uint32_t value, const ptx::Selector& selector, bool is_signed) {
  const Part part(selector);
  return extract(value, part.bits, part.index, is_signed);
}

/// vmad: the exact 64-bit product, its sign, c, scaled and saturated.
std::uint32_t multiply_add(const Form& form, const Selectors& selectors, std::uint32_t a,
                           std::uint32_t b, std::uint32_t c) {
  __extension__ typedef __int128 Wide;
  const bool negative = selectors.a.negated != selectors.b.negated;
  const bool is_signed = form.a_signed || form.b_signed || negative || selectors.c.negated;
  const Wide product =
      Wide{part_of(a, selectors.a, form.a_signed)} * Wide{part_of(b, selectors.b, form.b_signed)};
  const Wide third = is_signed ? Wide{static_cast<std::int32_t>(c)} : Wide{c};
  Wide sum = (negative ? -product : product) + (selectors.c.negated ? -third : third);
  if (form.plus_one) sum += 1;
  sum >>= form.scale == 0 ? 0 : form.scale == 1 ? 7 : 15;
  if (form.saturates) {
    const Wide low = is_signed ? -(Wide{1} << 31) : Wide{0};
    const Wide high = is_signed ? (Wide{1} << 31) - 1 : (Wide{1} << 32) - 1;
    sum = std::clamp(sum, low, high);
  }
  return static_cast<std::uint32_t>(sum);
}

std::uint32_t word_lane(const Form& form, const Selectors& selectors, std::uint32_t a,
                        std::uint32_t b, std::uint32_t c) {
  if (form.verb == Verb::multiply_add) return multiply_add(form, selectors, a, b, c);
  std::int64_t value =
      compute(form, part_of(a, selectors.a, form.a_signed), part_of(b, selectors.b, form.b_signed));
  const Part to(selectors.d);
  if (form.saturates) value = saturate(value, to.bits, form.d_signed);
  const auto word = static_cast<std::uint32_t>(value);
  if (!selectors.d.given) return join(form, word, c);
  return ((word << (to.bits * to.index)) & to.mask()) | (c & ~to.mask());
}

/// Two halves or four bytes: each part takes any part of b:a; those that the mask leaves out are
/// those of c, or add nothing.
std::uint32_t parts_lane(const Form& form, const Selectors& selectors, std::uint32_t a,
                         std::uint32_t b, std::uint32_t c) {
  const unsigned bits = 32 / form.parts;
  const auto source = [&](const ptx::Selector& selector, unsigned i, unsigned usual,
                          bool is_signed) {
    const unsigned at = selector.given ? (selector.parts >> (4 * i)) & 15u : i + usual;
    return at < form.parts ? extract(a, bits, at, is_signed)
                           : extract(b, bits, at - form.parts, is_signed);
  };
  std::uint32_t result = 0, sum = c;
  for (unsigned i = 0; i < form.parts; ++i) {
    const std::uint32_t mask = ((bits == 16 ? 0xffffu : 0xffu) << (bits * i));
    if (selectors.d.given && ((selectors.d.parts >> i) & 1) == 0) {
      result |= c & mask;
      continue;
    }
    std::int64_t value = compute(form, source(selectors.a, i, 0, form.a_signed),
                                 source(selectors.b, i, form.parts, form.b_signed));
    if (form.saturates) value = saturate(value, bits, form.d_signed);
    sum += static_cast<std::uint32_t>(value);
    result |= (static_cast<std::uint32_t>(value) << (bits * i)) & mask;
  }
  return form.second == AtomOp::add ? sum : result;
}

template <bool kMasked>
const Op* video(const Op* op, Warp& warp) {
  const Form form = Form::unpack(op->flags);
  const auto* a = warp.reg<std::uint32_t>(op->a);
  const auto* b = warp.reg<std::uint32_t>(op->b);
  const auto* c = form.has_c ? warp.reg<std::uint32_t>(op->c) : a;
  const std::uint32_t behind = form.has_c ? op->e : op->c;
  const Selectors selectors(form.has_selectors ? *warp.reg<std::uint64_t>(behind) : 0);
  auto* d = warp.reg<std::uint32_t>(op->d);
  for_active<kMasked>(warp, [&](int i) {
    d[i] = form.parts == 1 ? word_lane(form, selectors, a[i], b[i], c[i])
                           : parts_lane(form, selectors, a[i], b[i], c[i]);
  });
  return op + 1;
}

struct Row {
  ptx::Handler handler;
  Verb verb;
  unsigned parts;
};
constexpr Row kRows[] = {
    {ptx::Handler::vadd, Verb::add, 1},
    {ptx::Handler::vadd2, Verb::add, 2},
    {ptx::Handler::vadd4, Verb::add, 4},
    {ptx::Handler::vsub, Verb::subtract, 1},
    {ptx::Handler::vsub2, Verb::subtract, 2},
    {ptx::Handler::vsub4, Verb::subtract, 4},
    {ptx::Handler::vabsdiff, Verb::absolute_difference, 1},
    {ptx::Handler::vabsdiff2, Verb::absolute_difference, 2},
    {ptx::Handler::vabsdiff4, Verb::absolute_difference, 4},
    {ptx::Handler::vmin, Verb::minimum, 1},
    {ptx::Handler::vmin2, Verb::minimum, 2},
    {ptx::Handler::vmin4, Verb::minimum, 4},
    {ptx::Handler::vmax, Verb::maximum, 1},
    {ptx::Handler::vmax2, Verb::maximum, 2},
    {ptx::Handler::vmax4, Verb::maximum, 4},
    {ptx::Handler::vavrg2, Verb::average, 2},
    {ptx::Handler::vavrg4, Verb::average, 4},
    {ptx::Handler::vset, Verb::compare, 1},
    {ptx::Handler::vshl, Verb::shift_left, 1},
    {ptx::Handler::vshr, Verb::shift_right, 1},
    {ptx::Handler::vmad, Verb::multiply_add, 1},
    {ptx::Handler::vset2, Verb::compare, 2},
    {ptx::Handler::vset4, Verb::compare, 4},
};

Form form_of(ptx::Handler handler) {
  Form form;
  for (const Row& row : kRows) {
    if (row.handler != handler) continue;
    form.verb = row.verb;
    form.parts = row.parts;
  }
  return form;
}

}  // namespace

OpPair select_video(const ptx::Instruction& inst, const OperandWidths&) {
  Form form = form_of(inst.row->handler);
  if (form.verb == Verb::none) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const std::size_t first = form.verb == Verb::compare ? 0 : 1;  // vset has no result type
  form.d_signed = first == 1 && mods.type[0] == ptx::Type::s32;
  form.a_signed = mods.type[first] == ptx::Type::s32;
  form.b_signed = mods.type[first + 1] == ptx::Type::s32;
  form.saturates = mods.sat;
  form.second = mods.atom;
  form.compare = mods.compare;
  form.wraps = mods.wrap;
  form.plus_one = mods.plus_one;
  form.scale = mods.selector == 7 ? 1 : mods.selector == 15 ? 2 : 0;
  form.has_c = inst.operands.size() == 4;
  form.has_selectors = inst.selectors != 0;
  return {video<false>, video<true>, form.pack()};
}

}  // namespace kernwright::sim::KW_SIM_NS
