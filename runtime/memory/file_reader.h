// Parts of files into device memory, by several threads: no file is ever in host memory whole.
#pragma once

#include "base/file_system.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// Bytes of an open file of the caller's, and the device memory that they fill.
struct FilePart {
  int file = -1;
  std::string name;  ///< the file's, for messages
  std::uint64_t offset = 0;
  CUdeviceptr target = 0;
  std::size_t bytes = 0;
};

struct FileReaderOptions {
  /// Threads that read, the calling one included; 0: as many as the machine has, up to 8.
  std::size_t threads = 0;
  std::size_t slot_bytes = std::size_t{4} << 20;
  std::size_t slots = 2;  ///< pieces of page-locked memory that each thread has
  FileSystem* system = &FileSystem::real();
};

/// Reads parts of any files. Each thread reads pieces into page-locked slots of its own, while
/// copies of pieces before are in flight on `stream` (empty: the device's legacy stream): threads *
/// slots * slot_bytes of host memory, 64 MB by default, less for few bytes. Blocks until all copies
/// are done. Throws StoreError where a file ends before, or cannot be read; what was copied then
/// stays copied. OutOfMemory, DriverError, CaptureError. Thread-safe.
void read_files(Device& device, const std::vector<FilePart>& parts, const Stream& stream = {},
                const FileReaderOptions& options = {});

}  // namespace kernwright
