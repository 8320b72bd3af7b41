// One job's way from the queue to its end, and what becomes of it when nobody waits any more.
#include "jit/compile/compile_job.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/per_process.h"
#include "jit/compile/compile_pool.h"
#include "jit/compile/library_thread.h"
#include "jit/compile/nvrtc_replicas.h"
#include "jit/compile/signal_guard.h"

namespace kernwright {
namespace {

/// How long a compile that was told to stop is waited for.
constexpr std::chrono::milliseconds kGrace{30};
/// Processor time after which one that nobody waits for counts as blocking the others.
constexpr std::chrono::milliseconds kBlocking{200};
/// And after which it is stopped for good: a bomb takes some 150 MB more in each second, while
/// most templates that come to an end have come to it.
constexpr std::chrono::seconds kStopping{5};
/// Between two looks at one that nobody waits for.
constexpr std::chrono::milliseconds kLook{50};

struct Counts {
  std::atomic<int> abandoned = 0;
  std::atomic<int> stopped = 0;
};

Counts& counts() { return per_process<Counts>(); }

/// What a worker needs that may outlive the call which asked for it.
class Job {
 public:
  Job(const LoadedNvrtc& nvrtc, std::string what, CompileWork work)
      : nvrtc_(nvrtc), what_(std::move(what)), work_(std::move(work)), deadline_(std::nullopt) {}

  std::future<std::any> result() { return result_.get_future(); }

  /// The worker's part.
  void run() {
    if (!advance(State::queued, State::running)) return;  // nobody waits any more
    try {
      result_.set_value(work_inside());
    } catch (...) {
      result_.set_exception(std::current_exception());
    }
    const std::unique_lock lock(mutex_);
    if (state_ == State::abandoned) --counts().abandoned;
    if (state_ != State::running) CompilePool::process().remove_worker();
    state_ = State::ended;
    changed_.notify_all();
  }

  /// Whether the NVRTC that it is in lets nobody through. Of one that was heard of since, it is no
  /// matter: it is beyond the front end.
  bool is_kept_out() const {
    const std::lock_guard lock(mutex_);
    return gate_ != nullptr && gate_->is_blocked() && deadline_.silence() >= kBlocking;
  }

  /// To be called now and then: whether it will never end, for want of stack.
  bool has_overflown() {
    if (!LibraryThread::has_overflown(&deadline_)) return false;
    const std::lock_guard lock(mutex_);
    if (state_ != State::running) return true;
    CompilePool::process().add_worker();
    lose();
    return true;
  }

  /// The caller stops waiting, after the grace or at once.
  static void abandon(const std::shared_ptr<Job>& job, std::future<std::any>& result,
                      std::chrono::milliseconds grace) {
    job->deadline_.stop();
    if (job->advance(State::queued, State::ended)) return;
    if (grace.count() > 0) result.wait_for(grace);
    {
      const std::lock_guard lock(job->mutex_);
      if (job->state_ != State::running) return;
      job->state_ = State::abandoned;
      ++counts().abandoned;
    }
    CompilePool::process().add_worker();
    try {
      std::thread([job] { job->watch(); }).detach();
    } catch (const std::system_error&) {
      const std::lock_guard lock(job->mutex_);
      job->block();  // with no thread to find out whether it does
    }
  }

 private:
  enum class State { queued, running, abandoned, given_up, ended };

  /// While the worker is inside NVRTC.
  class Inside {
   public:
    Inside(Job& job, NvrtcGate& gate) : job_(job) {
      const std::lock_guard lock(job_.mutex_);
      job_.gate_ = &gate;
    }
    ~Inside() {
      const std::lock_guard lock(job_.mutex_);
      if (job_.is_blocking_) job_.gate_->unblock();
      job_.is_blocking_ = false;
      job_.gate_ = nullptr;
    }

   private:
    Job& job_;
  };

  /// Out of NVRTC again before the caller, who may begin the next compile at once, hears of it.
  std::any work_inside() {
    const auto lease = NvrtcReplicas::process().lease(nvrtc_, deadline_);
    const Inside inside(*this, lease.gate());
    return work_(lease.library(), deadline_);
  }

  bool advance(State from, State to) {
    const std::lock_guard lock(mutex_);
    if (state_ != from) return false;
    state_ = to;
    return true;
  }

  /// The caller holds the mutex.
  void block() {
    if (gate_ == nullptr || is_blocking_) return;
    is_blocking_ = true;
    gate_->block();
  }

  /// What a thread does about a job that was abandoned, until it ends or is stopped.
  void watch() {
    std::unique_lock lock(mutex_);
    std::optional<std::chrono::nanoseconds> before;
    while (!changed_.wait_for(lock, kLook, [&] { return state_ != State::abandoned; })) {
      if (LibraryThread::has_overflown(&deadline_)) return lose();
      const auto now = LibraryThread::processor_time(&deadline_);
      if (gate_ == nullptr || !now) continue;
      if (gate_->is_closed() && deadline_.silence() >= kBlocking) return give_up();
      if (!before) before = now;
      const auto used = *now - *before;
      if (used < kBlocking || deadline_.silence() < kBlocking) continue;
      block();
      if (used < kStopping || !LibraryThread::stop(&deadline_)) continue;
      log(LogLevel::warning,
          "compiling {} was told to stop and did not: it was stopped for good inside NVRTC, and "
          "the memory that it held stays in use",
          what_);
      return lose();
    }
  }

  /// Its thread was stopped inside NVRTC. The caller holds the mutex.
  void lose() {
    if (gate_ != nullptr) gate_->close();
    SignalGuard::forget();
    ++counts().stopped;
    give_up();
  }

  /// It will not come out of NVRTC, or not soon. The caller holds the mutex.
  void give_up() {
    if (state_ == State::abandoned) --counts().abandoned;
    state_ = State::given_up;
  }

  const LoadedNvrtc nvrtc_;
  const std::string what_;
  const CompileWork work_;
  const CompileDeadline deadline_;
  std::promise<std::any> result_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::queued;
  NvrtcGate* gate_ = nullptr;  ///< of the NVRTC that the worker is in
  bool is_blocking_ = false;   ///< it, for all others
};

}  // namespace

std::any run_compile_job(const LoadedNvrtc& nvrtc, const std::string& what,
                         const WaitLimits& limits, const CompileWork& work) {
  const CompileDemand demand;
  const auto slice = [&] {
    const auto next = std::chrono::steady_clock::now() + kWaitSlice;
    return limits.deadline ? std::min(next, *limits.deadline) : next;
  };
  while (true) {
    const auto job = std::make_shared<Job>(nvrtc, what, work);
    std::future<std::any> result = job->result();
    CompilePool::process().submit([job] { job->run(); });
    try {
      while (result.wait_until(slice()) != std::future_status::ready && !job->is_kept_out()) {
        check_wait(limits, what);
        if (!job->has_overflown()) continue;
        throw CompilerOverflow(
            format("{} nests too deep for NVRTC {}, which ran out of stack: use fewer brackets, "
                   "branches or operators inside each other",
                   what, nvrtc.version()));
      }
    } catch (...) {
      Job::abandon(job, result, kGrace);
      throw;
    }
    if (result.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return result.get();
    Job::abandon(job, result, std::chrono::milliseconds(0));
  }
}

int abandoned_compile_jobs() noexcept { return counts().abandoned; }

int stopped_compile_jobs() noexcept { return counts().stopped; }

}  // namespace kernwright
