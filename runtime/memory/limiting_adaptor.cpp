// Counting bytes in use against a limit.
#include "memory/limiting_adaptor.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "memory/reclaim.h"

#include <limits>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

}  // namespace

LimitingAdaptor::LimitingAdaptor(std::shared_ptr<MemoryResource> upstream, std::size_t limit)
    : ResourceAdaptor(std::move(upstream)), limit_(limit) {
  if (limit == 0) throw InvalidArgument("a limit of 0 bytes leaves no memory at all");
}

CUdeviceptr LimitingAdaptor::allocate(std::size_t bytes, const Stream& stream) {
  require_allocatable(device(), bytes, stream);
  take(bytes);
  try {
    return ResourceAdaptor::allocate(bytes, stream);
  } catch (...) {
    note_freed(bytes);
    throw;
  }
}

void LimitingAdaptor::take(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  if (bytes > limit_ || used_ > limit_ - bytes) {
    ++refused_;
    const std::size_t limit = limit_;
    const std::size_t used = used_;
    lock.unlock();
    const std::string holders = is_reclaim_forbidden() ? "" : describe_holders(records());
    throw OutOfMemory(
        format("{}: no memory for {} bytes, over the limit of {} bytes; {} bytes used{}{}",
               device().identify(), bytes, limit, used, holders.empty() ? "" : "; held: ", holders),
        bytes, used, used, limit > used ? limit - used : 0);
  }
  used_ += bytes;
}

void LimitingAdaptor::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  ResourceAdaptor::release(address, bytes, stream);
  note_freed(bytes);
}

void LimitingAdaptor::deallocate(CUdeviceptr address, std::size_t bytes,
                                 const Stream& stream) noexcept {
  // NOTE: not upstream's deallocate(): it would not say whether the memory was freed.
  if (!may_release(device())) return;
  try {
    release(address, bytes, stream);
  } catch (const std::exception& error) {
    log_release_failure(name(), error.what());
  }
}

void LimitingAdaptor::note_freed(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
}

MemoryStats LimitingAdaptor::stats() const {
  MemoryStats stats = ResourceAdaptor::stats();
  const std::lock_guard lock(mutex_);
  stats.limit = limit_ == kNone ? 0 : limit_;
  stats.failures += refused_;
  return stats;
}

void LimitingAdaptor::set_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes != 0 && bytes < used_) throw_limit_below_use(device(), bytes, used_);
  limit_ = bytes != 0 ? bytes : kNone;
}

}  // namespace kernwright
