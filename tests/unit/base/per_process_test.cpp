// One object for a process, another for its child.
#include "base/per_process.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

using kernwright::per_process;

namespace {

struct Counter {
  explicit Counter(int first) : value(first) {}
  std::atomic<int> value;
};

}  // namespace

TEST_CASE("per process: every call and every thread gets the same object, made once") {
  Counter& counter = per_process<Counter>(5);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { ++per_process<Counter>(5).value; });
  for (std::thread& thread : threads) thread.join();
  CHECK(&per_process<Counter>(7) == &counter);
  CHECK(counter.value == 13);
}

TEST_CASE("per process: a forked child begins anew and leaves the parent's alone") {
  Counter& mine = per_process<Counter>(5);
  mine.value = 40;
  const pid_t child = ::fork();
  if (child == 0) {
    Counter& own = per_process<Counter>(5);
    _exit(&own != &mine && own.value == 5 && mine.value == 40 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(mine.value == 40);
}
