// A thread inside a compiler, seen and ended from outside.
#pragma once

#include <chrono>
#include <optional>

namespace kernwright {

/// While it lives, the calling thread may be inside the library that holds `function`. When the
/// process exits meanwhile, the thread is stopped for good before that library's own clean-up
/// begins: NVRTC 13.0 would otherwise notice that its state is gone and end the process with an
/// exit code of its own. Any thread; not nested. Takes SIGRTMAX - 3 once a thread is to be stopped.
class LibraryThread {
 public:
  /// `task` tells the threads apart for the functions below.
  explicit LibraryThread(const void* function, const void* task = nullptr);
  ~LibraryThread();
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;

  /// Processor time that the thread with this task has used in its life; none when there is no such
  /// thread inside a library.
  static std::optional<std::chrono::nanoseconds> processor_time(const void* task);

  /// Whether the thread with this task ran into the end of its stack in the library's own code: it
  /// was stopped there, as by stop(), where the process would have ended.
  static bool has_overflown(const void* task);

  /// Stops the thread with this task for good where it is, with the memory and the locks of the
  /// library that it holds: that library may never let another thread in again. False when it was
  /// not met in the library's own code within 200 ms, or another part of the program handles the
  /// signal.
  static bool stop(const void* task);
};

}  // namespace kernwright
