// Budgets: all counters or none, given back exactly once.
#include "schedule/accounts/budget.h"

#include "base/errors.h"
#include "base/format.h"
#include "schedule/admission.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;

TEST_CASE("budget: a request takes all counters or none") {
  Budget budget({100, 500'000});
  auto first = budget.reserve({60, 100'000});
  REQUIRE(first);
  CHECK(budget.reserved() == Amount{60, 100'000});
  CHECK_FALSE(budget.reserve({41, 0}));
  CHECK_FALSE(budget.reserve({1, 400'001}));
  CHECK(budget.reserved() == Amount{60, 100'000});
  auto rest = budget.reserve({40, 400'000});
  REQUIRE(rest);
  CHECK(budget.free() == Amount{0, 0});
  CHECK(budget.reserve({0, 0}));
  CHECK_FALSE(budget.reserve({~std::uint64_t{0}, 0}));
}

TEST_CASE("budget: a reservation is released once") {
  Budget budget({100, kWholeShare});
  auto held = budget.reserve({30, 1});
  REQUIRE(held);
  held->release();
  CHECK_FALSE(held->is_held());
  CHECK_THROWS_AS(held->release(), InvalidArgument);
  CHECK(budget.reserved() == Amount{});
  CHECK_THROWS_AS(Reservation().release(), InvalidArgument);
}

TEST_CASE("budget: moving keeps one holder") {
  Budget budget({100, kWholeShare});
  Reservation a = std::move(*budget.reserve({30, 0}));
  Reservation b = std::move(a);
  CHECK_FALSE(a.is_held());
  CHECK(b.amount() == Amount{30, 0});
  b = std::move(*budget.reserve({50, 0}));
  CHECK(budget.reserved().memory == 50);
  Reservation& self = b;
  b = std::move(self);
  CHECK(budget.reserved().memory == 50);
}

TEST_CASE("budget: reservations outlive it") {
  Reservation held;
  {
    Budget budget({10, 0});
    held = std::move(*budget.reserve({10, 0}));
  }
  held.release();
}

TEST_CASE("budget: threads never get more than there is, and all comes back") {
  Budget budget({1000, kWholeShare});
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<Reservation> held;
      for (int i = 0; i < 2000; ++i) {
        if (random() % 2 == 0 && !held.empty()) {
          held.pop_back();
        } else if (auto made = budget.reserve(
                       {random() % 400, static_cast<std::uint32_t>(random() % 300'000)})) {
          held.push_back(std::move(*made));
        }
        const Amount reserved = budget.reserved();
        if (reserved.memory > 1000 || reserved.share > kWholeShare) return;
      }
      held.clear();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(budget.reserved() == Amount{});
}

TEST_CASE("budget: parts of a reservation are given back each once") {
  Budget budget({100, 500'000});
  Reservation whole = std::move(*budget.reserve({80, 200'000}));
  {
    Reservation memory = whole.split({80, 0});
    CHECK(memory.amount() == Amount{80, 0});
    CHECK(whole.amount() == Amount{0, 200'000});
    CHECK(budget.reserved() == Amount{80, 200'000});
  }
  CHECK(budget.reserved() == Amount{0, 200'000});
  CHECK_FALSE(whole.split({}).is_held());
  CHECK(whole.is_held());
  const Reservation rest = whole.split({50, 900'000});  // all that there is
  CHECK(rest.amount() == Amount{0, 200'000});
  CHECK_FALSE(whole.is_held());
}

TEST_CASE("budget: shares add up exactly") {
  Budget budget({0, kWholeShare});
  std::vector<Reservation> held;
  for (int i = 0; i < 10; ++i) held.push_back(std::move(*budget.reserve({0, share_amount(0.1)})));
  CHECK(budget.free().share == 0);
  held.clear();
  CHECK(budget.free().share == kWholeShare);
}

TEST_CASE("budget: a shortage names the four largest holders and counts the others") {
  Budget budget({1000, kWholeShare});
  const auto taken = budget.reserve({1000, 0});
  std::vector<Holder> holders{{"idle", {0, 7}}};
  for (std::uint64_t i = 1; i <= 6; ++i) holders.push_back({format("t{}", i), {10 * i, 0}});
  const std::string text = describe_shortage({500, 0}, budget, holders);
  CHECK(text ==
        "500 B of memory asked, 0 B free of 1000 B; held by t6 (60 B), "
        "t5 (50 B), t4 (40 B), t3 (30 B) and 2 more");
}
