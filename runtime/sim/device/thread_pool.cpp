// The host threads that blocks run on.
#include "sim/device/thread_pool.h"

#include "base/env.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace kernwright::sim {
namespace {

/// How long a caller looks for the end of the others before it sleeps: about what being woken
/// takes.
constexpr std::chrono::microseconds kPatience{50};
/// Between two calls of `meanwhile`.
constexpr std::chrono::milliseconds kInterval{20};

}  // namespace

struct ThreadPool::State {
  std::mutex use;  // one run() at a time
  std::mutex mutex;
  std::condition_variable start, done;
  int threads = 0;  // started so far
  int wanted = 0;   // workers of the present use, with the caller; 0: it is over
  std::uint64_t use_number = 0;
  std::atomic<int> running{0};  // others that came in time; changed with the mutex held
  const std::function<void(int)>* work = nullptr;

  void serve(int number) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      start.wait(lock, [&] { return use_number != seen; });
      seen = use_number;
      if (number >= wanted) continue;
      const std::function<void(int)>& call = *work;
      ++running;
      lock.unlock();
      call(number);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }

  /// Nobody else begins; those who did have ended when it returns.
  void close(const std::function<void()>& meanwhile) {
    std::unique_lock lock(mutex);
    wanted = 0;
    if (running == 0) return;
    lock.unlock();
    // They are at their last blocks: being woken takes longer than most of those.
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (running.load(std::memory_order_acquire) != 0 &&
           std::chrono::steady_clock::now() < limit) {}
    lock.lock();
    while (!done.wait_for(lock, kInterval, [&] { return running == 0; })) {
      if (!meanwhile) continue;
      lock.unlock();
      meanwhile();
      lock.lock();
    }
  }

  /// Call with the mutex held. New threads wait for the next use.
  void grow(int count) {
    while (threads < count) {
      try {
        std::thread([this, number = threads + 1] { serve(number); }).detach();
      } catch (const std::system_error&) {
        return;
      }
      ++threads;
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
  if (asked != 0) return asked;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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
    s.wanted = std::min(width, s.threads + 1);
    s.work = &work;
    ++s.use_number;
  }
  s.start.notify_all();
  work(0);
  s.close(meanwhile);
}

}  // namespace kernwright::sim
