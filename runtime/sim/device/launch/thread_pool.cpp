// Host threads for blocks.
#include "sim/device/launch/thread_pool.h"

#include "base/env.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kernwright::sim {
namespace {

/// How long a waiting thread looks before it sleeps: about the time of a wake-up. So at most twice
/// the time of the better of the two ways is spent.
constexpr std::chrono::microseconds kPatience{50};
/// Between two calls of `meanwhile`.
constexpr std::chrono::milliseconds kInterval{20};

/// Until `condition` is true, for kPatience at most.
template <typename Condition>
void look_for(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!condition())
    if (std::chrono::steady_clock::now() >= limit) return;
}

/// The number of processors available to this thread.
int processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Keeps a worker off the busy processor of its caller. In a virtual machine Linux takes a sleeping
/// processor for one given away by its host (vcpu_is_preempted), wakes the worker on the caller's
/// own, and parts the two only milliseconds later.
class Seat {
 public:
  explicit Seat(pthread_t thread) : thread_(thread) {}

  void avoid(int processor) {
    if (processor == avoided_ || processor < 0 || processor >= CPU_SETSIZE) return;
    cpu_set_t now;
    if (pthread_getaffinity_np(thread_, sizeof now, &now) != 0) return;
    if (avoided_ < 0 || !CPU_EQUAL(&now, &set_)) allowed_ = now;  // set by other code
    avoided_ = processor;
    set_ = allowed_;
    CPU_CLR(processor, &set_);
    if (CPU_COUNT(&set_) == 0) set_ = allowed_;
    pthread_setaffinity_np(thread_, sizeof set_, &set_);  // where it fails nothing is lost but time
  }

 private:
  pthread_t thread_;
  cpu_set_t allowed_{}, set_{};
  int avoided_ = -1;
};

}  // namespace

struct ThreadPool::State {
  std::mutex use;  // one run() at a time
  std::mutex mutex;
  // Waking many takes longer than a small launch; it is over before the first has come. So the
  // caller wakes one, and this one wakes the rest.
  std::condition_variable start_first, start_rest, done;
  std::vector<Seat> threads;  // started so far
  int wanted = 0;             // workers of the present use, with the caller; 0: it is over
  const int most_looking = processors();
  std::atomic<std::uint64_t> use_number{0};  // changed with the mutex held
  std::atomic<int> running{0};  // others that came in time; changed with the mutex held
  const std::function<void(int)>* work = nullptr;

  void serve(int number) {
    std::uint64_t seen = 0;
    const auto is_new = [&] { return use_number.load(std::memory_order_acquire) != seen; };
    std::unique_lock lock(mutex);
    while (true) {
      (number == 1 ? start_first : start_rest).wait(lock, is_new);
      seen = use_number;
      if (number >= wanted) continue;
      const std::function<void(int)>& call = *work;
      ++running;
      const bool wakes_rest = number == 1 && wanted > 2;
      lock.unlock();
      if (wakes_rest) start_rest.notify_all();
      const auto begin = std::chrono::steady_clock::now();
      call(number);
      const bool took_long = std::chrono::steady_clock::now() - begin >= kPatience;
      lock.lock();
      if (--running == 0) done.notify_one();
      // Often the next launch comes at once. Where it is a small one, others are in the way.
      if (number >= most_looking || !took_long) continue;
      lock.unlock();
      look_for(is_new);
      lock.lock();
    }
  }

  /// No other thread begins any more; those that began have ended at its return.
  void close(const std::function<void()>& meanwhile) {
    std::unique_lock lock(mutex);
    wanted = 0;
    if (running == 0) return;
    lock.unlock();
    // They are at their last blocks: being woken takes longer than most of those.
    look_for([&] { return running.load(std::memory_order_acquire) == 0; });
    lock.lock();
    while (!done.wait_for(lock, kInterval, [&] { return running == 0; })) {
      if (!meanwhile) continue;
      lock.unlock();
      meanwhile();
      lock.lock();
    }
  }

  int started() const { return static_cast<int>(threads.size()); }

  /// Call with the mutex held. New threads wait for the next use.
  void grow(int count) {
    threads.reserve(static_cast<std::size_t>(count));  // no thread is left without its seat
    while (started() < count) {
      try {
        std::thread thread([this, number = started() + 1] { serve(number); });
        threads.emplace_back(thread.native_handle());
        thread.detach();
      } catch (const std::system_error&) {
        return;
      }
    }
  }
};

ThreadPool::ThreadPool() : state_(new State) {}

ThreadPool& ThreadPool::get() {
  static ThreadPool* const pool = new ThreadPool;
  return *pool;
}

int ThreadPool::default_width() {
  const auto asked = static_cast<int>(env_number(Env::sim_threads));
  return asked != 0 ? asked : processors();
}

void ThreadPool::run(int width, const std::function<void(int)>& work,
                     const std::function<void()>& meanwhile) {
  if (width <= 1) {
    work(0);
    return;
  }
  State& s = *state_;
  const std::lock_guard one_use(s.use);
  {
    const std::lock_guard lock(s.mutex);
    s.grow(width - 1);
    s.wanted = std::min(width, s.started() + 1);
    const int here = sched_getcpu();
    for (int i = 0; i + 1 < s.wanted; ++i) s.threads[static_cast<std::size_t>(i)].avoid(here);
    s.work = &work;
    ++s.use_number;
  }
  s.start_first.notify_one();
  work(0);
  s.close(meanwhile);
}

}  // namespace kernwright::sim
