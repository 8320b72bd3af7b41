// Video instructions: small integer operations on a word, its halves or its bytes, rarely used; one
// lane after the other, the operation chosen at run time.
#include "sim/exec/ops/types.h"
#include "sim/ptx/isa.h"

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
  compare
};

/// What Op::flags says of a video instruction.
struct Form {
  Verb verb = Verb::none;
  unsigned parts = 1;  ///< 1 word, 2 halves or 4 bytes
  bool d_signed = false, a_signed = false, b_signed = false, saturates = false;
  AtomOp second = AtomOp::none;  ///< what joins the result with c
  Compare compare = Compare::none;

  std::uint32_t pack() const {
    return static_cast<std::uint32_t>(verb) | parts << 4 | (d_signed ? 1u << 8 : 0u) |
           (a_signed ? 1u << 9 : 0u) | (b_signed ? 1u << 10 : 0u) | (saturates ? 1u << 11 : 0u) |
           static_cast<std::uint32_t>(second) << 12 | static_cast<std::uint32_t>(compare) << 20;
  }
  static Form unpack(std::uint32_t bits) {
    Form form;
    form.verb = static_cast<Verb>(bits & 15);
    form.parts = (bits >> 4) & 15;
    form.d_signed = ((bits >> 8) & 1) != 0;
    form.a_signed = ((bits >> 9) & 1) != 0;
    form.b_signed = ((bits >> 10) & 1) != 0;
    form.saturates = ((bits >> 11) & 1) != 0;
    form.second = static_cast<AtomOp>((bits >> 12) & 255);
    form.compare = static_cast<Compare>(bits >> 20);
    return form;
  }
};

std::int64_t extract(std::uint32_t value, unsigned bits, unsigned index, bool is_signed) {
  const std::uint64_t field =
      (std::uint64_t{value} >> (bits * index)) & ((std::uint64_t{1} << bits) - 1);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return static_cast<std::int64_t>(is_signed ? (field ^ sign) - sign : field);
}

bool holds(Compare compare, std::int64_t a, std::int64_t b) {
  switch (compare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    default:
      return a >= b;
  }
}

std::int64_t compute(const Form& form, std::int64_t a, std::int64_t b) {
  switch (form.verb) {
    case Verb::add:
      return a + b;
    case Verb::subtract:
      return a - b;
    case Verb::absolute_difference:
      return a < b ? b - a : a - b;
    case Verb::minimum:
      return std::min(a, b);
    case Verb::maximum:
      return std::max(a, b);
    case Verb::average:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    default:
      return holds(form.compare, a, b) ? 1 : 0;
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
    case AtomOp::add:
      return value + c;
    case AtomOp::min:
      return less(c, value) ? c : value;
    case AtomOp::max:
      return less(value, c) ? c : value;
    default:
      return value;
  }
}

std::uint32_t video_lane(const Form& form, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const unsigned bits = 32 / form.parts;
  std::uint32_t result = 0, sum = c;
  for (unsigned i = 0; i < form.parts; ++i) {
    std::int64_t value =
        compute(form, extract(a, bits, i, form.a_signed), extract(b, bits, i, form.b_signed));
    if (form.saturates) value = saturate(value, bits, form.d_signed);
    sum += static_cast<std::uint32_t>(value);
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    result |= static_cast<std::uint32_t>((static_cast<std::uint64_t>(value) & mask) << (bits * i));
  }
  if (form.parts == 1) return join(form, result, c);
  return form.second == AtomOp::add ? sum : result;
}

template <bool kMasked>
const Op* video(const Op* op, Warp& warp) {
  const Form form = Form::unpack(op->flags);
  const auto* a = warp.reg<std::uint32_t>(op->a);
  const auto* b = warp.reg<std::uint32_t>(op->b);
  const auto* c = warp.reg<std::uint32_t>(op->c);
  auto* d = warp.reg<std::uint32_t>(op->d);
  for_active<kMasked>(warp, [&](int i) { d[i] = video_lane(form, a[i], b[i], c[i]); });
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
  return {video<false>, video<true>, form.pack()};
}

}  // namespace kernwright::sim::KW_SIM_NS
