// Asking about links between devices, and opening each of them once.
#include "core/peers.h"

#include "base/format.h"
#include "core/device.h"

#include <map>
#include <mutex>
#include <utility>

namespace kernwright {
namespace {

/// Links that were opened, or found closed. Leaked on purpose, as devices live for good.
struct Links {
  std::mutex mutex;
  std::map<std::pair<const Device*, const Device*>, bool> usable;
};

Links& links() {
  static auto* const instance = new Links;
  return *instance;
}

int attribute(Device& device, Device& peer, CUdevice_P2PAttribute which) {
  int value = 0;
  const CUresult result =
      device.driver().cuDeviceGetP2PAttribute(&value, which, device.handle(), peer.handle());
  // A driver that does not tell has no link worth ranking.
  return result == CUDA_SUCCESS ? value : 0;
}

bool can_access(Device& device, Device& peer) {
  int can = 0;
  const CUresult result =
      device.driver().cuDeviceCanAccessPeer(&can, device.handle(), peer.handle());
  if (result != CUDA_SUCCESS) device.fail(result, "cuDeviceCanAccessPeer", peer.identify());
  return can != 0;
}

bool open(Device& device, Device& peer) {
  if (!can_access(device, peer)) return false;
  const ContextGuard guard(device);
  const CUresult result = device.driver().cuCtxEnablePeerAccess(peer.context(), 0);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return true;
  // A device has a limited number of links; without one more, copies are staged.
  if (result == CUDA_ERROR_TOO_MANY_PEERS || result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) {
    return false;
  }
  device.fail(result, "cuCtxEnablePeerAccess", peer.identify());
}

}  // namespace

PeerLink peer_link(Device& device, Device& peer) {
  if (&device == &peer) return {.access = true, .native_atomics = true, .rank = 0};
  if (&device.driver() != &peer.driver()) return {};
  if (!can_access(device, peer)) return {};
  return {.access = true,
          .native_atomics =
              attribute(device, peer, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED) != 0,
          .rank = attribute(device, peer, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)};
}

bool enable_peer_access(Device& device, Device& peer) {
  if (&device == &peer) return true;
  if (&device.driver() != &peer.driver()) return false;
  Links& all = links();
  const std::lock_guard lock(all.mutex);
  const auto key = std::pair<const Device*, const Device*>(&device, &peer);
  if (const auto known = all.usable.find(key); known != all.usable.end()) return known->second;
  const bool usable = open(device, peer);
  all.usable.emplace(key, usable);
  return usable;
}

}  // namespace kernwright
