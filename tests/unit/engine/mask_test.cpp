// Masks of tokens against sets of tokens.
#include "engine/mask.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace kernwright;
using namespace kernwright::engine;

TEST_CASE("masks: random changes give the tokens of a set") {
  std::mt19937 random(5);
  for (const std::int32_t vocabulary : {1, 31, 32, 33, 100}) {
    CAPTURE(vocabulary);
    const auto token = [&] {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary));
    };
    const bool begins_full = random() % 2 == 0;
    TokenMask mask(vocabulary, begins_full);
    std::set<std::int32_t> expected;
    for (std::int32_t i = 0; begins_full && i < vocabulary; ++i) expected.insert(i);
    for (int round = 0; round < 60; ++round) {
      const std::vector tokens = {token(), token(), -1, vocabulary};
      if (random() % 2 == 0) {
        mask.allow(tokens);
        expected.insert(tokens.begin(), tokens.begin() + 2);
      } else {
        mask.forbid(tokens);
        expected.erase(tokens[0]);
        expected.erase(tokens[1]);
      }
      CHECK(mask.allows_any() == !expected.empty());
      for (std::int32_t i = -1; i <= vocabulary; ++i) CHECK(mask.allows(i) == expected.contains(i));
    }
  }
}

TEST_CASE("masks: words of others, common tokens, and the empty mask") {
  const std::vector<std::uint32_t> words = {0xffff0000u, 0xffffffffu};
  TokenMask mask(40, words);
  CHECK(mask.words()[1] == 0xffu);  // tokens behind the vocabulary are cleared
  TokenMask other(40, false);
  const std::vector<std::int32_t> tokens = {3, 20, 39};
  other.allow(tokens);
  mask.keep(other);
  for (std::int32_t token = 0; token < 40; ++token)
    CHECK(mask.allows(token) == (token == 20 || token == 39));
  mask.keep(TokenMask());
  CHECK(mask.allows(20));
  CHECK(TokenMask().is_empty());
  CHECK(TokenMask().allows(7));
  CHECK(TokenMask().allows_any());
  CHECK_THROWS_AS(TokenMask(65, words), InvalidArgument);
}
