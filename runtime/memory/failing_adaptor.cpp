// Failing at the chosen call.
#include "memory/failing_adaptor.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

#include <utility>

namespace kernwright {

FailingAdaptor::FailingAdaptor(std::shared_ptr<MemoryResource> upstream, std::uint64_t first,
                               std::uint64_t times)
    : ResourceAdaptor(std::move(upstream)), first_(first), times_(times) {}

CUdeviceptr FailingAdaptor::allocate(std::size_t bytes, const Stream& stream) {
  require_allocatable(device(), bytes, stream);
  const std::uint64_t number = ++calls_;
  if (number >= first_ && number - first_ < times_) {
    const MemoryStats now = stats();
    throw OutOfMemory(format("{}: allocation {} of {} bytes fails as planned", device().identify(),
                             number, bytes),
                      bytes, now.used, now.reserved, 0);
  }
  return ResourceAdaptor::allocate(bytes, stream);
}

}  // namespace kernwright
