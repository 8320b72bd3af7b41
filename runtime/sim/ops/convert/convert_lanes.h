// What the conversion families share: type facts, registers of any width, flushing and clamping.
#pragma once

#include "sim/numeric/half.h"
#include "sim/numeric/integer.h"
#include "sim/numeric/rounding.h"
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

struct IntegerType {
  int bits = 0;  ///< 0 = no integer type
  bool is_signed = false;
};

inline IntegerType integer_type(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::u2: return {2, false};
    case Type::s2: return {2, true};
    case Type::u4: return {4, false};
    case Type::s4: return {4, true};
    case Type::u8: return {8, false};
    case Type::u16: return {16, false};
    case Type::u32: return {32, false};
    case Type::u64: return {64, false};
    case Type::s8: return {8, true};
    case Type::s16: return {16, true};
    case Type::s32: return {32, true};
    case Type::s64: return {64, true};
    default: return {};
  }
}

/// The low `bits` of `value`, extended to 64.
inline std::uint64_t extend(std::uint64_t value, int bits, bool is_signed) {
  const int up = 64 - bits;
  const std::uint64_t high = value << up;
  return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(high) >> up) : high >> up;
}

inline std::uint64_t load_lane(const Warp& warp, std::uint32_t offset, int bytes, int lane) {
  if (bytes == 2) return warp.reg<std::uint16_t>(offset)[lane];
  if (bytes == 4) return warp.reg<std::uint32_t>(offset)[lane];
  return warp.reg<std::uint64_t>(offset)[lane];
}

inline void store_lane(const Warp& warp, std::uint32_t offset, int bytes, int lane,
                       std::uint64_t value) {
  if (bytes == 2) {
    warp.reg<std::uint16_t>(offset)[lane] = static_cast<std::uint16_t>(value);
  } else if (bytes == 4) {
    warp.reg<std::uint32_t>(offset)[lane] = static_cast<std::uint32_t>(value);
  } else {
    warp.reg<std::uint64_t>(offset)[lane] = value;
  }
}

/// Op::flags of the conversions that look at their types at run time.
class ConvertFlags {
 public:
  explicit ConvertFlags(std::uint32_t bits) : bits_(bits) {}
  static std::uint32_t make(const ptx::Instruction& inst, const OperandWidths& widths) {
    const ptx::Modifiers& mods = inst.modifiers;
    const std::uint32_t finish = (mods.sat ? 1u : 0u) | (mods.ftz ? 2u : 0u) |
                                 (mods.satfinite ? 4u : 0u) | (mods.relu ? 8u : 0u);
    return static_cast<std::uint32_t>(mods.type[0]) |
           static_cast<std::uint32_t>(mods.type[1]) << 6 |
           static_cast<std::uint32_t>(widths[0] / 2 & 7) << 12 |
           static_cast<std::uint32_t>(widths[1] / 2 & 7) << 15 | finish << 18 |
           static_cast<std::uint32_t>(mods.rounding) << 22;
  }
  ptx::Type result() const { return static_cast<ptx::Type>(bits_ & 63); }
  ptx::Type source() const { return static_cast<ptx::Type>(bits_ >> 6 & 63); }
  int result_bytes() const { return static_cast<int>(bits_ >> 12 & 7) * 2; }
  int source_bytes() const { return static_cast<int>(bits_ >> 15 & 7) * 2; }
  bool saturates() const { return (bits_ >> 18 & 1) != 0; }
  bool flushes() const { return (bits_ >> 19 & 1) != 0; }
  numeric::Finish finish() const { return {(bits_ >> 20 & 1) != 0, (bits_ >> 21 & 1) != 0}; }
  ptx::Rounding rounding() const { return static_cast<ptx::Rounding>(bits_ >> 22 & 15); }
  int result_bits() const { return integer_type(result()).bits; }
  int source_bits() const { return integer_type(source()).bits; }
  bool result_signed() const { return integer_type(result()).is_signed; }
  bool source_signed() const { return integer_type(source()).is_signed; }

 private:
  std::uint32_t bits_;
};

/// Subnormals become zero of the same sign.
[[gnu::always_inline]] inline float flush_f32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}

/// .sat: to [0, 1]; NaN and -0 give +0.
template <typename T>
[[gnu::always_inline]] inline T to_unit(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}

/// A lane of .f16, .bf16, .f32 or .f64 as a double, exactly.
inline double load_floating(const Warp& warp, std::uint32_t offset, ptx::Type type, bool flushes,
                            int lane) {
  switch (type) {
    case ptx::Type::f16: return numeric::f16_to_f32(warp.reg<std::uint16_t>(offset)[lane]);
    case ptx::Type::bf16: return numeric::bf16_to_f32(warp.reg<std::uint16_t>(offset)[lane]);
    case ptx::Type::f32: {
      const float x = warp.reg<float>(offset)[lane];
      return flushes ? flush_f32(x) : x;
    }
    default: return warp.reg<double>(offset)[lane];
  }
}

/// The encoding of `value` in a floating type, rounded once.
inline std::uint64_t encode_floating(double value, ptx::Type type, ptx::Rounding mode,
                                     numeric::Finish finish) {
  switch (type) {
    case ptx::Type::f16: return numeric::encode<numeric::F16>(value, mode, finish);
    case ptx::Type::bf16: return numeric::encode<numeric::BF16>(value, mode, finish);
    case ptx::Type::tf32: return numeric::encode<numeric::TF32>(value, mode, finish);
    case ptx::Type::f32: return numeric::encode<numeric::F32>(value, mode, finish);
    default: return std::bit_cast<std::uint64_t>(value);
  }
}

inline bool is_floating(ptx::Type type) {
  return type == ptx::Type::f16 || type == ptx::Type::bf16 || type == ptx::Type::f32 ||
         type == ptx::Type::f64;
}

}  // namespace kernwright::sim::KW_SIM_NS
