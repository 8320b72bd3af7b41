// One turn after the other.
#include "worker/device/poison.h"

#include "base/hash.h"

#include <cstddef>

namespace kernwright {

void poison(RemoteDevice& device, const RemoteBuffer& to, unsigned turn, std::uint64_t seed,
            const WaitLimits& limits) {
  if (to.bytes == 0) return;
  switch (turn) {
    case 0:
      return device.fill(to, std::byte{0xff}, limits);
    case 2:
      return device.fill(to, std::byte{0}, limits);
    case 3:
      return device.fill(to, std::byte{1}, limits);
    default:
      return device.fill_random(to, splitmix_at(seed, turn), limits);
  }
}

}  // namespace kernwright
