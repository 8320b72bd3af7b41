// Copies of the compiler inside this process, for many compiles at once.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/nvrtc_unit.h"

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

/// Who is inside one opened NVRTC. Never destroyed. Thread-safe.
class NvrtcGate {
 public:
  /// A compile that nobody waits for keeps all others out, for as long as it goes on.
  void block() noexcept { ++blockers_; }
  void unblock() noexcept { --blockers_; }
  /// A thread was stopped inside: nobody gets in any more.
  void close() noexcept { is_closed_ = true; }

  bool is_closed() const noexcept { return is_closed_; }
  bool is_blocked() const noexcept { return is_closed_ || blockers_ > 0; }

 private:
  friend class NvrtcReplicas;
  std::atomic<int> users_ = 0;
  std::atomic<int> blockers_ = 0;
  std::atomic<bool> is_closed_ = false;
};

/// NVRTC's front end lets one compile through at a time, a third of the work of a small kernel, so
/// that 16 threads are not four times as quick as one, and one that instantiates templates without
/// end keeps all others out. A second copy of the library has a front end of its own: where there
/// are eight processors or more and a long queue, workers open up to six; where all that are open
/// are blocked, one more, up to kMostBlocked. Each is loaded from a copy of the file (some 100 MB
/// below the folder for temporary files, until it is loaded), since the system's loader opens one
/// file only once. Thread-safe.
class NvrtcReplicas {
 public:
  explicit NvrtcReplicas(unsigned processors);
  ~NvrtcReplicas();
  NvrtcReplicas(const NvrtcReplicas&) = delete;
  NvrtcReplicas& operator=(const NvrtcReplicas&) = delete;

  /// The library for one compile, given back by the destructor.
  class Lease {
   public:
    Lease(const LoadedNvrtc& library, NvrtcGate& gate) : library_(&library), gate_(&gate) {}
    ~Lease() { --gate_->users_; }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const LoadedNvrtc& library() const noexcept { return *library_; }
    NvrtcGate& gate() const noexcept { return *gate_; }

   private:
    const LoadedNvrtc* library_;
    NvrtcGate* gate_;
  };

  /// `nvrtc` or the copy of it that is least busy and not blocked; makes a copy first where one is
  /// wanted. A copy that cannot be made is not tried again: then this waits for one that is
  /// blocked. In a forked child `nvrtc` is closed where a thread of the parent was inside. `nvrtc`
  /// must outlive the lease. Throws Timeout once `deadline` is up, Error when all are closed.
  Lease lease(const LoadedNvrtc& nvrtc, const CompileDeadline& deadline);

  /// Copies made so far.
  unsigned copies() const;

  /// Those of the process; a forked child has its own.
  static NvrtcReplicas& process();

  /// Of so many that are blocked at a time, the process gets around.
  static constexpr unsigned kMostBlocked = 8;

 private:
  struct State;
  static NvrtcGate& gate_of(const void* id);
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
