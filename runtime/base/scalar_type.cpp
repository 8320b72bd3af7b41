// Sizes, names and classes of the element types.
#include "base/scalar_type.h"

#include <array>

namespace kernwright {

namespace {

enum class Class : std::uint8_t { boolean, signed_integer, unsigned_integer, floating, complex };

struct Row {
  std::string_view name;
  std::uint8_t size;
  Class kind;
};

// In the order of ScalarType.
constexpr std::array<Row, kScalarTypeCount> kRows = {{
    {"bool", 1, Class::boolean},
    {"int8", 1, Class::signed_integer},
    {"int16", 2, Class::signed_integer},
    {"int32", 4, Class::signed_integer},
    {"int64", 8, Class::signed_integer},
    {"uint8", 1, Class::unsigned_integer},
    {"uint16", 2, Class::unsigned_integer},
    {"uint32", 4, Class::unsigned_integer},
    {"uint64", 8, Class::unsigned_integer},
    {"float16", 2, Class::floating},
    {"bfloat16", 2, Class::floating},
    {"float32", 4, Class::floating},
    {"float64", 8, Class::floating},
    {"float8_e4m3fn", 1, Class::floating},
    {"float8_e5m2", 1, Class::floating},
    {"complex64", 8, Class::complex},
    {"complex128", 16, Class::complex},
}};
static_assert(static_cast<int>(ScalarType::complex128) + 1 == kScalarTypeCount);

constexpr Row kUnknown = {"unknown", 0, Class::boolean};

constexpr const Row& row(ScalarType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kRows.size() ? kRows[index] : kUnknown;
}

}  // namespace

std::size_t scalar_size(ScalarType type) noexcept { return row(type).size; }

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

ScalarType real_type_of(ScalarType type) noexcept {
  if (type == ScalarType::complex64) return ScalarType::float32;
  return type == ScalarType::complex128 ? ScalarType::float64 : type;
}

}  // namespace kernwright
