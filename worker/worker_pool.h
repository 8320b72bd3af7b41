// Several workers for tasks of many threads.
#pragma once

#include "worker/worker.h"

#include <chrono>
#include <memory>

namespace kernwright {

/// Up to `size` workers with the same options, started when first needed and used again. For each,
/// the rules of Worker about processes hold. Thread-safe; must outlive its leases.
class WorkerPool {
 public:
  /// The pool ends a process after so long without a lease.
  static constexpr std::chrono::seconds kIdle{120};

  /// Throws InvalidArgument for a size of 0. `idle` of 0: no process is ended for want of work.
  explicit WorkerPool(unsigned size, WorkerOptions options = {},
                      std::chrono::milliseconds idle = kIdle);
  /// Kills the processes.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// A worker for one user, given back by the destructor.
  class Lease {
   public:
    Lease(WorkerPool& pool, std::unique_ptr<Worker> worker);
    ~Lease();
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;

    Worker* operator->() const noexcept { return worker_.get(); }
    Worker& operator*() const noexcept { return *worker_; }

   private:
    WorkerPool* pool_;
    std::unique_ptr<Worker> worker_;
  };

  /// The free worker of the latest lease, since its caches are the warmest; waits while all are in
  /// use. Throws Timeout, Cancelled or Interrupted as `limits` say.
  Lease lease(const WaitLimits& limits = {});

  unsigned size() const noexcept;
  /// Processes started so far by the workers without a lease.
  int starts() const;

 private:
  struct State;
  void give_back(std::unique_ptr<Worker> worker) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace kernwright
