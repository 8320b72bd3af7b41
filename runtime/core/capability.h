// Features by compute capability; kernels choose their code by these.
#pragma once

namespace kernwright {

struct ComputeCapability {
  int major = 0, minor = 0;
  int number() const noexcept { return major * 10 + minor; }  ///< 80, 90, 100, ...
  bool operator==(const ComputeCapability&) const = default;
};

/// Hardware features by compute capability alone. A value.
struct Capabilities {
  bool tensor_cores = false;  ///< mma on float16 (boards of the 16 series report 7.5 without them)
  bool bf16 = false;          ///< mma on bfloat16
  bool tf32 = false;          ///< mma on tf32
  bool fp8 = false;           ///< mma on e4m3 and e5m2
  bool fp4 = false;           ///< mma on e2m1
  bool async_copy = false;    ///< cp.async from global to shared memory
  bool tma = false;           ///< bulk tensor copies
  bool clusters = false;      ///< thread block clusters and distributed shared memory
  bool wgmma = false;         ///< warpgroup mma: 9.0 only, in code compiled for sm_90a
  bool tcgen05 = false;       ///< tensor memory and its mma: the data centre parts from 10.0 on
  bool operator==(const Capabilities&) const = default;
};

Capabilities capabilities_of(ComputeCapability capability) noexcept;

}  // namespace kernwright
