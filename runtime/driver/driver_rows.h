// The slots of the driver table by number and by name, for decorators that wrap each of them.
#pragma once

#include <array>
#include <cstddef>

namespace kernwright::detail {

/// One value per row of driver_api.def.
enum class Row : std::size_t {
#define KW_DRIVER(name, symbol, since, need, parameters) name,
#define KW_DRIVER_EXTENSION(name, parameters) name,
#include "driver/driver_api.def"
  count,
};

inline constexpr std::size_t kRows = static_cast<std::size_t>(Row::count);

inline constexpr std::array<const char*, kRows> kRowNames = {
#define KW_DRIVER(name, symbol, since, need, parameters) #name,
#define KW_DRIVER_EXTENSION(name, parameters) #name,
#include "driver/driver_api.def"
};

}  // namespace kernwright::detail
