// Video instructions: small integer operations on a word, its halves or its bytes, rarely used; one
// lane after the other, the operation chosen at run time.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/parse/selectors.h"

#include <algorithm>

namespace kernwright::sim::KW_SIM_NS {
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

/// The form of a video instruction in Op::flags.
struct Form {
  Verb verb : 4 = Verb::none;
  unsigned parts : 4 = 1;  ///< 1 word, 2 halves or 4 bytes
  bool d_signed : 1 = false;
  bool a_signed : 1 = false;
  bool b_signed : 1 = false;
  bool saturates : 1 = false;
  AtomOp second : 4 = AtomOp::none;  ///< what joins the result with c
  Compare compare : 8 = Compare::none;
  bool wraps : 1 = false;     ///< counts of shifts modulo 32, else up to 32
  bool plus_one : 1 = false;  ///< multiply_add
  unsigned scale : 2 = 0;     ///< multiply_add: 0, 1 = >> 7, 2 = >> 15
  bool has_c : 1 = false;
  bool has_selectors : 1 = false;  ///< they are the source behind the last one written
  unsigned unused : 2 = 0;
};

/// The selectors after the operands of one instruction.
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
    default: return (holds_for(form.compare) & (a < b ? 1 : a == b ? 2 : 4)) != 0 ? 1 : 0;
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

/// The place of a part of a word: the whole, a byte or a half.
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

std::int64_t select_part(std::uint32_t value, const ptx::Selector& selector, bool is_signed) {
  const Part part(selector);
  return extract(value, part.bits, part.index, is_signed);
}

/// vmad: the exact 64-bit product, its sign, c, scaled and saturated.
std::uint32_t multiply_add(const Form& form, const Selectors& selectors, std::uint32_t a,
                           std::uint32_t b, std::uint32_t c) {
  __extension__ typedef __int128 Wide;
  const bool negative = selectors.a.negated != selectors.b.negated;
  const bool is_signed = form.a_signed || form.b_signed || negative || selectors.c.negated;
  const Wide product = Wide{select_part(a, selectors.a, form.a_signed)} *
                       Wide{select_part(b, selectors.b, form.b_signed)};
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
  std::int64_t value = compute(form, select_part(a, selectors.a, form.a_signed),
                               select_part(b, selectors.b, form.b_signed));
  const Part to(selectors.d);
  if (form.saturates) value = saturate(value, to.bits, form.d_signed);
  const auto word = static_cast<std::uint32_t>(value);
  if (!selectors.d.given) return join(form, word, c);
  return ((word << (to.bits * to.index)) & to.mask()) | (c & ~to.mask());
}

/// Two halves or four bytes: each part takes any part of b:a; parts outside the mask come from c,
/// or add nothing.
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

const Op* video(const Op* op, Warp& warp) {
  const auto form = std::bit_cast<Form>(op->flags);
  const auto* a = warp.reg<std::uint32_t>(op->a);
  const auto* b = warp.reg<std::uint32_t>(op->b);
  const auto* c = form.has_c ? warp.reg<std::uint32_t>(op->c) : a;
  const std::uint32_t behind = form.has_c ? op->e : op->c;
  const Selectors selectors(form.has_selectors ? *warp.reg<std::uint64_t>(behind) : 0);
  auto* d = warp.reg<std::uint32_t>(op->d);
  for_active<true>(warp, [&](int i) {
    d[i] = form.parts == 1 ? word_lane(form, selectors, a[i], b[i], c[i])
                           : parts_lane(form, selectors, a[i], b[i], c[i]);
  });
  return op + 1;
}

/// The instructions of a verb for words, pairs of halves and four bytes.
struct Row {
  Verb verb;
  ptx::Handler word, halves, bytes;
};
constexpr auto kNone = ptx::Handler::count_;
constexpr Row kRows[] = {
    {Verb::add, ptx::Handler::vadd, ptx::Handler::vadd2, ptx::Handler::vadd4},
    {Verb::subtract, ptx::Handler::vsub, ptx::Handler::vsub2, ptx::Handler::vsub4},
    {Verb::absolute_difference, ptx::Handler::vabsdiff, ptx::Handler::vabsdiff2,
     ptx::Handler::vabsdiff4},
    {Verb::minimum, ptx::Handler::vmin, ptx::Handler::vmin2, ptx::Handler::vmin4},
    {Verb::maximum, ptx::Handler::vmax, ptx::Handler::vmax2, ptx::Handler::vmax4},
    {Verb::average, kNone, ptx::Handler::vavrg2, ptx::Handler::vavrg4},
    {Verb::compare, ptx::Handler::vset, ptx::Handler::vset2, ptx::Handler::vset4},
    {Verb::shift_left, ptx::Handler::vshl, kNone, kNone},
    {Verb::shift_right, ptx::Handler::vshr, kNone, kNone},
    {Verb::multiply_add, ptx::Handler::vmad, kNone, kNone},
};

Form choose_form(ptx::Handler handler) {
  Form form;
  for (const auto& [verb, word, halves, bytes] : kRows) {
    if (handler != word && handler != halves && handler != bytes) continue;
    form.verb = verb;
    form.parts = handler == word ? 1 : handler == halves ? 2 : 4;
  }
  return form;
}

}  // namespace

OpPair select_video(const ptx::Instruction& inst, const OperandWidths&) {
  Form form = choose_form(inst.row->handler);
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
  return {video, video, std::bit_cast<std::uint32_t>(form)};
}

}  // namespace kernwright::sim::KW_SIM_NS
