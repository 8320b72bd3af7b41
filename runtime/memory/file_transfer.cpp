// Reads into a slot once its last copy is done, and queues the next copy behind.
#include "memory/file_transfer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "memory/transfer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kernwright {

FileTransfer::FileTransfer(Device& device, int file, std::string name, const Stream& stream,
                           std::size_t slot_bytes, std::size_t slots, FileSystem& system)
    : device_(device),
      file_(file),
      name_(std::move(name)),
      stream_(stream ? stream : Stream::legacy(device)),
      slot_bytes_(std::max<std::size_t>(slot_bytes, 1)),
      slot_count_(std::max<std::size_t>(slots, 1)),
      system_(system) {
  refuse_in_capturing_thread(device, "a copy between a file and a device");
}

FileTransfer::~FileTransfer() = default;

void FileTransfer::fail(const char* what, std::string why, int code) const {
  throw StoreError(format("{} cannot be {}: {}", name_, what, why), code);
}

FileTransfer::Slot& FileTransfer::next_slot(std::size_t bytes) {
  const std::size_t at = turn_++ % slot_count_;
  if (at == slots_.size()) {
    slots_.push_back(
        Slot{PinnedBuffer(device_, std::min(bytes, slot_bytes_)), Event(device_, false)});
  } else {
    Slot& slot = slots_[at];
    slot.last.synchronize();
    if (slot.buffer.bytes() < std::min(bytes, slot_bytes_))
      slot.buffer = PinnedBuffer(device_, slot_bytes_);
  }
  return slots_[at];
}

void FileTransfer::read(CUdeviceptr to, std::uint64_t offset, std::size_t bytes) {
  while (bytes > 0) {
    Slot& slot = next_slot(bytes);
    const std::size_t piece = std::min(bytes, slot_bytes_);
    auto* const data = static_cast<std::byte*>(slot.buffer.data());
    for (std::size_t done = 0; done < piece;) {
      const ssize_t got = system_.read_at(file_, data + done, piece - done, offset + done);
      if (got == -EINTR) continue;
      if (got < 0) fail("read", describe_failure(got), static_cast<int>(-got));
      if (got == 0)
        fail("read",
             format("it ends at byte {}, and {} more are needed: it was cut off", offset + done,
                    bytes - done),
             0);
      done += static_cast<std::size_t>(got);
    }
    copy_to_device(device_, to, data, piece, stream_);
    slot.buffer.use_on(stream_);
    slot.last.record(stream_);
    to += piece;
    offset += piece;
    bytes -= piece;
  }
}

void FileTransfer::write(CUdeviceptr from, std::size_t bytes) {
  while (bytes > 0) {
    Slot& slot = next_slot(bytes);
    const std::size_t piece = std::min(bytes, slot_bytes_);
    copy_to_host(device_, slot.buffer.data(), from, piece, stream_);
    slot.last.record(stream_);
    slot.last.synchronize();
    const int failed = write_fully(system_, file_, slot.buffer.data(), piece);
    if (failed < 0) fail("written", describe_failure(failed), -failed);
    from += piece;
    bytes -= piece;
  }
}

void FileTransfer::wait() const {
  for (const Slot& slot : slots_) slot.last.synchronize();
}

}  // namespace kernwright
