// Parts of files to and from device memory, some at a time: no file is ever in host memory whole.
#pragma once

#include "base/file_system.h"
#include "core/event.h"
#include "core/stream.h"
#include "driver/driver_api.h"
#include "memory/pinned_buffer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// Copies through a ring of page-locked memory: a part of the file is read while copies of parts
/// before it are in flight. An open file of the caller's; `name` is for messages. Its destructor
/// lets copies go on. Not thread-safe.
class FileTransfer {
 public:
  /// `slots` pieces of `slot_bytes` each are allocated when first needed. Copies are queued on
  /// `stream` (empty: the device's legacy stream).
  FileTransfer(Device& device, int file, std::string name, const Stream& stream = {},
               std::size_t slot_bytes = kSlotBytes, std::size_t slots = 3,
               FileSystem& system = FileSystem::real());
  FileTransfer(const FileTransfer&) = delete;
  FileTransfer& operator=(const FileTransfer&) = delete;
  ~FileTransfer();

  /// `bytes` of the file from `offset` on to device memory. Returns when they are read and the last
  /// copies are queued. Throws StoreError where the file ends before, or cannot be read; what was
  /// copied then stays copied. OutOfMemory, DriverError, CaptureError.
  void read(CUdeviceptr to, std::uint64_t offset, std::size_t bytes);
  /// Device memory to the file's position, after the work of the stream. Returns when it is
  /// written. Throws StoreError, DriverError, CaptureError.
  void write(CUdeviceptr from, std::size_t bytes);
  /// Blocks until all copies are done. Throws DeviceFault, DeviceLost, DriverError.
  void wait() const;

  static constexpr std::size_t kSlotBytes = std::size_t{8} << 20;

 private:
  struct Slot {
    PinnedBuffer buffer;
    Event last;  ///< the copy that reads it
  };
  Slot& next_slot(std::size_t bytes);
  [[noreturn]] void fail(const char* what, std::string why, int code) const;

  Device& device_;
  int file_;
  std::string name_;
  Stream stream_;
  std::size_t slot_bytes_, slot_count_;
  FileSystem& system_;
  std::vector<Slot> slots_;
  std::size_t turn_ = 0;
};

}  // namespace kernwright
