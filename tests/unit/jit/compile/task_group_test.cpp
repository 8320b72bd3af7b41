// Tasks that run at the same time, their errors, and the ends of waits.
#include "jit/compile/task_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "jit/compile/compile_wait.h"
#include "unit/core/error_text.h"
#include "unit/jit/jit_fixture.h"
#include "unit/jit/watched_service.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("task group: a task runs while the caller does something else") {
  if (one_processor()) return;
  std::latch here(1), there(1);
  TaskGroup group;
  group.add([&] {
    there.count_down();
    here.wait();
  });
  there.wait();  // for ever if the task ran in wait() alone
  here.count_down();
  CHECK_NOTHROW(group.wait(0));
}

TEST_CASE("task group: two tasks run at the same time, one of them in the waiting thread") {
  if (one_processor()) return;
  std::latch both(2);
  TaskGroup group;
  for (int i = 0; i < 2; ++i) group.add([&] { both.arrive_and_wait(); });
  CHECK_NOTHROW(group.wait(0));
  CHECK_NOTHROW(group.wait(1));
}

TEST_CASE("task group: each task runs once, whatever their number") {
  std::vector<std::atomic<int>> runs(200);
  TaskGroup group;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(group.add([&runs, i] { ++runs[i]; }) == i);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    group.wait(i);
    CHECK(runs[i] == 1);
  }
  for (const auto& count : runs) CHECK(count == 1);
}

TEST_CASE("task group: at most as many tasks run at a time as there are processors") {
  std::mutex mutex;
  unsigned running = 0, most = 0;
  TaskGroup group;
  const auto task = [&] {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++running);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard lock(mutex);
    --running;
  };
  std::size_t last = 0;
  for (int i = 0; i < 40; ++i) last = group.add(task);
  for (std::size_t i = 0; i <= last; ++i) group.wait(i);
  CHECK(most >= 1);
  CHECK(most <= std::max(1u, std::thread::hardware_concurrency()));
}

TEST_CASE("task group: an error is that of the task waited for, at each wait") {
  TaskGroup group;
  group.add([] {});
  group.add([] { throw InvalidArgument("the second"); });
  group.add([] { throw Error("the third"); });
  CHECK_NOTHROW(group.wait(0));
  for (int i = 0; i < 2; ++i) {
    CHECK(contains(thrown_by<InvalidArgument>([&] { group.wait(1); }).what(), "the second"));
  }
  CHECK(contains(thrown_by<Error>([&] { group.wait(2); }).what(), "the third"));
  CHECK_THROWS_AS(group.wait(3), std::out_of_range);
}

TEST_CASE("task group: its end stops what runs and leaves out the rest") {
  if (one_processor()) return;
  std::latch begun(1);
  std::atomic<bool> was_cancelled = false;
  std::atomic<int> others = 0;
  {
    TaskGroup group;
    group.add([&] {
      begun.count_down();
      try {
        wait_for_stop();
      } catch (const Cancelled&) {
        was_cancelled = true;
        throw;
      }
    });
    begun.wait();
  }
  CHECK(was_cancelled);  // nobody runs any more: the thread was joined
  {
    TaskGroup group;
    for (unsigned i = 0; i < std::thread::hardware_concurrency() + 5; ++i) {
      group.add([&] {
        ++others;
        wait_for_stop();
      });
    }
  }
  CHECK(others < static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_CASE("task group: tasks have the deadline of the thread that made it") {
  const auto soon = WaitLimits{}.within(std::chrono::milliseconds(30));
  const WaitScope scope(soon);
  TaskGroup group;
  group.add(wait_for_stop);
  group.add(wait_for_stop);
  CHECK(contains(thrown_by<Timeout>([&] { group.wait(0); }).what(), "a task took longer"));
  CHECK_THROWS_AS(group.wait(1), Timeout);
}

TEST_CASE("task group: a stop flag ends the caller's wait") {
  if (one_processor()) return;
  WaitLimits limits;
  limits.stop = std::make_shared<std::atomic<bool>>(false);
  const WaitScope scope(limits);
  std::latch begun(1);
  TaskGroup group;
  group.add([&] {
    begun.count_down();
    wait_for_stop();
  });
  begun.wait();
  *limits.stop = true;
  CHECK(contains(thrown_by<Cancelled>([&] { group.wait(0); }).what(), "other threads"));
}

TEST_CASE("task group: a signal ends the caller's wait at once, whichever task it helped with") {
  if (one_processor()) return;
  static const std::thread::id here = std::this_thread::get_id();
  static std::atomic<bool> is_pressed;
  is_pressed = false;
  set_interrupt_check([] { return is_pressed && std::this_thread::get_id() == here; });
  {
    TaskGroup group;
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      group.add([] {
        is_pressed = std::this_thread::get_id() == here || is_pressed;
        wait_for_stop();
      });
    }
    CHECK_THROWS_AS(group.wait(0), Interrupted);
  }
  set_interrupt_check(nullptr);
}
