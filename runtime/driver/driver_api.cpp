// The table with no driver behind it, and the enumerators by name.
#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kernwright {

namespace {

// Numbers and texts apart: each pointer to a text costs the extension 32 bytes.

enum class TypeId : std::uint8_t {
#define KW_ENUM(type) type,
#define KW_VALUE(type, name, value)
#define KW_ENUM_END(type)
#include "driver/driver_enums.def"
};

constexpr const char* kTypes[] = {
#define KW_ENUM(type) #type,
#define KW_VALUE(type, name, value)
#define KW_ENUM_END(type)
#include "driver/driver_enums.def"
};

struct Value {
  int value;
  TypeId type;
};

constexpr Value kValues[] = {
#define KW_ENUM(type)
#define KW_VALUE(type, name, value) {value, TypeId::type},
#define KW_ENUM_END(type)
#include "driver/driver_enums.def"
};

/// Names of all values, each with a NUL behind it.
constexpr char kNames[] =
#define KW_ENUM(type)
#define KW_VALUE(type, name, value) #name "\0"
#define KW_ENUM_END(type)
#include "driver/driver_enums.def"
    ;

}  // namespace

std::span<const DriverEnumerator> driver_enumerators() {
  static const auto* const rows = [] {
    auto* const made = new std::vector<DriverEnumerator>;
    const char* name = kNames;
    for (const Value& row : kValues) {
      made->push_back({kTypes[static_cast<std::size_t>(row.type)], name, row.value});
      name += std::strlen(name) + 1;
    }
    return made;
  }();
  return *rows;
}

const char* result_name(CUresult code) noexcept {
  const char* name = kNames;
  for (const Value& row : kValues) {
    if (row.type == TypeId::CUresult && row.value == code) return name;
    name += std::strlen(name) + 1;
  }
  return nullptr;
}

}  // namespace kernwright
