// Element-wise reductions of bulk copies.
#include "sim/exec/copy/bulk_reduce.h"

#include "sim/numeric/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace kernwright::sim {
namespace {

namespace numeric = KW_SIM_NS::numeric;
using ptx::AtomOp;
using ptx::Type;

template <typename T>
T combine(AtomOp op, T old, T value) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    const auto a = static_cast<Bits>(old), b = static_cast<Bits>(value);
    switch (op) {
      case AtomOp::add: return static_cast<T>(a + b);
      case AtomOp::inc: return static_cast<T>(a >= b ? 0 : a + 1);
      case AtomOp::dec: return static_cast<T>(a == 0 || a > b ? b : a - 1);
      case AtomOp::and_: return static_cast<T>(a & b);
      case AtomOp::or_: return static_cast<T>(a | b);
      case AtomOp::xor_: return static_cast<T>(a ^ b);
      case AtomOp::min: return std::min(old, value);
      case AtomOp::max: return std::max(old, value);
      default: return value;
    }
  } else {
    if (op == AtomOp::add) return old + value;
    return op == AtomOp::min ? std::fmin(old, value) : std::fmax(old, value);
  }
}

/// Replaces the element at `at` by the result of `next`. With `shared`, blocks on other host
/// threads may change it at the same time.
template <typename Bits, typename F>
void replace(std::byte* at, bool shared, F next) {
  if (!shared) {
    Bits old = 0;
    std::memcpy(&old, at, sizeof old);
    old = next(old);
    std::memcpy(at, &old, sizeof old);
    return;
  }
  auto* word = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, next(old), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {}
}

/// Inputs for every element type: to, from, bytes, operation, and whether others may write too.
struct BulkReduction {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  AtomOp op;
  bool shared;

  template <typename T>
  void all() const {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
      T value;
      std::memcpy(&value, from + i, sizeof value);
      replace<Bits>(to + i, shared, [&](Bits old) {
        return std::bit_cast<Bits>(combine(op, std::bit_cast<T>(old), value));
      });
    }
  }

  /// Sums of halves are so exact in float that one more rounding gives the right half.
  template <typename Widen, typename Narrow>
  void halves(Widen widen, Narrow narrow) const {
    for (std::size_t i = 0; i + 2 <= bytes; i += 2) {
      std::uint16_t value = 0;
      std::memcpy(&value, from + i, sizeof value);
      replace<std::uint16_t>(to + i, shared, [&](std::uint16_t old) {
        return narrow(combine(op, widen(old), widen(value)));
      });
    }
  }

  void run(Type type) const {
    switch (type) {
      case Type::f16: return halves(numeric::f16_to_f32, numeric::f32_to_f16);
      case Type::bf16: return halves(numeric::bf16_to_f32, numeric::f32_to_bf16);
      case Type::f32: return all<float>();
      case Type::f64: return all<double>();
      case Type::s32: return all<std::int32_t>();
      case Type::b64:
      case Type::u64: return all<std::uint64_t>();
      case Type::s64: return all<std::int64_t>();
      default: return all<std::uint32_t>();
    }
  }
};

}  // namespace

bool can_reduce(AtomOp op, Type type) noexcept {
  switch (type) {
    case Type::f16:
    case Type::bf16: return op == AtomOp::add || op == AtomOp::min || op == AtomOp::max;
    case Type::f32:
    case Type::f64: return op == AtomOp::add;
    case Type::b32:
    case Type::b64: return op == AtomOp::and_ || op == AtomOp::or_ || op == AtomOp::xor_;
    case Type::u32:
      return op == AtomOp::add || op == AtomOp::min || op == AtomOp::max || op == AtomOp::inc ||
             op == AtomOp::dec;
    case Type::s32:
    case Type::u64:
    case Type::s64: return op == AtomOp::add || op == AtomOp::min || op == AtomOp::max;
    default: return false;
  }
}

void reduce_bytes(std::byte* to, const std::byte* from, std::size_t bytes, AtomOp op, Type type,
                  bool shared) {
  if (op == AtomOp::none) {
    std::memmove(to, from, bytes);
  } else {
    BulkReduction{to, from, bytes, op, shared}.run(type);
  }
}

}  // namespace kernwright::sim
