// The table of promotion.
#include "kernels_src/elementwise/promotion.h"

#include "base/errors.h"
#include "base/format.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace kernwright::kernels {
namespace {

// A letter for each type, in the order of ScalarType.
constexpr std::string_view kLetters = "?bhilBHILeEfdvwFD";
// One row for each type.
constexpr std::array<std::string_view, kScalarTypeCount> kPromotions = {
    "?bhilBHILeEfdvwFD", "bbhilhildeEfdvwFD", "hhhilhildfffdffFD", "iiiiliildddddddDD",
    "lllllllldddddddDD", "BhhilBHILeEfdvwFD", "HiiilHHILfffdffFD", "IllllIIILddddddDD",
    "LddddLLLLddddddDD", "eefddefddeffdffFD", "EEfddEfddfEfdEEFD", "fffddffddfffdffFD",
    "dddddddddddddddDD", "vvfddvfddfEfdvfFD", "wwfddwfddfEfdfwFD", "FFFDDFFDDFFFDFFFD",
    "DDDDDDDDDDDDDDDDD",
};

std::atomic<ScalarType> default_real = ScalarType::float32;

std::size_t index_of(ScalarType type) noexcept { return static_cast<std::size_t>(type); }

/// bool, unsigned, signed, floating, complex: a kind takes values of all earlier kinds.
int type_kind(ScalarType type) noexcept {
  if (type == ScalarType::boolean) return 0;
  if (is_unsigned_integer(type)) return 1;
  if (is_signed_integer(type)) return 2;
  return is_complex(type) ? 4 : 3;
}

}  // namespace

ScalarType promote(ScalarType a, ScalarType b) noexcept {
  return static_cast<ScalarType>(kLetters.find(kPromotions[index_of(a)][index_of(b)]));
}

ScalarType promote(ScalarType type, Weak number) noexcept {
  switch (number) {
    case Weak::none:
      return type;
    case Weak::integer:
      return type == ScalarType::boolean ? ScalarType::int64 : type;
    case Weak::real:
      return type_kind(type) < 3 ? ScalarType::float64 : type;
    case Weak::complex:
      break;
  }
  if (is_complex(type)) return type;
  const bool narrow = is_floating(type) && type != ScalarType::float64;
  return narrow ? ScalarType::complex64 : ScalarType::complex128;
}

ScalarType default_type(Weak number) noexcept {
  if (number == Weak::integer) return ScalarType::int64;
  const ScalarType real = default_real.load(std::memory_order_relaxed);
  return number == Weak::real ? real : promote(real, number);
}

void set_default_real(ScalarType type) {
  if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32 &&
      type != ScalarType::float64) {
    throw ArgumentError(
        format("the default element type is float16, bfloat16, float32 or float64, not {}",
               scalar_name(type)));
  }
  default_real.store(type, std::memory_order_relaxed);
}

bool can_cast(ScalarType from, ScalarType to) noexcept { return promote(from, to) == to; }

bool can_cast_same_kind(ScalarType from, ScalarType to) noexcept {
  return type_kind(from) <= type_kind(to);
}

}  // namespace kernwright::kernels
