// add, min and max of two 16-bit integers in one register, and min and max with .relu: sm_90.
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::Type;

// Op::flags
constexpr std::uint32_t kMax = 1 << 0, kMin = 1 << 1;  ///< neither: add
constexpr std::uint32_t kSigned = 1 << 2;
constexpr std::uint32_t kRelu = 1 << 3;   ///< negative results become 0
constexpr std::uint32_t kWhole = 1 << 4;  ///< one integer of 32 bits

struct Pairs {
  std::uint32_t flags;

  std::int64_t value(std::int64_t a, std::int64_t b) const {
    const std::int64_t result = (flags & kMax) != 0   ? std::max(a, b)
                                : (flags & kMin) != 0 ? std::min(a, b)
                                                      : a + b;
    return (flags & kRelu) != 0 ? std::max<std::int64_t>(result, 0) : result;
  }
  std::uint32_t half(std::uint32_t a, std::uint32_t b) const {
    const auto low_a = static_cast<std::uint16_t>(a), low_b = static_cast<std::uint16_t>(b);
    const bool is_signed = (flags & kSigned) != 0;
    const std::int64_t result =
        is_signed ? value(static_cast<std::int16_t>(low_a), static_cast<std::int16_t>(low_b))
                  : value(low_a, low_b);
    return static_cast<std::uint16_t>(result);
  }
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    if ((flags & kWhole) != 0) {
      return static_cast<std::uint32_t>(
          value(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
    }
    return half(a, b) | half(a >> 16, b >> 16) << 16;
  }
};

const Op* run(const Op* op, Warp& warp) {
  const Pairs pairs{op->flags};
  const auto* a = warp.reg<std::uint32_t>(op->a);
  const auto* b = warp.reg<std::uint32_t>(op->b);
  auto* d = warp.reg<std::uint32_t>(op->d);
  for_active<true>(warp, [=](int i) { d[i] = pairs(a[i], b[i]); });
  return op + 1;
}

}  // namespace

OpPair select_integer_pairs(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const Handler handler = instruction.row->handler;
  const Type type = modifiers.type[0];
  const bool is_pair = type == Type::u16x2 || type == Type::s16x2;
  const bool is_relu = modifiers.relu && type == Type::s32;
  const bool is_extremum = handler == Handler::min || handler == Handler::max;
  if (!(is_pair && (is_extremum || handler == Handler::add)) && !(is_relu && is_extremum))
    return {};
  std::uint32_t flags = type == Type::u16x2 ? 0 : kSigned;
  if (handler == Handler::max) flags |= kMax;
  if (handler == Handler::min) flags |= kMin;
  if (modifiers.relu) flags |= kRelu;
  if (!is_pair) flags |= kWhole;
  return {run, run, flags};
}

}  // namespace kernwright::sim::KW_SIM_NS
