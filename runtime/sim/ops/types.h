// From PTX types to C++ types, for the selectors.
#pragma once

#include "sim/ops/lanes.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

/// Unsigned, at least 32 bits wide: arithmetic in it wraps and never promotes to int.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// Calls f.operator()<T>() with the C++ type of an integer or bit type; nulls for others.
template <typename F>
OpPair by_integer(ptx::Type type, F f) {
  using ptx::Type;
  switch (type) {
    case Type::b16:
    case Type::u16: return f.template operator()<std::uint16_t>();
    case Type::s16: return f.template operator()<std::int16_t>();
    case Type::b32:
    case Type::u32: return f.template operator()<std::uint32_t>();
    case Type::s32: return f.template operator()<std::int32_t>();
    case Type::b64:
    case Type::u64: return f.template operator()<std::uint64_t>();
    case Type::s64: return f.template operator()<std::int64_t>();
    default: return {};
  }
}

/// The same for the unsigned type as wide as `type`, floating types included.
template <typename F>
OpPair by_width(ptx::Type type, F f) {
  switch (ptx::bits(type)) {
    case 8:
    case 16: return f.template operator()<std::uint16_t>();
    case 32: return f.template operator()<std::uint32_t>();
    case 64: return f.template operator()<std::uint64_t>();
    default: return {};
  }
}

/// The result of a comparison together with a predicate.
inline std::uint32_t combine(ptx::BoolOp how, std::uint32_t bits, std::uint32_t with) {
  using ptx::BoolOp;
  switch (how) {
    case BoolOp::and_: return bits & with;
    case BoolOp::or_: return bits | with;
    case BoolOp::xor_: return bits ^ with;
    default: return bits;
  }
}

inline bool is_integer(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::b64:
    case Type::u64:
    case Type::s64: return true;
    default: return false;
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
