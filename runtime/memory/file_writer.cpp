// Queues the copies of the next pieces, then writes the oldest one.
#include "memory/file_writer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"

#include <algorithm>
#include <vector>

namespace kernwright {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{8} << 20;
constexpr std::size_t kSlots = 3;

struct WriteSlot {
  PinnedBuffer buffer;
  Event copied;
  std::size_t bytes = 0;
};

}  // namespace

void write_file(Device& device, int file, const std::string& name, CUdeviceptr from,
                std::size_t bytes, const Stream& stream, FileSystem& system) {
  refuse_in_capturing_thread(device, "a copy between a file and a device");
  const Stream user = stream ? stream : Stream::legacy(device);
  const std::size_t pieces = (bytes + kSlotBytes - 1) / kSlotBytes;
  std::vector<WriteSlot> slots;
  for (std::size_t turn = 0; turn + 1 < pieces + kSlots; ++turn) {
    if (turn < pieces) {
      const std::size_t begin = turn * kSlotBytes, count = std::min(kSlotBytes, bytes - begin);
      if (turn < kSlots) slots.push_back({PinnedBuffer(device, count), Event(device, false)});
      WriteSlot& slot = slots[turn % kSlots];
      copy_to_host(device, slot.buffer.data(), from + begin, count, user);
      slot.buffer.use_on(user);
      slot.copied.record(user);
      slot.bytes = count;
    }
    if (turn + 1 < kSlots) continue;
    const WriteSlot& oldest = slots[(turn + 1 - kSlots) % kSlots];
    oldest.copied.synchronize();
    const int failed = write_fully(system, file, oldest.buffer.data(), oldest.bytes);
    if (failed < 0)
      throw StoreError(format("{} cannot be written: {}", name, describe_failure(failed)), -failed);
  }
}

}  // namespace kernwright
