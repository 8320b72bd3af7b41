// The feature table by compute capability.
#include "core/capability.h"

namespace kernwright {

Capabilities capabilities_of(ComputeCapability capability) noexcept {
  const int number = capability.number();
  Capabilities can;
  can.tensor_cores = number >= 70;
  can.bf16 = number >= 80;
  can.tf32 = number >= 80;
  can.async_copy = number >= 80;
  can.fp8 = number >= 89;
  can.tma = number >= 90;
  can.clusters = number >= 90;
  can.wgmma = number == 90;
  can.fp4 = number >= 100;
  can.tcgen05 = number >= 100 && number < 120;
  return can;
}

}  // namespace kernwright
