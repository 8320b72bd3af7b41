// One direction and class of a transfer engine: its stream, its staging ring and its thread.
#pragma once

#include "memory/buffer.h"
#include "memory/transfer_engine.h"
#include "memory/transfer_pacer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

namespace kernwright {

/// The progress of a copy.
struct Transfer::State {
  explicit State(Device& device) : device_part(device, false) {}

  std::mutex mutex;
  std::condition_variable changed;
  bool queued = false;         ///< device_part stands for the copy, unless there is a failure
  std::exception_ptr failure;  ///< an error before the copy was queued
  Event device_part;

  void mark_queued(std::exception_ptr error = nullptr);
};

/// Serves the jobs of one direction and class in order. Shared with its thread. The thread is
/// detached: it ends with the process, and a forked child has none.
class TransferLane : public std::enable_shared_from_this<TransferLane> {
 public:
  enum class Direction { up, down };
  TransferLane(Device& device, Direction direction, TransferClass kind,
               std::shared_ptr<TransferPacer> pacer, const TransferEngine::Options& options);
  ~TransferLane() = default;
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  const Stream& stream() const noexcept { return stream_; }
  Transfer submit(CUdeviceptr on_device, void* on_host, std::size_t bytes, const Stream& after,
                  std::shared_ptr<const void> keep);
  /// Serves the remaining jobs, then ends the thread; returns when it has ended.
  void stop() noexcept;

 private:
  struct Job {
    CUdeviceptr on_device = 0;
    std::byte* on_host = nullptr;
    std::size_t bytes = 0;
    bool is_page_locked = false;  ///< the host memory
    std::optional<Event> after;
    std::shared_ptr<const void> keep;
    std::shared_ptr<Transfer::State> state;
  };
  struct Chunk {
    PinnedBuffer memory;
    std::optional<Event> event;  ///< behind the last copy from it
    bool is_used = false;        ///< the copy may be in progress
  };

  /// An object kept until a copy on the stream has read or written it. The lane's thread never
  /// drops it: the destructor of a caller's object may need a lock of the caller.
  struct KeptObject {
    Event event;
    std::shared_ptr<const void> keep;
  };

  void run();
  void enter_context() noexcept;
  std::vector<KeptObject> take_finished();
  void serve(Job& job);
  void copy_directly(const Job& job);
  void copy_piece(const Job& job, std::size_t begin, std::size_t bytes);
  void copy_in_pieces(const Job& job);
  void stage_up(const Job& job);
  void empty(Chunk& chunk);
  void prepare_ring();
  void release_ring() noexcept;

  Device& device_;
  const Direction direction_;
  const TransferClass kind_;
  const std::shared_ptr<TransferPacer> pacer_;
  const TransferEngine::Options options_;
  Stream stream_;
  std::vector<Chunk> ring_;  // of the serving thread alone

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::vector<KeptObject> kept_;
  bool is_serving_ = false;  // a job is being served, by the thread or by a caller
  bool has_thread_ = false;
  bool stopping_ = false;
};

}  // namespace kernwright
