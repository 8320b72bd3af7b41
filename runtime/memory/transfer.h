// Copies and fills of plain device memory.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>

namespace kernwright {

class Device;

/// Copies of plain bytes, checked and with the device's context current. With an empty `stream` the
/// call returns when the copy is done, after the work of the legacy stream; else it is queued, and
/// memory of the host must stay as it is until the stream is done (pageable memory may block). 0
/// bytes are a no-op. Throw InvalidArgument for a stream of another device; CaptureError for a
/// synchronous copy in the thread that captures a stream of the device. Also for a copy between a
/// captured stream and pageable memory: that memory may be gone at the launch.
void copy_to_device(Device& device, CUdeviceptr to, const void* from, std::size_t bytes,
                    const Stream& stream = {});
void copy_to_host(Device& device, void* to, CUdeviceptr from, std::size_t bytes,
                  const Stream& stream = {});
void copy_on_device(Device& device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                    const Stream& stream = {});

/// Whether the host memory at `address` is page-locked, so that copies of it run asynchronously.
bool is_page_locked(Device& device, const void* address);

/// Copies between two devices, also between a GPU and the simulated one (then through the host).
/// Waits for the legacy streams of both, and returns when the copy is done.
void copy_across(Device& to_device, CUdeviceptr to, Device& from_device, CUdeviceptr from,
                 std::size_t bytes);

/// The same, queued on `stream` of the target's device behind what `after`, a stream of the
/// source's device, holds now; empty streams are the legacy ones. Direct where the devices have a
/// link, staged by the driver where not. Between a GPU and the simulated device it returns when
/// done.
void copy_across(Device& to_device, CUdeviceptr to, Device& from_device, CUdeviceptr from,
                 std::size_t bytes, const Stream& stream, const Stream& after);

/// Fills `count` elements of 1, 2, 4 or 8 bytes with the low bytes of `pattern`; `to` is a multiple
/// of the element size. With an empty `stream` the call returns when the memory is filled.
void fill(Device& device, CUdeviceptr to, std::uint64_t pattern, std::size_t element_size,
          std::size_t count, const Stream& stream = {});

}  // namespace kernwright
