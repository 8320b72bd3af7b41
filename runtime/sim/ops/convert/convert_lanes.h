// Shared by the conversion families: type facts, registers of any width, flushing and clamping.
#pragma once

#include "sim/numeric/half.h"
#include "sim/numeric/integer.h"
#include "sim/numeric/rounding.h"
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

struct IntegerType {
  int bits = 0;  ///< 0 = no integer type
  bool is_signed = false;
};

inline IntegerType integer_type(ptx::Type type) {
  using enum ptx::Type;
  const bool is_signed = (type >= s4 && type <= s64) || type == s2;
  const bool is_unsigned = (type >= u4 && type <= u64) || type == u2;
  return is_signed || is_unsigned ? IntegerType{ptx::bits(type), is_signed} : IntegerType{};
}

/// f.operator()<I>() with an integer of 8 to 64 bits.
template <typename F>
auto visit_integer(IntegerType type, F f) {
  const auto call_width = [&]<std::size_t kBytes>() {
    return type.is_signed ? f.template operator()<SizedInteger<kBytes, true>>()
                          : f.template operator()<SizedInteger<kBytes>>();
  };
  switch (type.bits) {
    case 8: return call_width.template operator()<1>();
    case 16: return call_width.template operator()<2>();
    case 32: return call_width.template operator()<4>();
    default: return call_width.template operator()<8>();
  }
}

/// f.operator()<Format>() with the format of a floating type or of the elements of a packed one.
template <typename F>
std::uint64_t visit_format(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::f16:
    case ptx::Type::f16x2: return f.template operator()<numeric::F16>();
    case ptx::Type::bf16:
    case ptx::Type::bf16x2: return f.template operator()<numeric::BF16>();
    case ptx::Type::tf32: return f.template operator()<numeric::TF32>();
    case ptx::Type::f32: return f.template operator()<numeric::F32>();
    case ptx::Type::e4m3x2: return f.template operator()<numeric::E4M3>();
    case ptx::Type::e5m2x2: return f.template operator()<numeric::E5M2>();
    default: return f.template operator()<numeric::F64>();
  }
}

/// A cast of a register to the integer in its lower bits.
template <typename I>
struct As {
  template <typename S>
  I operator()(S x) const {
    return static_cast<I>(x);
  }
};

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

/// Op::flags of the conversions with types read at run time.
struct ConvertFlags {
  ptx::Type result, source;
  ptx::Rounding rounding : 4;
  bool saturates : 1, flushes : 1, satfinite : 1, relu : 1;
  std::uint8_t result_halves : 4, source_halves : 4;  ///< 16-bit units of their registers

  ConvertFlags(const ptx::Modifiers& mods, const OperandWidths& widths)
      : result(mods.type[0]),
        source(mods.type[1]),
        rounding(mods.rounding),
        saturates(mods.sat),
        flushes(mods.ftz),
        satfinite(mods.satfinite),
        relu(mods.relu),
        result_halves(widths[0] / 2 & 15),
        source_halves(widths[1] / 2 & 15) {}
  int result_bytes() const { return result_halves * 2; }
  int source_bytes() const { return source_halves * 2; }
  numeric::Finish finish() const { return {satfinite, relu}; }
};

/// A handler also for full warps, with these flags.
inline OpPair convert_pair(OpFn run, const ptx::Instruction& inst, const OperandWidths& widths) {
  return {run, run, std::bit_cast<std::uint32_t>(ConvertFlags(inst.modifiers, widths))};
}
inline ConvertFlags convert_flags(const Op* op) { return std::bit_cast<ConvertFlags>(op->flags); }

/// A lane of .f16, .bf16, .f32 or .f64 as a double, exactly.
inline double load_floating(const Warp& warp, std::uint32_t offset, ptx::Type type, bool flushes,
                            int lane) {
  switch (type) {
    case ptx::Type::f16: return numeric::f16_to_f32(warp.reg<std::uint16_t>(offset)[lane]);
    case ptx::Type::bf16: return numeric::bf16_to_f32(warp.reg<std::uint16_t>(offset)[lane]);
    case ptx::Type::f32: {
      const float x = warp.reg<float>(offset)[lane];
      return flushes ? flush(x) : x;
    }
    default: return warp.reg<double>(offset)[lane];
  }
}

/// The encoding of `value` in a floating type, rounded once.
inline std::uint64_t encode_floating(double value, ptx::Type type, ptx::Rounding mode,
                                     numeric::Finish finish) {
  return visit_format(type, [&]<typename Format>() {
    return std::is_same_v<Format, numeric::F64> ? std::bit_cast<std::uint64_t>(value)
                                                : numeric::encode<Format>(value, mode, finish);
  });
}

inline bool is_floating(ptx::Type type) {
  return type == ptx::Type::f16 || type == ptx::Type::bf16 || type == ptx::Type::f32 ||
         type == ptx::Type::f64;
}

}  // namespace kernwright::sim::KW_SIM_NS
