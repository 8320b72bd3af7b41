// How much memory workers may use.
#pragma once

#include <cstdint>

namespace kernwright {

/// Bytes that this process and its children may use: of the machine, or of their control group.
std::uint64_t memory_of_machine();

/// Resident bytes at which a worker is killed: half of that, at least 1 GiB. Somebody watches its
/// size, since a limit of its address space would forbid CUDA's reservations and those of the
/// simulated device, which are far larger than any memory; what a limit refuses also ends as a
/// crash somewhere in a driver or a compiler, where this one ends as an error that says so.
std::uint64_t memory_of_worker();

}  // namespace kernwright
