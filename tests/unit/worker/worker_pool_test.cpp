// Threads share a pool's workers, wait for a free one, and lose nobody else's.
#include "worker/worker_pool.h"

#include <doctest/doctest.h>

#include <atomic>

#include "tests/unit/worker/worker_fixture.h"

using namespace kernwright;
using namespace worker_test;

TEST_CASE("worker pool: many threads, few workers, every reply to its own caller") {
  WorkerPool pool(3, test_program());
  std::atomic<int> wrong = 0, lost = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto request = number(1000 * t + i);
        const auto worker = pool.lease();
        try {
          if (t == 0 && i % 10 == 0) worker->run({"crash", "a crash", {}});
          if (worker->run({"ping", "a ping", request}).bytes != request) ++wrong;
        } catch (const WorkerLost&) {
          ++lost;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(lost == 5);
  CHECK(pool.starts() <= 3 + 5);
}

TEST_CASE("worker pool: a thread waits for a free one within its limits") {
  WorkerPool pool(1, test_program());
  {
    const auto only = pool.lease();
    CHECK_THROWS_AS(pool.lease(for_ms(50)), Timeout);
  }
  CHECK(pool.lease(for_ms(50))->run({"ping", "a ping", {}}).bytes.empty());
  CHECK_THROWS_AS(WorkerPool(0, test_program()), InvalidArgument);
}

TEST_CASE("worker pool: a process without work is ended, and comes back with the next task") {
  WorkerPool pool(2, test_program(), std::chrono::milliseconds(300));
  const auto ping = [&] {
    const auto worker = pool.lease();
    worker->run({"ping", "a ping", {}});
    return worker->process_id();
  };
  const pid_t first = ping();
  CHECK(ping() == first);
  CHECK(is_gone(first));
  CHECK(ping() != first);
  CHECK(pool.starts() == 2);
  {
    const auto busy = pool.lease();
    busy->run({"ping", "a ping", {}});
    CHECK(is_gone(ping()));  // the other one, which is free for as long
    CHECK(::kill(busy->process_id(), 0) == 0);
  }
}
