// Random use of one device by one thread, checked against a model on the host.
#pragma once

#include "core/device.h"

#include <chrono>
#include <cstdint>

namespace kernwright::testing {

/// Allocates, frees, copies, launches, waits, captures and trims at random, until the deadline; the
/// same steps for the same seed. Throws std::logic_error when memory does not hold what it should.
/// Returns the number of steps.
std::uint64_t work_at_random(Device& device, std::uint64_t seed,
                             std::chrono::steady_clock::time_point deadline);

}  // namespace kernwright::testing
