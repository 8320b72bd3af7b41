// Records the steps of one thread of one launch.
#pragma once

#include "sim/exec/warp/warp.h"
#include "sim/observe/observed_program.h"
#include "sim/trace.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Used by the runner of the traced thread's block and by the launching thread, never at one time.
class TraceRecorder {
 public:
  explicit TraceRecorder(const TraceRequest& request);

  CUfunction function() const noexcept { return trace_.request.function; }
  /// A launch of the function begins: whether it is the one to trace.
  bool begin(const LaunchContext& launch);
  /// The fault at the end; null for a good end.
  void end(const Fault* fault);
  const Trace& trace() const noexcept { return trace_; }

  /// Whether the thread is in the warp, and its lane.
  bool is_in(const Warp& warp) const noexcept;
  int lane() const noexcept { return lane_; }

  /// Before any op on the thread's way: the results of its waits are known now.
  void settle(const Warp& warp);
  /// Before the thread does the op.
  void open(const Op* op, const Warp& warp, const ObservedOp& info);
  /// Output of the thread, within the open step.
  void printed(std::string_view text);
  /// After the op. `done`: the thread has executed it, though it may still wait for the result. If
  /// not, the thread executes it later, or the launch stopped.
  void close(const Warp& warp, bool done);
  /// The guard of the op at `index` keeps the thread from it.
  void skip(const Warp& warp, const ObservedOp& info, std::uint32_t index);

 private:
  void start_step(const Warp& warp, const ObservedOp& info, std::uint32_t index);
  void note_memory(const Op* op, const Warp& warp, const ObservedOp& info);
  void note_access(const Warp& warp, const char* what, ptx::Space space, std::uint64_t address,
                   std::uint32_t bytes, ptx::Type type);
  void finish(const Warp& warp);
  void take_writes();
  void take_register(std::uint32_t reg, ptx::Type type);
  void keep();
  /// Whether there is no room for further steps.
  bool is_full() const noexcept;

  Trace trace_;
  std::uint64_t block_ = 0;  ///< linear
  std::uint32_t warp_ = 0;
  int lane_ = 0;
  bool active_ = false;

  bool open_ = false;     ///< step_ is what the thread is at
  bool waiting_ = false;  ///< for the outcome of step_, now done
  TraceStep step_;
  const ObservedOp* info_ = nullptr;  ///< of step_
  const Program* program_ = nullptr;
  const std::byte* frame_ = nullptr;  ///< in which step_ runs
  std::uint32_t depth_ = 0;           ///< of the last step
  std::vector<ptx::Space> spaces_;    ///< for each access of step_
  /// The last value of each register that the thread wrote, by frame and index.
  std::map<std::pair<const std::byte*, std::uint32_t>, TraceBits> known_;
};

}  // namespace kernwright::sim
