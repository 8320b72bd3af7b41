// Private bytes of each lane in a function's frame: parameters and results of calls.
#pragma once

#include "sim/code/layout.h"
#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// Areas 0 and 1 of every device function: its parameter and return blocks.
inline constexpr std::uint32_t kParameterArea = 0;
inline constexpr std::uint32_t kReturnArea = 1;

/// Adds areas to `lowered`, each when it is first needed.
class LaneAreas {
 public:
  /// The place of a parameter, a result or a variable of a call.
  struct Place {
    std::uint32_t area = 0;
    std::uint32_t stride = 0;
    std::int64_t offset = 0;
  };

  LaneAreas(Lowered& lowered, const ptx::Function& function, const FunctionInfo& info);

  /// The number of a new area.
  std::uint32_t add(std::uint32_t bytes);
  /// The area of a variable in parameter space.
  std::uint32_t variable_area(std::uint32_t index);
  const LaneArea& at(std::uint32_t area) const { return lowered_.areas[area]; }
  /// Empty for a symbol without an area: of another state space, or a kernel's parameter.
  std::optional<Place> place(const ptx::Operand& operand);

 private:
  Lowered& lowered_;
  const ptx::Function& function_;
  const FunctionInfo& info_;
  std::vector<std::uint32_t> variables_;  ///< per Function::variables: area or ~0
};

}  // namespace kernwright::sim
