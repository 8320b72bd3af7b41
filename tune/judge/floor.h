// The least possible time of a task on a device.
#pragma once

#include "core/kernel_signature.h"
#include "sim/line_profile.h"
#include "tune/judge/host_case.h"
#include "worker/device/device_facts.h"

#include <string>

namespace kernwright {

struct Floor {
  double value = 0;    ///< milliseconds, or counts; 0: none is known
  std::string reason;  ///< "25.2 MB at 3352 GB/s"
};

/// The least time of a launch of the case on a GPU: its bytes at the memory's peak bandwidth, its
/// operations at the highest rate of any unit of such a GPU for these types (tensor cores, dense).
/// Inputs are not in the L2 cache; of the writes, as much as L2 holds need not reach the memory in
/// time.
Floor time_floor(const Task& task, const HostCase& host_case, const KernelSignature& signature,
                 const DeviceFacts& facts);

/// The same in instructions and transactions of the simulated device: a transaction moves 32 bytes,
/// an instruction of a warp does at most 2**18 operations. What instructions may have moved in
/// uncounted ways (fragments of wmma, bulk copies) needs no transactions.
Floor count_floor(const Task& task, const HostCase& host_case, const sim::LineCounts& counts);

}  // namespace kernwright
