// The areas of a frame, padded to align those of neighbouring lanes.
#include "sim/code/lower/lane_areas.h"

#include <algorithm>

namespace kernwright::sim {

LaneAreas::LaneAreas(Lowered& lowered, const ptx::Function& function, const FunctionInfo& info)
    : lowered_(lowered),
      function_(function),
      info_(info),
      variables_(function.variables.size(), ~0u) {
  if (function.is_entry) return;
  add(info.parameter_bytes);
  add(info.return_bytes);
}

std::uint32_t LaneAreas::add(std::uint32_t bytes) {
  lowered_.areas.push_back({bytes, std::max(16u, (bytes + 15) / 16 * 16)});
  return static_cast<std::uint32_t>(lowered_.areas.size() - 1);
}

std::uint32_t LaneAreas::variable_area(std::uint32_t index) {
  std::uint32_t& area = variables_[index];
  if (area == ~0u) area = add(static_cast<std::uint32_t>(function_.variables[index].bytes()));
  return area;
}

std::optional<LaneAreas::Place> LaneAreas::place(const ptx::Operand& operand) {
  using ptx::SymbolKind;
  Place place;
  if (operand.symbol_kind == SymbolKind::variable &&
      function_.variables[operand.symbol_index].space == ptx::Space::param) {
    place.area = variable_area(operand.symbol_index);
  } else if (operand.symbol_kind == SymbolKind::parameter && !function_.is_entry) {
    place.area = kParameterArea;
    place.offset = info_.parameters[operand.symbol_index].offset;
  } else if (operand.symbol_kind == SymbolKind::result && !function_.is_entry) {
    std::vector<ParameterSlot> slots;
    pack_parameters(function_.returns, slots);
    place.area = kReturnArea;
    place.offset = slots[operand.symbol_index].offset;
  } else {
    return std::nullopt;
  }
  place.stride = at(place.area).stride;
  return place;
}

}  // namespace kernwright::sim
