// Register values for a person.
#include "base/format.h"
#include "sim/mem/address.h"
#include "sim/numeric/half.h"
#include "sim/trace.h"

#include <bit>

namespace kernwright::sim {
namespace {

namespace numeric = KW_SIM_NS::numeric;

int type_bits(const std::string& type) {
  const std::size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos ? 0 : std::stoi(type.substr(digit));
}

std::string signed_text(std::uint64_t bits, int width) {
  const int unused = 64 - width;
  return format("{}", static_cast<std::int64_t>(bits << unused) >> unused);
}

}  // namespace

std::string trace_value(const std::string& type, const TraceBits& bits) {
  const auto low16 = static_cast<std::uint16_t>(bits.low);
  const auto low32 = static_cast<std::uint32_t>(bits.low);
  if (type == "pred") return bits.low != 0 ? "true" : "false";
  if (type == "f32" || type == "tf32") return format("{}", std::bit_cast<float>(low32));
  if (type == "f64") return format("{}", std::bit_cast<double>(bits.low));
  if (type == "f16") return format("{}", numeric::f16_to_f32(low16));
  if (type == "bf16") return format("{}", numeric::bf16_to_f32(low16));
  if (type == "f16x2" || type == "bf16x2" || type == "u16x2" || type == "s16x2") {
    const std::string one = type.substr(0, type.size() - 2);
    return format("({}, {})", trace_value(one, {bits.low & 0xffff, 0}),
                  trace_value(one, {bits.low >> 16 & 0xffff, 0}));
  }
  const int width = type_bits(type);
  const std::uint64_t mask =
      width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - std::uint64_t{1};
  const char kind = type.empty() ? 'b' : type.front();
  const bool is_integer = width != 0 && width <= 64 && !type.ends_with("x2");
  if (is_integer && width == 64 && bits.low >= kGlobalTag &&
      bits.low < kFunctionWindow + kGlobalTag)
    return format("{:#x}", bits.low);  // an address
  if (kind == 's' && is_integer) return signed_text(bits.low, width);
  if (kind == 'u' && is_integer) return format("{}", bits.low & mask);
  if (width > 64) return format("{:#x}{:016x}", bits.high, bits.low);
  // Bits without a meaning; they are often a small number.
  std::string text = format("{:#x}", width == 0 ? bits.low : bits.low & mask);
  if (kind == 'b' && is_integer) text += format(" ({})", signed_text(bits.low, width));
  return text;
}

}  // namespace kernwright::sim
