// Copies of the compiler inside this process, for many compiles at once.
#pragma once

#include "driver/nvrtc_loader.h"

#include <atomic>
#include <memory>

namespace kernwright {

/// Compiles that somebody waits for or that are queued, wherever: one more for the life of this.
class CompileDemand {
 public:
  CompileDemand() noexcept { ++count(); }
  ~CompileDemand() { --count(); }
  CompileDemand(const CompileDemand&) = delete;
  CompileDemand& operator=(const CompileDemand&) = delete;

  static int now() noexcept { return count().load(); }

 private:
  static std::atomic<int>& count() noexcept;
};

/// NVRTC's front end lets one compile through at a time, a third of the work of a small kernel, so
/// that 16 threads are not four times as quick as one. A second copy of the library has a front end
/// of its own: where there are eight processors or more and a long queue, workers open up to six.
/// Each is loaded from a copy of the file (some 100 MB below the folder for temporary files, until
/// it is loaded), since the system's loader opens one file only once. Thread-safe.
class NvrtcReplicas {
 public:
  explicit NvrtcReplicas(unsigned processors);
  ~NvrtcReplicas();
  NvrtcReplicas(const NvrtcReplicas&) = delete;
  NvrtcReplicas& operator=(const NvrtcReplicas&) = delete;

  /// The library for one compile, given back by the destructor.
  class Lease {
   public:
    Lease(const LoadedNvrtc& library, std::atomic<int>& users)
        : library_(&library), users_(&users) {}
    ~Lease() { --*users_; }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const LoadedNvrtc& library() const noexcept { return *library_; }

   private:
    const LoadedNvrtc* library_;
    std::atomic<int>* users_;
  };

  /// `nvrtc` or the copy of it that is least busy; makes a copy first where one is wanted. A copy
  /// that cannot be made is not tried again. `nvrtc` must outlive the lease.
  Lease lease(const LoadedNvrtc& nvrtc);

  /// Copies made so far.
  unsigned copies() const;

  /// Those of the process; a forked child has its own.
  static NvrtcReplicas& process();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
