// Sizes, bytes and buffers for the tests of memory.
#pragma once

#include "core/device.h"
#include "memory/buffer.h"
#include "memory/pool/pool_resource.h"

#include <cstddef>
#include <memory>
#include <random>
#include <vector>

namespace kernwright::testing {

using Bytes = std::vector<unsigned char>;

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

/// Not of the default resource: its pool would keep memory, and tests want to see it given back.
inline Buffer unpooled_buffer(Device& device, std::size_t bytes) {
  return Buffer(std::make_shared<DeviceResource>(device), bytes, {});
}

inline std::shared_ptr<PoolResource> pool_of(Device& device) {
  return std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device));
}

}  // namespace kernwright::testing
