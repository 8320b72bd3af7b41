// Records of allocations, kept beside any resource.
#include "memory/tracking_adaptor.h"

#include "base/byte_text.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"

namespace kernwright {

TrackingAdaptor::~TrackingAdaptor() {
  try {
    const std::string left = report();
    if (!left.empty()) {
      log(LogLevel::warning, "memory of {} was never freed: {}", device().label(), left);
    }
  } catch (const std::exception& error) {
    log_release_failure(name(), error.what());
  }
}

CUdeviceptr TrackingAdaptor::allocate(std::size_t bytes, const Stream& stream) {
  const CUdeviceptr address = ResourceAdaptor::allocate(bytes, stream);
  try {
    ledger_.add(address, bytes, stream.id());
  } catch (...) {
    ResourceAdaptor::deallocate(address, bytes, stream);
    throw;
  }
  return address;
}

void TrackingAdaptor::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  ledger_.remove(address, bytes);
  ResourceAdaptor::release(address, bytes, stream);
}

void TrackingAdaptor::deallocate(CUdeviceptr address, std::size_t bytes,
                                 const Stream& stream) noexcept {
  if (!may_release(device())) return;
  try {
    ledger_.remove(address, bytes);
  } catch (const std::exception& error) {
    log_release_failure(name(), error.what());
    return;
  }
  ResourceAdaptor::deallocate(address, bytes, stream);
}

std::string TrackingAdaptor::report(std::size_t limit) const {
  const std::vector<AllocationRecord> left = records();
  if (left.empty()) return {};
  std::uint64_t bytes = 0;
  for (const AllocationRecord& record : left) bytes += record.bytes;
  return format("{} in {} allocation{} {} in use: {}", describe_bytes(bytes), left.size(),
                left.size() == 1 ? "" : "s", left.size() == 1 ? "is" : "are",
                describe_holders(left, limit));
}

}  // namespace kernwright
