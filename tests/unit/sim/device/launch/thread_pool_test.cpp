// The threads for blocks: pieces of work, late helpers, callers taking turns.
#include "sim/device/launch/thread_pool.h"

#include <doctest/doctest.h>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using kernwright::sim::ThreadPool;

TEST_CASE("thread pool: every piece is done once, and nobody is at work afterwards") {
  constexpr int kWidth = 5;
  std::atomic<int> working{0};
  for (int round = 0; round < 2000; ++round) {
    constexpr int kPieces = 12;
    std::atomic<int> next{0}, called{0};
    std::vector<int> done(kPieces, 0), numbers(kWidth, 0);
    ThreadPool::get().run(kWidth, [&](int number) {
      ++working;
      ++called;
      ++numbers[static_cast<std::size_t>(number)];
      for (int i = next++; i < kPieces; i = next++) ++done[static_cast<std::size_t>(i)];
      --working;
    });
    REQUIRE(working == 0);
    REQUIRE(done == std::vector<int>(kPieces, 1));
    REQUIRE(numbers[0] == 1);  // the caller
    for (const int times : numbers) REQUIRE(times <= 1);
    REQUIRE(called >= 1);
  }
}

TEST_CASE("thread pool: others help while the caller is busy") {
  std::atomic<int> called{0};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ThreadPool::get().run(3, [&](int) {
    ++called;
    while (called < 3 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  });
  CHECK(called == 3);
}

TEST_CASE("thread pool: a helper that takes long is waited for") {
  std::atomic<bool> began{false}, ended{false};
  ThreadPool::get().run(2, [&](int number) {
    if (number == 0) {
      while (!began) std::this_thread::yield();
      return;
    }
    began = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
  });
  CHECK(ended);
}

namespace {

cpu_set_t processors_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(thread, sizeof set, &set);
  return set;
}

cpu_set_t one(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

/// The processors of worker 1 in a use by a caller staying on `processor`. The worker sets itself
/// to `wanted` afterwards.
cpu_set_t seen_from(int processor, const cpu_set_t* wanted = nullptr) {
  const cpu_set_t only = one(processor);
  REQUIRE(sched_setaffinity(0, sizeof only, &only) == 0);
  std::atomic<bool> called{false};
  cpu_set_t seen;
  ThreadPool::get().run(2, [&](int number) {
    if (number == 0) {
      while (!called) std::this_thread::yield();
      return;
    }
    seen = processors_of(0);
    if (wanted != nullptr) CHECK(sched_setaffinity(0, sizeof *wanted, wanted) == 0);
    called = true;
  });
  return seen;
}

}  // namespace

TEST_CASE("thread pool: others stay off the caller's processor, and take any other one again") {
  std::thread([] {
    const cpu_set_t all = processors_of(0);
    for (int round = 0; round < 2; ++round) {
      for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (!CPU_ISSET(processor, &all)) continue;
        cpu_set_t others = all;
        CPU_CLR(processor, &others);
        if (CPU_COUNT(&others) == 0) others = all;
        const cpu_set_t seen = seen_from(processor);
        CHECK(CPU_EQUAL(&seen, &others));
      }
    }
  }).join();
}

TEST_CASE("thread pool: processors that somebody else chose for a worker are respected") {
  std::thread([] {
    const cpu_set_t all = processors_of(0);
    std::vector<int> usable;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &all)) usable.push_back(processor);
    const int first = usable.front(), last = usable.back();
    const cpu_set_t chosen = one(last);
    seen_from(last, &chosen);
    for (const int caller : {first, last}) {
      const cpu_set_t seen = seen_from(caller);
      CHECK(CPU_EQUAL(&seen, &chosen));
    }
    seen_from(first, &all);
    const cpu_set_t seen = seen_from(last);
    CHECK(CPU_ISSET(last, &seen) == (first == last));
  }).join();
}

TEST_CASE("thread pool: a width of one or less is the caller alone") {
  const auto caller = std::this_thread::get_id();
  for (const int width : {-1, 0, 1}) {
    int calls = 0;
    ThreadPool::get().run(width, [&](int number) {
      CHECK(number == 0);
      CHECK(std::this_thread::get_id() == caller);
      ++calls;
    });
    CHECK(calls == 1);
  }
}

TEST_CASE("thread pool: callers on several threads take turns") {
  std::atomic<int> calls{0}, inside{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        ThreadPool::get().run(2, [&](int number) {
          if (number != 0) return;
          CHECK(++inside == 1);
          --inside;
          ++calls;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(calls == 800);
}
