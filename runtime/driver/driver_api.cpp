// The table with no driver behind it, and the enumerators by name.
#include "driver/driver_api.h"

#include <cstring>

namespace kernwright {

namespace {

constexpr DriverEnumerator kEnumerators[] = {
#define KW_ENUM(type)
#define KW_VALUE(type, name, value) {#type, #name, value},
#define KW_ENUM_END(type)
#include "driver/driver_enums.def"
};

}  // namespace

DriverApi unsupported_driver_api() noexcept { return DriverApi{}; }

std::span<const DriverEnumerator> driver_enumerators() noexcept { return kEnumerators; }

const char* result_name(CUresult code) noexcept {
  for (const DriverEnumerator& row : kEnumerators) {
    if (row.value == code && std::strcmp(row.type, "CUresult") == 0) return row.name;
  }
  return nullptr;
}

}  // namespace kernwright
