// Names and sizes of PTX types.
#include "sim/ptx/types.h"

#include <iterator>

namespace kernwright::sim::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

// Indexed by Type.
constexpr TypeRow kTypes[] = {
#define KW_TYPE(name, bits) {#name, bits},
#include "sim/ptx/types.inc"
#undef KW_TYPE
};

}  // namespace

int bits(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }

std::string_view name(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }

Type type_from_name(std::string_view text) noexcept {
  for (std::size_t i = 1; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == text) return static_cast<Type>(i);
  }
  return Type::none;
}

TypeClass class_id(Type type) {
  switch (type) {
    case Type::pred: return TypeClass::predicate;
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64: return TypeClass::integer;
    case Type::f32:
    case Type::f64: return TypeClass::floating;
    case Type::none:
    case Type::b1:
    case Type::b8:
    case Type::b16:
    case Type::b32:
    case Type::b64:
    case Type::b128: return TypeClass::untyped;
    default: return TypeClass::packed;
  }
}

bool fits(Type reg, Type type, bool wider) {
  const TypeClass register_class = class_id(reg);
  const TypeClass type_class = class_id(type);
  if ((register_class == TypeClass::predicate) != (type_class == TypeClass::predicate))
    return false;
  const bool untyped = register_class == TypeClass::untyped || type_class == TypeClass::untyped;
  if (bits(reg) != bits(type)) {
    const bool floating =
        register_class == TypeClass::floating || type_class == TypeClass::floating;
    return wider && (untyped || !floating) && bits(reg) > bits(type) && bits(reg) <= 64;
  }
  if (reg == type || register_class == type_class)
    return register_class != TypeClass::packed || reg == type;
  if (untyped) return true;
  if (type == Type::tf32 && register_class == TypeClass::floating) return true;
  const auto half_or_integer = [](TypeClass c) {
    return c == TypeClass::packed || c == TypeClass::integer;
  };
  return half_or_integer(register_class) && half_or_integer(type_class);
}

}  // namespace kernwright::sim::ptx
