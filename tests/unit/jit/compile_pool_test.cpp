// The pool runs what it is given, in order, on as many threads as it may, and in forked children.
#include "jit/compile/compile_pool.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

using Clock = std::chrono::steady_clock;

/// Waits up to ten seconds for a count.
bool reaches(const std::atomic<int>& value, int wanted) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (value != wanted && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return value == wanted;
}

}  // namespace

TEST_CASE("compile pool: every task runs once, those of one worker in order") {
  CompilePool pool(1);
  std::mutex mutex;
  std::vector<int> order;
  std::atomic<int> count = 0;
  for (int i = 0; i < 100; ++i) {
    pool.submit([&, i] {
      {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      }
      ++count;
    });
  }
  REQUIRE(reaches(count, 100));
  const std::lock_guard lock(mutex);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("compile pool: as many at once as there are workers, and no more") {
  CompilePool pool(3);
  std::atomic<int> now = 0, most = 0, done = 0;
  for (int i = 0; i < 12; ++i) {
    pool.submit([&] {
      const int running = ++now;
      int seen = most;
      while (seen < running && !most.compare_exchange_weak(seen, running)) {}
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      --now;
      ++done;
    });
  }
  REQUIRE(reaches(done, 12));
  CHECK(most == 3);
}

TEST_CASE("compile pool: a worker that is lost is replaced while it is lost") {
  CompilePool pool(1);
  std::promise<void> release;
  std::atomic<int> done = 0;
  pool.submit([&, gate = release.get_future().share()] {
    gate.wait();
    ++done;
  });
  pool.submit([&] { ++done; });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(done == 0);
  pool.add_worker();
  CHECK(pool.workers() == 2);
  CHECK(reaches(done, 1));
  release.set_value();
  pool.remove_worker();
  CHECK(reaches(done, 2));
  CHECK(pool.workers() == 1);
  pool.submit([&] { ++done; });
  CHECK(reaches(done, 3));
}

TEST_CASE("compile pool: a forked child has one of its own") {
  std::atomic<int> done = 0;
  CompilePool::process().submit([&] { ++done; });
  REQUIRE(reaches(done, 1));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> in_child = 0;
    CompilePool::process().submit([&] { ++in_child; });
    ::_exit(reaches(in_child, 1) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
