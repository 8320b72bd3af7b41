// How much memory workers may use.
#pragma once

#include <cstdint>

namespace kernwright {

/// Bytes of memory for this process and its children: of the machine, or of their control group.
std::uint64_t memory_of_machine();

/// Resident bytes at which a worker is killed: half of that, at least 1 GiB. The parent watches its
/// size. A limit of address space would forbid the reservations of CUDA and of the simulated
/// device: they are far larger than any memory. It would also end as a crash in a driver or
/// compiler, while this limit ends as a clear error.
std::uint64_t memory_of_worker();

}  // namespace kernwright
