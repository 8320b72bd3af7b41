// Sizes in words.
#include "base/byte_text.h"

#include "base/format.h"

#include <cstddef>
#include <iterator>

namespace kernwright {

std::string describe_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // What would be written as 1024.0 has the next unit.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits) && bytes >= 1024) {
    value /= 1024;
    ++unit;
  }
  const bool is_whole = bytes % (std::uint64_t{1} << (10 * unit)) == 0;
  return is_whole ? format("{} {}", bytes >> (10 * unit), kUnits[unit])
                  : format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace kernwright
