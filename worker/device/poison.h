// Contents of outputs before a launch whose results are compared.
#pragma once

#include "worker/device/remote_device.h"

#include <cstdint>

namespace kernwright {

/// Fills `to` with contents that no result may depend on, different in each turn: 0xff (NaN as a
/// float), random bytes, zeros, ones, and random bytes from then on. `seed` draws the random bytes.
void poison(RemoteDevice& device, const RemoteBuffer& to, unsigned turn, std::uint64_t seed,
            const WaitLimits& limits = {});

}  // namespace kernwright
