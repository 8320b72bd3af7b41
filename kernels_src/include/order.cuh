// Unsigned keys in the order of the elements, and unique entries (key, index). Elements are read as
// unsigned numbers of equal size, so one instance serves all types of a size.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// How numbers of a type are ordered. A kernel's parameter.
struct Order {
  UInt64 nan;     ///< of floating types the lowest magnitude that is no number, else 0
  UInt64 sign;    ///< of signed types the highest bit, else 0
  UInt64 flip;    ///< 0, or all bits for a falling order
  UInt64 turned;  ///< the bits that negative numbers turn: all of floating types, else 0
};

template <typename Bits>
__device__ __forceinline__ Bits magnitude(Bits bits) {
  return static_cast<Bits>(bits & static_cast<Bits>(~Bits(0)) >> 1);
}

/// NaN is above all numbers; -0 and 0 have one key. There is no branch by type: compilers would
/// repeat the loops around it.
template <typename Bits>
__device__ __forceinline__ Bits order_key(Bits bits, const Order& order) {
  constexpr Bits kAll = static_cast<Bits>(~Bits(0)), kTop = static_cast<Bits>(~(kAll >> 1));
  const Bits turned = static_cast<Bits>(order.turned), size = magnitude(bits);
  const Bits number = size == 0 ? static_cast<Bits>(bits & ~turned) : bits;
  const Bits change = static_cast<Bits>(order.sign) | ((number & kTop) != 0 ? turned : Bits(0));
  const Bits key = size > static_cast<Bits>(order.nan - 1) ? kAll : Bits(number ^ change);
  return static_cast<Bits>(key ^ static_cast<Bits>(order.flip));
}

template <typename Bits>
__device__ __forceinline__ bool is_nan(Bits bits, const Order& order) {
  return order.nan != 0 && magnitude(bits) >= static_cast<Bits>(order.nan);
}

/// A complex number, ordered by the real part, then by the imaginary part, as in NumPy.
template <typename Bits>
struct Pair {
  Bits real, imag;
};
template <typename Bits>
__device__ __forceinline__ Pair<Bits> order_key(const Pair<Bits>& value, const Order& order) {
  return {order_key(value.real, order), order_key(value.imag, order)};
}
template <typename Bits>
__device__ __forceinline__ bool operator!=(const Pair<Bits>& a, const Pair<Bits>& b) {
  return a.real != b.real || a.imag != b.imag;
}
template <typename Bits>
__device__ __forceinline__ bool is_nan(const Pair<Bits>& value, const Order& order) {
  return is_nan(value.real, order) || is_nan(value.imag, order);
}

struct WideEntry {
  UInt64 key;
  UInt32 index;
};
__device__ __forceinline__ bool operator<(const WideEntry& a, const WideEntry& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/// A sort key and an index: one number where both fit.
template <typename Bits>
struct EntryTraits {
  using Type = UInt64;
  __device__ static Type make(Bits key, UInt32 index) {
    return static_cast<UInt64>(key) << 32 | index;
  }
  __device__ static UInt32 index(Type entry) { return static_cast<UInt32>(entry); }
};
template <>
struct EntryTraits<UInt64> {
  using Type = WideEntry;
  __device__ static Type make(UInt64 key, UInt32 index) { return {key, index}; }
  __device__ static UInt32 index(const Type& entry) { return entry.index; }
};

}  // namespace kernwright
