// Pages against a model on the host: a map from each page to the number of its owners.
#include "engine/pages.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

using namespace kernwright;
using engine::Pages;

TEST_CASE("pages: all can be taken once, then none") {
  Pages pages(3);
  std::map<int, int> taken;
  for (int i = 0; i < 3; ++i) ++taken[pages.take()];
  CHECK(taken == std::map<int, int>{{0, 1}, {1, 1}, {2, 1}});
  CHECK(pages.free() == 0);
  CHECK_THROWS_AS(pages.take(), std::logic_error);
  pages.release(1);
  CHECK(pages.take() == 1);
}

TEST_CASE("pages: a shared page is free after its last owner") {
  Pages pages(2);
  const int page = pages.take();
  pages.retain(page);
  pages.release(page);
  CHECK(pages.used() == 1);
  pages.release(page);
  CHECK(pages.used() == 0);
}

TEST_CASE("pages: wrong use throws and changes nothing") {
  CHECK_THROWS_AS(Pages(0), InvalidArgument);
  Pages pages(2);
  CHECK_THROWS_AS(pages.retain(0), std::logic_error);
  CHECK_THROWS_AS(pages.release(1), std::logic_error);
  CHECK_THROWS_AS(pages.release(2), std::logic_error);
  CHECK_THROWS_AS(pages.owners(-1), std::logic_error);
  CHECK_THROWS_AS(pages.retain_cached(0), std::logic_error);
  CHECK_THROWS_AS(pages.release_cached(0), std::logic_error);
  CHECK(pages.free() == 2);
  const int page = pages.take();
  pages.retain_cached(page);
  CHECK_THROWS_AS(pages.retain_cached(page), std::logic_error);
  CHECK(pages.owners(page) == 2);
}

TEST_CASE("pages: owners and sums hold after every random operation") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const int total = 1 + static_cast<int>(random() % 12);
    Pages pages(total);
    std::map<int, int> owners;
    std::set<int> cached;
    std::vector<int> order;  // of idle pages, the oldest first
    for (int step = 0; step < 400; ++step) {
      auto any = owners.begin();
      if (!owners.empty()) std::advance(any, random() % owners.size());
      switch (random() % 6) {
        case 0:
          if (static_cast<int>(owners.size()) < total) ++owners[pages.take()];
          break;
        case 1:
          if (any == owners.end()) break;
          pages.retain(any->first);
          ++any->second;
          break;
        case 2:
          if (any == owners.end() || cached.contains(any->first)) break;
          pages.retain_cached(any->first);
          cached.insert(any->first);
          ++any->second;
          break;
        case 3:
          if (any == owners.end() || !cached.contains(any->first)) break;
          pages.release_cached(any->first);
          cached.erase(any->first);
          if (--any->second == 0) owners.erase(any);
          break;
        default:
          if (any == owners.end()) break;
          if (any->second == 1 && cached.contains(any->first)) {
            CHECK_THROWS_AS(pages.release(any->first), std::logic_error);
            break;
          }
          pages.release(any->first);
          if (--any->second == 0) owners.erase(any);
      }
      const auto idle =
          std::ranges::count_if(cached, [&](int page) { return owners.at(page) == 1; });
      const auto is_idle = [&](int page) { return cached.contains(page) && owners.at(page) == 1; };
      std::erase_if(order, [&](int page) { return !is_idle(page); });
      for (const int page : cached) {
        if (is_idle(page) && std::ranges::count(order, page) == 0) order.push_back(page);
      }
      REQUIRE(pages.oldest_idle() == (order.empty() ? -1 : order.front()));
      REQUIRE(pages.idle() == idle);
      REQUIRE(pages.used() == static_cast<int>(owners.size()) - idle);
      REQUIRE(pages.free() + pages.idle() + pages.used() == pages.total());
      for (int page = 0; page < total; ++page)
        REQUIRE(pages.owners(page) == (owners.contains(page) ? owners[page] : 0));
    }
  }
}
