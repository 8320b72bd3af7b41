// Several GPUs: which reach each other's memory, and letting them.
#pragma once

namespace kernwright {

class Device;

/// How one device reaches the memory of another.
struct PeerLink {
  bool access = false;          ///< directly; else copies are staged through the host
  bool native_atomics = false;  ///< atomics over the link are the hardware's own
  int rank = 0;                 ///< the driver's ranking of links: lower is quicker
};

/// The driver's answer about copies and accesses from `device` to `peer`. A device reaches itself;
/// a GPU and the simulated device do not reach each other. Throws DriverError.
PeerLink peer_link(Device& device, Device& peer);

/// Lets kernels and copies of `device` reach the memory of `peer` where there is a link; from then
/// on for good. Returns whether they can. Idempotent, thread-safe; a link that another library has
/// opened already is as good.
bool enable_peer_access(Device& device, Device& peer);

}  // namespace kernwright
