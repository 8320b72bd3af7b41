// The prefix cache against a list of texts on the host.
#include "engine/prefix.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

using namespace kernwright;
using engine::Pages;
using engine::PrefixCache;

namespace {

using Text = std::vector<std::int32_t>;

std::vector<std::int32_t> taken(Pages& pages, std::size_t count) {
  std::vector<std::int32_t> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(pages.take());
  return made;
}

/// A search from the beginning of a text.
std::vector<std::int32_t> found_in(PrefixCache& cache, const Text& text, std::size_t most,
                                   std::uint64_t salt = 0) {
  std::vector<std::int32_t> found;
  cache.find(text, most, found, salt);
  return found;
}

void release(Pages& pages, const std::vector<std::int32_t>& some) {
  for (const std::int32_t page : some) pages.release(page);
}

}  // namespace

TEST_CASE("prefix cache: the longest common beginning in full pages is found") {
  Pages pages(10);
  PrefixCache cache(pages, 2);
  const auto first = taken(pages, 3);
  cache.add(Text{1, 2, 3, 4, 5, 6, 7}, first);
  release(pages, first);
  CHECK(pages.idle() == 3);
  CHECK(pages.used() == 0);
  CHECK(found_in(cache, Text{1, 2, 3, 4, 9, 9}, 9) == Text{first[0], first[1]});
  CHECK(found_in(cache, Text{1, 2, 3, 4, 5, 6, 7, 8}, 9) == first);
  CHECK(found_in(cache, Text{1, 2, 3, 4, 5, 6}, 2) == Text{first[0], first[1]});
  CHECK(found_in(cache, Text{3, 4}, 9).empty());
  CHECK(found_in(cache, Text{1}, 9).empty());
  CHECK(pages.owners(first[0]) == 4);
  CHECK(pages.owners(first[2]) == 2);
}

TEST_CASE("prefix cache: equal texts of two salts share no page") {
  Pages pages(4);
  PrefixCache cache(pages, 1);
  const auto first = taken(pages, 2), second = taken(pages, 2);
  cache.add(Text{1, 2}, first);
  CHECK(found_in(cache, Text{1, 2}, 9, 7).empty());
  cache.add(Text{1, 2}, second, 7);
  CHECK(cache.size() == 4);
  CHECK(found_in(cache, Text{1, 2, 3}, 9, 7) == second);
  CHECK(found_in(cache, Text{1, 2, 3}, 9) == first);
  CHECK(found_in(cache, Text{1, 2, 3}, 9, 8).empty());
}

TEST_CASE("prefix cache: pages of a forged hash are told apart by their tokens and salts") {
  const auto forged = [](std::span<const std::int32_t>, std::uint64_t) -> std::uint64_t {
    return 7;
  };
  Pages pages(9);
  PrefixCache cache(pages, 2, forged);
  const auto a = taken(pages, 2), b = taken(pages, 2), other_salt = taken(pages, 1);
  cache.add(Text{1, 2, 3, 4}, a);
  CHECK(found_in(cache, Text{5, 6, 3, 4}, 9).empty());  // the same hash as the page of {1, 2}
  CHECK(found_in(cache, Text{2, 1}, 9).empty());
  cache.add(Text{5, 6, 3, 4}, b);
  cache.add(Text{1, 2}, other_salt, 1);
  CHECK(cache.size() == 5);
  for (const auto& [text, salt, wanted] : {std::tuple{Text{1, 2, 3, 4, 9}, 0, a},
                                           {Text{5, 6, 3, 4}, 0, b},
                                           {Text{1, 2}, 1, other_salt},
                                           {Text{1, 2, 4, 3}, 0, {a[0]}},
                                           {Text{3, 4}, 0, {}},
                                           {Text{1, 2}, 2, {}}}) {
    const auto found = found_in(cache, text, 9, static_cast<std::uint64_t>(salt));
    CHECK(found == wanted);
    release(pages, found);
  }
  // All pages have equal hashes: the cache keeps those that are held, and gives up the others.
  for (const auto& some : {a, b, other_salt}) release(pages, some);
  const auto held = found_in(cache, Text{5, 6, 3, 4}, 9);
  cache.free_up(9);
  CHECK(pages.free() == 7);
  CHECK(found_in(cache, Text{1, 2}, 9).empty());
  CHECK(found_in(cache, Text{5, 6, 3, 4}, 9) == held);
}

TEST_CASE("prefix cache: any hash finds the same pages") {
  const auto two_bits = [](std::span<const std::int32_t> tokens, std::uint64_t salt) {
    return PrefixCache::hash_of(tokens, salt) & 3;
  };
  Pages pages(24), others(24);
  PrefixCache cache(pages, 2), narrow(others, 2, two_bits);
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    Text text(1 + random() % 12);
    for (std::int32_t& token : text) token = static_cast<std::int32_t>(random() % 3);
    const std::uint64_t salt = random() % 2;
    std::vector<std::vector<std::int32_t>> found;
    for (auto [numbers, prefixes] : {std::pair{&pages, &cache}, {&others, &narrow}}) {
      found.push_back(found_in(*prefixes, text, 6, salt));
      prefixes->free_up(6);
      const std::size_t missing = text.size() / 2 - found.back().size();
      auto whole = found.back();
      std::ranges::copy(taken(*numbers, missing), std::back_inserter(whole));
      prefixes->add(text, whole, salt);
      release(*numbers, whole);
    }
    REQUIRE(found[0] == found[1]);
    REQUIRE(cache.size() == narrow.size());
  }
}

TEST_CASE("prefix cache: unused pages go first, from the end of a text") {
  Pages pages(6);
  PrefixCache cache(pages, 1);
  const auto a = taken(pages, 3), b = taken(pages, 3);
  cache.add(Text{1, 2, 3}, a);
  cache.add(Text{7, 8, 9}, b);
  release(pages, a);
  release(pages, b);
  const auto held = found_in(cache, Text{1, 2}, 9);
  cache.free_up(2);
  CHECK(pages.free() == 2);
  // The end of the first text was used before the second one, whose end went then.
  const auto found = found_in(cache, Text{7, 8, 9}, 9);
  CHECK(found == Text{b[0], b[1]});
  cache.free_up(6);
  CHECK(pages.free() == 2);  // the others are held
  CHECK(cache.size() == 4);
  release(pages, held);
  release(pages, found);
  CHECK(pages.idle() == 4);
  cache.free_up(6);
  CHECK(pages.free() == 6);
}

TEST_CASE("prefix cache: an idle page above one in use can be freed") {
  Pages pages(3);
  PrefixCache cache(pages, 1);
  const auto first = taken(pages, 1), own = taken(pages, 2);
  cache.add(Text{1}, first);
  release(pages, first);
  cache.add(Text{1, 2}, own);  // its first page is another one than that of the cache
  CHECK(pages.idle() == 1);
  cache.free_up(1);
  CHECK(pages.free() == 1);
  CHECK(cache.size() == 0);
  CHECK(pages.owners(own[1]) == 1);
  release(pages, own);
}

TEST_CASE("prefix cache: a search goes on behind pages found before") {
  Pages pages(6);
  PrefixCache cache(pages, 2);
  const Text text = {1, 2, 3, 4, 5, 6};
  const auto first = taken(pages, 3);
  cache.add(text, std::span(first).first(1));
  std::vector<std::int32_t> found = found_in(cache, text, 9);
  CHECK(found == Text{first[0]});
  cache.find(text, 9, found);
  CHECK(found == Text{first[0]});
  CHECK(pages.owners(first[0]) == 3);
  cache.add(text, first);
  cache.find(text, 2, found);
  CHECK(found == Text{first[0], first[1]});
  cache.find(text, 9, found);
  CHECK(found == first);
  // What was found is of no use once the cache was cleared.
  cache.clear();
  CHECK(pages.owners(first[0]) == 2);
  cache.find(text, 9, found);
  CHECK(found.empty());
  CHECK(pages.owners(first[0]) == 1);
  release(pages, first);
  CHECK(pages.free() == 6);
}

TEST_CASE("prefix cache: what became idle first goes first, whoever was added first") {
  Pages pages(3);
  PrefixCache cache(pages, 1);
  const auto some = taken(pages, 3);
  for (std::int32_t i = 0; i < 3; ++i)
    cache.add(Text{i}, std::span(some).subspan(static_cast<std::size_t>(i), 1));
  release(pages, {some[1], some[2], some[0]});
  release(pages, found_in(cache, Text{1}, 9));  // a use
  cache.free_up(1);
  CHECK(found_in(cache, Text{2}, 9).empty());
  cache.free_up(2);
  CHECK(found_in(cache, Text{0}, 9).empty());
  CHECK(found_in(cache, Text{1}, 9) == Text{some[1]});
  release(pages, {some[1]});
}

TEST_CASE("prefix cache: random texts find pages of their own tokens only") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Pages pages(12);
    {
      PrefixCache cache(pages, 2);
      std::map<std::int32_t, Text> texts;  // of each page, with all tokens before
      std::vector<std::vector<std::int32_t>> running;
      for (int step = 0; step < 300; ++step) {
        Text text(1 + random() % 8);
        for (auto& token : text) token = static_cast<std::int32_t>(random() % 2);
        auto held = found_in(cache, text, text.size() / 2);
        for (std::size_t i = 0; i < held.size(); ++i)
          REQUIRE(std::ranges::equal(texts[held[i]], std::span(text).first(2 * (i + 1))));
        const std::size_t more = text.size() / 2 - held.size();
        cache.free_up(static_cast<std::int32_t>(more));
        if (pages.free() < static_cast<std::int32_t>(more)) {
          release(pages, held);
        } else {
          while (held.size() < text.size() / 2) {
            held.push_back(pages.take());
            texts[held.back()] = Text(text.begin(), text.begin() + 2 * std::ssize(held));
          }
          cache.add(text, held);
          running.push_back(held);
        }
        if (!running.empty() && random() % 2 == 0) {
          const std::size_t which = random() % running.size();
          release(pages, running[which]);
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
        }
        std::set<std::int32_t> held_pages;
        for (const auto& each : running) held_pages.insert(each.begin(), each.end());
        REQUIRE(pages.used() == std::ssize(held_pages));
        REQUIRE(pages.free() + pages.idle() + pages.used() == 12);
      }
      for (const auto& each : running) release(pages, each);
      CHECK(pages.idle() == cache.size());
    }
    CHECK(pages.free() == 12);
  }
}
