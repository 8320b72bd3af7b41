// Names and sizes of PTX types.
#include "sim/ptx/types.h"

#include "sim/ptx/type_names.h"

#include <algorithm>

namespace kernwright::sim::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

// Indexed by Type.
constexpr std::array<TypeRow, 33> kTypes{{
    {"none", 0},   {"pred", 1},   {"b1", 1},    {"b8", 8},      {"b16", 16},    {"b32", 32},
    {"b64", 64},   {"b128", 128}, {"u4", 4},    {"u8", 8},      {"u16", 16},    {"u32", 32},
    {"u64", 64},   {"s4", 4},     {"s8", 8},    {"s16", 16},    {"s32", 32},    {"s64", 64},
    {"f16", 16},   {"f16x2", 32}, {"bf16", 16}, {"bf16x2", 32}, {"tf32", 32},   {"f32", 32},
    {"f64", 64},   {"e4m3", 8},   {"e5m2", 8},  {"e4m3x2", 16}, {"e5m2x2", 16}, {"u16x2", 32},
    {"s16x2", 32}, {"u2", 2},     {"s2", 2},
}};

}  // namespace

int bits(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }

std::string_view name(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }

Type type_from_name(std::string_view text) noexcept {
  for (std::size_t i = 1; i <= static_cast<std::size_t>(Type::s2); ++i) {
    if (kTypes[i].name == text) return static_cast<Type>(i);
  }
  return Type::none;
}

}  // namespace kernwright::sim::ptx
