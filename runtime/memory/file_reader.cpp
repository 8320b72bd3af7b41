// Threads take pieces from one counter, in the order of the parts, until an error or the end.
#include "memory/file_reader.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace kernwright {
namespace {

/// More threads read no faster than a PCIe link copies.
constexpr std::size_t kMostReaders = 8;

struct ReadPiece {
  const FilePart* part = nullptr;
  std::size_t begin = 0, bytes = 0;  ///< within the part
};

struct ReadSlot {
  PinnedBuffer buffer;
  Event last;  ///< recorded behind the last copy from the buffer
};

[[noreturn]] void fail(const FilePart& part, std::string why, int code) {
  throw StoreError(format("{} cannot be read: {}", part.name, why), code);
}

class Reader {
 public:
  Reader(Device& device, const std::vector<FilePart>& parts, const Stream& stream,
         const FileReaderOptions& options)
      : device_(device), stream_(stream), system_(*options.system) {
    const std::size_t most = std::max<std::size_t>(options.slot_bytes, 1);
    std::size_t largest = 0;
    for (const FilePart& part : parts) {
      largest = std::max(largest, std::min(part.bytes, most));
      for (std::size_t begin = 0; begin < part.bytes; begin += most)
        pieces_.push_back({&part, begin, std::min(most, part.bytes - begin)});
    }
    const std::size_t slots = std::max<std::size_t>(options.slots, 1);
    const std::size_t threads =
        std::min(thread_count(options), (pieces_.size() + slots - 1) / slots);
    slots_.resize(threads);
    for (auto& ring : slots_)
      for (std::size_t i = 0; i < slots; ++i)
        ring.push_back({PinnedBuffer(device, largest), Event(device, false)});
  }

  void run() {
    if (slots_.empty()) return;
    std::vector<std::thread> helpers;
    try {
      for (std::size_t i = 1; i < slots_.size(); ++i)
        helpers.emplace_back([this, i] { work(slots_[i]); });
    } catch (const std::system_error&) {
      // The threads that there are do the rest.
    }
    work(slots_[0]);
    for (std::thread& helper : helpers) helper.join();
    if (failure_) std::rethrow_exception(failure_);
    for (const auto& ring : slots_)
      for (const ReadSlot& slot : ring) slot.last.synchronize();
  }

 private:
  std::size_t thread_count(const FileReaderOptions& options) const {
    // A handle of the per-thread default stream is another stream in each thread.
    if (stream_.handle() == kStreamPerThread) return 1;
    if (options.threads != 0) return options.threads;
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostReaders);
  }

  void work(std::vector<ReadSlot>& slots) noexcept {
    try {
      const ContextGuard guard(device_);
      for (std::size_t turn = 0; !failed_.load(std::memory_order_relaxed); ++turn) {
        const std::size_t number = next_.fetch_add(1, std::memory_order_relaxed);
        if (number >= pieces_.size()) return;
        const ReadPiece& piece = pieces_[number];
        ReadSlot& slot = slots[turn % slots.size()];
        slot.last.synchronize();
        read(piece, slot.buffer.data());
        copy_to_device(device_, piece.part->target + piece.begin, slot.buffer.data(), piece.bytes,
                       stream_);
        slot.buffer.use_on(stream_);
        slot.last.record(stream_);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  void read(const ReadPiece& piece, void* host) const {
    const FilePart& part = *piece.part;
    auto* const data = static_cast<std::byte*>(host);
    const std::uint64_t offset = part.offset + piece.begin;
    for (std::size_t done = 0; done < piece.bytes;) {
      const ssize_t got =
          system_.read_at(part.file, data + done, piece.bytes - done, offset + done);
      if (got == -EINTR) continue;
      if (got < 0) fail(part, describe_failure(got), static_cast<int>(-got));
      if (got == 0)
        fail(part,
             format("it ends at byte {}, and {} more are needed: it was cut off", offset + done,
                    part.bytes - piece.begin - done),
             0);
      done += static_cast<std::size_t>(got);
    }
  }

  Device& device_;
  const Stream stream_;
  FileSystem& system_;
  std::vector<ReadPiece> pieces_;
  std::vector<std::vector<ReadSlot>> slots_;  ///< a ring for each thread
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void read_files(Device& device, const std::vector<FilePart>& parts, const Stream& stream,
                const FileReaderOptions& options) {
  refuse_in_capturing_thread(device, "a copy between a file and a device");
  Reader(device, parts, stream ? stream : Stream::legacy(device), options).run();
}

}  // namespace kernwright
