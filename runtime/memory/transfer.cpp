// Copies and fills: one driver call each, and a wait where the caller gave no stream.
#include "memory/transfer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/activity.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/peers.h"
#include "core/transfer_counts.h"
#include "memory/transfer_engine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright {
namespace {

void require_device_stream(const Device& device, const Stream& stream) {
  if (!stream || &stream.device() == &device) return;
  throw InvalidArgument(
      format("memory of {} cannot be used on {}", device.identify(), stream.identify()));
}

/// A copy of host memory that a graph could not repeat, or would run with stale contents.
void refuse_pageable_capture(Device& device, const Stream& stream, const void* host) {
  if (!any_capture()) return;
  if (!stream) return refuse_in_capturing_thread(device, "a copy to or from the host");
  require_captured(device, stream, "a copy to or from the host");
  if (find_capture(device, stream.handle()) == nullptr || is_page_locked(device, host)) return;
  throw CaptureError(
      format("a copy of pageable host memory on {}, which is being captured into a graph: the "
             "memory need not be there when the graph is launched; use page-locked memory, or copy "
             "before the capture",
             stream.identify()),
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/// Reports a failed call with its sizes; with an empty stream also waits for the legacy stream,
/// because the driver's "synchronous" calls may return before device memory is written.
void finish(Device& device, const Stream& stream, CUresult result, const char* call,
            std::size_t bytes, CUdeviceptr address) {
  if (result == CUDA_SUCCESS && !stream) result = device.driver().cuStreamSynchronize(nullptr);
  if (result != CUDA_SUCCESS) {
    device.fail(result, call, format("{} bytes at {:#x}", bytes, address));
  }
}

/// The scope of a copy or a fill while activities are recorded.
std::optional<ActivityScope> watch(Device& device, Activity::Kind kind, const char* name,
                                   std::size_t bytes, const Stream& stream) {
  std::optional<ActivityScope> scope;
  if (is_recording_activity()) [[unlikely]] {
    scope.emplace(
        Activity{.kind = kind, .name = name, .device = &device, .bytes = bytes, .site = {}},
        stream.handle(), true);
  }
  return scope;
}

/// A pattern of `size` bytes that repeats a shorter one is filled as that one: wider stores are
/// quicker than strided ones, and 8 bytes have no fill of their own.
std::size_t shrink_pattern(std::uint64_t& pattern, std::size_t size) noexcept {
  while (size > 1) {
    const std::size_t half_bits = size * 4;
    const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
    if ((pattern & mask) != ((pattern >> half_bits) & mask)) break;
    pattern &= mask;
    size /= 2;
  }
  return size;
}

CUresult fill_pairs(const DriverApi& api, CUdeviceptr to, std::uint64_t pattern, std::size_t count,
                    CUstream stream) {
  const auto low = static_cast<unsigned>(pattern);
  const auto high = static_cast<unsigned>(pattern >> 32);
  const CUresult result = api.cuMemsetD2D32Async(to, 8, low, 1, count, stream);
  if (result != CUDA_SUCCESS) return result;
  return api.cuMemsetD2D32Async(to + 4, 8, high, 1, count, stream);
}

}  // namespace

namespace {

thread_local TransferClass thread_class = TransferClass::normal;

/// Calls copy(begin, bytes) for the whole; in a thread of best effort for pieces, so that copies of
/// others get between. The thread waits for all pieces but the last two.
template <typename Copy>
CUresult in_pieces(Device& device, std::size_t bytes, const Stream& stream, const Copy& copy) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  if (thread_class != TransferClass::best_effort || bytes <= kPiece || any_capture()) {
    return copy(0, bytes);
  }
  std::array<std::optional<Event>, 2> ends;
  for (std::size_t done = 0, i = 0; done < bytes; done += kPiece, ++i) {
    std::optional<Event>& end = ends[i % 2];
    if (end) end->synchronize();
    const CUresult result = copy(done, std::min(kPiece, bytes - done));
    if (result != CUDA_SUCCESS) return result;
    if (!stream) continue;  // the copy is done
    if (!end) end.emplace(device, false);
    end->record(stream);
  }
  return CUDA_SUCCESS;
}

}  // namespace

TransferClass thread_transfer_class() noexcept { return thread_class; }
TransferScope::TransferScope(TransferClass kind) noexcept
    : former_(std::exchange(thread_class, kind)) {}
TransferScope::~TransferScope() { thread_class = former_; }

void copy_to_device(Device& device, CUdeviceptr to, const void* from, std::size_t bytes,
                    const Stream& stream) {
  require_device_stream(device, stream);
  if (bytes == 0) return;
  const ContextGuard guard(device);
  refuse_pageable_capture(device, stream, from);
  auto activity = watch(device, Activity::Kind::copy, "host to device", bytes, stream);
  const DriverApi& api = device.driver();
  const CUresult result = in_pieces(device, bytes, stream, [&](std::size_t at, std::size_t size) {
    const void* const source = static_cast<const std::byte*>(from) + at;
    return stream ? api.cuMemcpyHtoDAsync(to + at, source, size, stream.handle())
                  : api.cuMemcpyHtoD(to + at, source, size);
  });
  finish(device, stream, result, "cuMemcpyHtoD", bytes, to);
  count_transfer(device, TransferWay::to_device, bytes);
  if (activity) activity->finish();
}

void copy_to_host(Device& device, void* to, CUdeviceptr from, std::size_t bytes,
                  const Stream& stream) {
  require_device_stream(device, stream);
  if (bytes == 0) return;
  const ContextGuard guard(device);
  refuse_pageable_capture(device, stream, to);
  auto activity = watch(device, Activity::Kind::copy, "device to host", bytes, stream);
  const DriverApi& api = device.driver();
  const CUresult result = in_pieces(device, bytes, stream, [&](std::size_t at, std::size_t size) {
    void* const target = static_cast<std::byte*>(to) + at;
    return stream ? api.cuMemcpyDtoHAsync(target, from + at, size, stream.handle())
                  : api.cuMemcpyDtoH(target, from + at, size);
  });
  finish(device, stream, result, "cuMemcpyDtoH", bytes, from);
  count_transfer(device, TransferWay::to_host, bytes);
  if (activity) activity->finish();
}

void copy_on_device(Device& device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                    const Stream& stream) {
  require_device_stream(device, stream);
  if (bytes == 0) return;
  const ContextGuard guard(device);
  if (!stream) refuse_in_capturing_thread(device, "a copy that returns when it is done");
  require_captured(device, stream, "a copy");
  auto activity = watch(device, Activity::Kind::copy, "on the device", bytes, stream);
  const CUresult result = device.driver().cuMemcpyDtoDAsync(to, from, bytes, stream.handle());
  finish(device, stream, result, "cuMemcpyDtoD", bytes, to);
  if (activity) activity->finish();
}

bool is_page_locked(Device& device, const void* address) {
  const ContextGuard guard(device);
  unsigned type = 0;
  // Pageable memory is unknown to the driver, or known without a type.
  const CUresult result = device.driver().cuPointerGetAttribute(
      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(address));
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
}

void copy_across(Device& to_device, CUdeviceptr to, Device& from_device, CUdeviceptr from,
                 std::size_t bytes) {
  if (&to_device == &from_device) return copy_on_device(to_device, to, from, bytes);
  if (bytes == 0) return;
  if (&to_device.driver() == &from_device.driver()) {
    Stream::legacy(from_device).synchronize();
    const ContextGuard guard(to_device);
    const CUresult result = to_device.driver().cuMemcpyPeer(to, to_device.context(), from,
                                                            from_device.context(), bytes);
    finish(to_device, {}, result, "cuMemcpyPeer", bytes, to);
    return;
  }
  constexpr std::size_t kChunk = std::size_t{16} << 20;
  std::vector<unsigned char> staging(std::min(bytes, kChunk));
  for (std::size_t done = 0; done < bytes; done += staging.size()) {
    const std::size_t piece = std::min(staging.size(), bytes - done);
    copy_to_host(from_device, staging.data(), from + done, piece);
    copy_to_device(to_device, to + done, staging.data(), piece);
  }
}

void copy_across(Device& to_device, CUdeviceptr to, Device& from_device, CUdeviceptr from,
                 std::size_t bytes, const Stream& stream, const Stream& after) {
  require_device_stream(to_device, stream);
  require_device_stream(from_device, after);
  if (bytes == 0) return;
  const Stream target = stream ? stream : Stream::legacy(to_device);
  const Stream source = after ? after : Stream::legacy(from_device);
  if (&to_device.driver() != &from_device.driver()) {
    source.synchronize();
    target.synchronize();
    return copy_across(to_device, to, from_device, from, bytes);
  }
  enable_peer_access(to_device, from_device);
  Event ready(from_device, false);
  ready.record(source);
  target.wait(ready);
  const ContextGuard guard(to_device);
  auto activity = watch(to_device, Activity::Kind::copy, "device to device", bytes, target);
  const CUresult result = to_device.driver().cuMemcpyPeerAsync(
      to, to_device.context(), from, from_device.context(), bytes, target.handle());
  finish(to_device, target, result, "cuMemcpyPeerAsync", bytes, to);
  if (activity) activity->finish();
  // The source may be freed or written next, in the order of its own device's stream.
  Event over(to_device, false);
  over.record(target);
  source.wait(over);
}

void fill(Device& device, CUdeviceptr to, std::uint64_t pattern, std::size_t element_size,
          std::size_t count, const Stream& stream) {
  require_device_stream(device, stream);
  if (element_size != 1 && element_size != 2 && element_size != 4 && element_size != 8) {
    throw InvalidArgument(
        format("cannot fill elements of {} bytes: they must have 1, 2, 4 or 8", element_size));
  }
  if (to % element_size != 0) {
    throw InvalidArgument(
        format("cannot fill at {:#x}: not a multiple of the element size {}", to, element_size));
  }
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(element_size, count, &bytes)) {
    throw InvalidArgument(
        format("cannot fill {} elements of {} bytes: more than 2^64 bytes", count, element_size));
  }
  if (count == 0) return;
  const std::size_t size = shrink_pattern(pattern, element_size);
  const std::size_t steps = bytes / size;
  const ContextGuard guard(device);
  if (!stream) refuse_in_capturing_thread(device, "a fill that returns when it is done");
  require_captured(device, stream, "a fill");
  const DriverApi& api = device.driver();
  const CUstream handle = stream.handle();
  auto activity = watch(device, Activity::Kind::fill, "fill", bytes, stream);
  CUresult result = CUDA_SUCCESS;
  switch (size) {
    case 1:
      result = api.cuMemsetD8Async(to, static_cast<unsigned char>(pattern), steps, handle);
      break;
    case 2:
      result = api.cuMemsetD16Async(to, static_cast<unsigned short>(pattern), steps, handle);
      break;
    case 4:
      result = api.cuMemsetD32Async(to, static_cast<unsigned>(pattern), steps, handle);
      break;
    default:
      result = fill_pairs(api, to, pattern, steps, handle);
  }
  finish(device, stream, result, "cuMemset", bytes, to);
  if (activity) activity->finish();
}

}  // namespace kernwright
