// Device memory into files, some at a time: no file is ever in host memory whole.
#pragma once

#include "base/file_system.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <string>

namespace kernwright {

class Device;

/// Writes device memory to the position of an open file, after the work of `stream` (empty: the
/// device's legacy stream), through a ring of three pieces of 8 MB of page-locked memory: a piece
/// is copied while the one before is written. Returns when all is written. `name` is for messages.
/// Throws StoreError, OutOfMemory, DriverError, CaptureError. Thread-safe.
void write_file(Device& device, int file, const std::string& name, CUdeviceptr from,
                std::size_t bytes, const Stream& stream = {},
                FileSystem& system = FileSystem::real());

}  // namespace kernwright
