// Issuing copies, for driver functions.
#pragma once

#include "sim/device/stream/work.h"
#include "sim/device/stream/work_queues.h"

namespace kernwright::sim {

/// In stream order. Throws Failure.
void copy_async(const StreamUse& use, CopyWork&& copy);
/// On the default stream; `wait`: it has ended when the call returns, whatever it copies.
void copy_now(CopyWork&& copy, bool wait);

}  // namespace kernwright::sim
