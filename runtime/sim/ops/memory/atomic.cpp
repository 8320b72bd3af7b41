// atom and red on integers: global memory with the host's atomics, since blocks run on several
// threads; shared memory plainly, since a block runs on one.
#include "sim/ops/memory/atomic_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::AtomOp;
using ptx::Type;

struct And {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old & b;
  }
};
struct Or {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old | b;
  }
};
struct Xor {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old ^ b;
  }
};
struct Exchange {
  template <typename T>
  T operator()(T, T b, T) const {
    return b;
  }
};
struct CompareAndSwap {
  template <typename T>
  T operator()(T old, T b, T c) const {
    return old == b ? c : old;
  }
};
struct Add {
  template <typename T>
  T operator()(T old, T b, T) const {
    return static_cast<T>(old + b);
  }
};
struct Increment {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old >= b ? T{0} : old + 1;
  }
};
struct Decrement {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old == 0 || old > b ? b : old - 1;
  }
};
struct Min {
  template <typename T>
  T operator()(T old, T b, T) const {
    return b < old ? b : old;
  }
};
struct Max {
  template <typename T>
  T operator()(T old, T b, T) const {
    return b > old ? b : old;
  }
};

template <typename T>
OpPair logical(AtomOp which) {
  switch (which) {
    case AtomOp::and_: return atomic_pair<And, T, T>();
    case AtomOp::or_: return atomic_pair<Or, T, T>();
    case AtomOp::xor_: return atomic_pair<Xor, T, T>();
    case AtomOp::exch: return atomic_pair<Exchange, T, T>();
    case AtomOp::cas: return atomic_pair<CompareAndSwap, T, T>();
    default: return {};
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
    case Type::b16:
      return which == AtomOp::cas    ? atomic_pair<CompareAndSwap, std::uint16_t, std::uint16_t>()
             : which == AtomOp::exch ? atomic_pair<Exchange, std::uint16_t, std::uint16_t>()
                                     : OpPair{};
    case Type::b32: return logical<std::uint32_t>(which);
    case Type::b64: return logical<std::uint64_t>(which);
    case Type::b128:
      return which == AtomOp::cas    ? atomic_pair<CompareAndSwap, Uint128, Uint128>()
             : which == AtomOp::exch ? atomic_pair<Exchange, Uint128, Uint128>()
                                     : OpPair{};
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
