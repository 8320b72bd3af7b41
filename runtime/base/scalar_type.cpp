// Names and classes of the element types.
#include "base/scalar_type.h"

#include <array>

namespace kernwright {

namespace {

enum class Class : std::uint8_t { boolean, signed_integer, unsigned_integer, floating, complex };

struct Row {
  std::string_view name;
  Class kind;
};

// In the order of ScalarType.
constexpr std::array<Row, kScalarTypeCount> kRows = {{
    {"bool", Class::boolean},
    {"int8", Class::signed_integer},
    {"int16", Class::signed_integer},
    {"int32", Class::signed_integer},
    {"int64", Class::signed_integer},
    {"uint8", Class::unsigned_integer},
    {"uint16", Class::unsigned_integer},
    {"uint32", Class::unsigned_integer},
    {"uint64", Class::unsigned_integer},
    {"float16", Class::floating},
    {"bfloat16", Class::floating},
    {"float32", Class::floating},
    {"float64", Class::floating},
    {"float8_e4m3fn", Class::floating},
    {"float8_e5m2", Class::floating},
    {"complex64", Class::complex},
    {"complex128", Class::complex},
}};
static_assert(static_cast<int>(ScalarType::complex128) + 1 == kScalarTypeCount);

constexpr Row kUnknown = {"unknown", Class::boolean};

constexpr const Row& row(ScalarType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kRows.size() ? kRows[index] : kUnknown;
}

}  // namespace

std::string_view scalar_name(ScalarType type) noexcept { return row(type).name; }

std::optional<ScalarType> scalar_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ScalarType>(i);
  }
  return std::nullopt;
}

bool is_signed_integer(ScalarType type) noexcept { return row(type).kind == Class::signed_integer; }

bool is_unsigned_integer(ScalarType type) noexcept {
  return row(type).kind == Class::unsigned_integer;
}

bool is_floating(ScalarType type) noexcept { return row(type).kind == Class::floating; }

bool is_complex(ScalarType type) noexcept { return row(type).kind == Class::complex; }

ScalarType real_part_type(ScalarType type) noexcept {
  if (type == ScalarType::complex64) return ScalarType::float32;
  return type == ScalarType::complex128 ? ScalarType::float64 : type;
}

}  // namespace kernwright
