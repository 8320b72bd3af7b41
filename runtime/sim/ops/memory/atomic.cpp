// atom and red on integers: global memory with the host's atomics, since blocks run on several
// threads; shared memory plainly, since a block runs on one.
#include "sim/ops/memory/atomic_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::AtomOp;
using ptx::Type;

// The new value of memory, from its old one, b and c.
using And = decltype([](auto old, auto b, auto) { return old & b; });
using Or = decltype([](auto old, auto b, auto) { return old | b; });
using Xor = decltype([](auto old, auto b, auto) { return old ^ b; });
using Exchange = decltype([](auto, auto b, auto) { return b; });
using CompareAndSwap = decltype([](auto old, auto b, auto c) { return old == b ? c : old; });
using Add = decltype([](auto old, auto b, auto) { return old + b; });
using Increment = decltype([](auto old, auto b, auto) { return old >= b ? 0 : old + 1; });
using Decrement = decltype([](auto old, auto b, auto) {
  return old == 0 || old > b ? b : old - 1;
});
using Min = decltype([](auto old, auto b, auto) { return b < old ? b : old; });
using Max = decltype([](auto old, auto b, auto) { return b > old ? b : old; });

template <typename T>
OpPair exchange(AtomOp which) {
  if (which == AtomOp::exch) return atomic_pair<Exchange, T, T>();
  return which == AtomOp::cas ? atomic_pair<CompareAndSwap, T, T>() : OpPair{};
}

template <typename T>
OpPair logical(AtomOp which) {
  switch (which) {
    case AtomOp::and_: return atomic_pair<And, T, T>();
    case AtomOp::or_: return atomic_pair<Or, T, T>();
    case AtomOp::xor_: return atomic_pair<Xor, T, T>();
    default: return exchange<T>(which);
  }
}

/// `U` is T without a sign: sums wrap.
template <typename T, typename U>
OpPair arithmetic(AtomOp which) {
  switch (which) {
    case AtomOp::add: return atomic_pair<Add, U, U>();
    case AtomOp::min: return atomic_pair<Min, T, U>();
    case AtomOp::max: return atomic_pair<Max, T, U>();
    case AtomOp::inc: return sizeof(T) == 4 ? atomic_pair<Increment, U, U>() : OpPair{};
    case AtomOp::dec: return sizeof(T) == 4 ? atomic_pair<Decrement, U, U>() : OpPair{};
    default: return logical<U>(which);
  }
}

OpPair by_type(AtomOp which, Type type) {
  switch (type) {
    case Type::b16: return exchange<std::uint16_t>(which);
    case Type::b32: return logical<std::uint32_t>(which);
    case Type::b64: return logical<std::uint64_t>(which);
    case Type::b128: return exchange<Uint128>(which);
    case Type::u32: return arithmetic<std::uint32_t, std::uint32_t>(which);
    case Type::s32: return arithmetic<std::int32_t, std::uint32_t>(which);
    case Type::u64: return arithmetic<std::uint64_t, std::uint64_t>(which);
    case Type::s64: return arithmetic<std::int64_t, std::uint64_t>(which);
    default: return {};
  }
}

}  // namespace

OpPair select_atomic(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (!is_atomic(instruction) || instruction.modifiers.vector != 1) return {};
  const Type type = instruction.modifiers.type[0];
  if (!atomic_widths_fit(instruction, widths)) return {};
  return finish_atomic(by_type(instruction.modifiers.atom, type), instruction, widths);
}

}  // namespace kernwright::sim::KW_SIM_NS
