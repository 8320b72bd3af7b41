// Registers of wgmma that are in flight between the instruction and its wait.
#pragma once

#include "sim/ir/lowered.h"

#include <cstdint>

namespace kernwright::sim {

/// Gives each wgmma.mma_async of the function the list of its registers (PendingProduct), and puts
/// check_flight() before each other op that touches one of them.
void watch_flight(Lowered& function, std::uint32_t index);

}  // namespace kernwright::sim
