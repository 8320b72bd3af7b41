// Masks of requests, and requests that make no sense.
#include "engine/constraints.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <limits>

using namespace kernwright;
using namespace kernwright::engine;

namespace {

constexpr std::int32_t kVocabulary = 50;

Constraints prepared(Constraints constraints, std::int32_t min_tokens = 0,
                     const std::vector<std::int32_t>& stop_tokens = {}) {
  constraints.prepare(kVocabulary, min_tokens, stop_tokens);
  return constraints;
}

std::vector<std::int32_t> allowed(const TokenMask& mask) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t token = 0; token < kVocabulary; ++token)
    if (mask.allows(token)) tokens.push_back(token);
  return tokens;
}

}  // namespace

TEST_CASE("constraints: masks have allowed tokens without bad ones") {
  CHECK(prepared({}).mask.is_empty());
  CHECK(prepared({}).early_mask.is_empty());
  CHECK(allowed(prepared({.allowed_tokens = {{7, 3, 7, 49}}}).mask) == std::vector{3, 7, 49});
  CHECK(allowed(prepared({.allowed_tokens = {{7, 3}}, .bad_tokens = {3, 4}}).mask) ==
        std::vector{7});
  CHECK(allowed(prepared({.bad_tokens = {0, 49}}).mask).size() == 48);
}

TEST_CASE("constraints: stop tokens are masked until min_tokens") {
  const Constraints plain = prepared({}, 2, {5, 6});
  CHECK(plain.mask.is_empty());
  CHECK(allowed(plain.early_mask).size() == 48);
  CHECK_FALSE(plain.early_mask.allows(5));
  const Constraints listed = prepared({.allowed_tokens = {{5, 8}}}, 1, {5, 6});
  CHECK(allowed(listed.mask) == std::vector{5, 8});
  CHECK(allowed(listed.early_mask) == std::vector{8});
  CHECK(prepared({}, 0, {5}).early_mask.is_empty());
  CHECK(prepared({}, 3).early_mask.is_empty());
}

TEST_CASE("constraints: the first mask of a guide keeps allowed tokens alone") {
  const std::vector<std::int32_t> tokens = {3, 4};
  TokenMask first(kVocabulary, false);
  first.allow(tokens);
  prepared({}).guide(first);
  CHECK(allowed(first) == tokens);
  prepared({.bad_tokens = {4}}).guide(first);
  CHECK(allowed(first) == std::vector{3});
  CHECK_THROWS_AS(prepared({.bad_tokens = {3}}).guide(first), InvalidArgument);
  first.allow(tokens);
  CHECK_THROWS_AS(prepared({}, 1, {5}).guide(first), InvalidArgument);
}

TEST_CASE("constraints: what makes no sense is refused") {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const auto& wrong : std::vector<Constraints>{
           {.biases = {{50, 1.0f}}},
           {.biases = {{-1, 1.0f}}},
           {.biases = {{3, infinite}}},
           {.biases = {{3, 1.0f}, {4, 1.0f}, {3, 2.0f}}},
           {.biases = std::vector<Bias>(Constraints::kMostBiases + 1)},
           {.allowed_tokens = {{50}}},
           {.bad_tokens = {-1}},
           {.allowed_tokens = std::vector<std::int32_t>()},
           {.allowed_tokens = {{4}}, .bad_tokens = {4}},
       })
    CHECK_THROWS_AS(prepared(wrong), InvalidArgument);
  CHECK_THROWS_AS(prepared({.allowed_tokens = {{4}}}, 1, {4}), InvalidArgument);
}
