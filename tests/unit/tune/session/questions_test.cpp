// Questions of a search, each once, and its answers in order.
#include "tune/session/questions.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <set>

using namespace kernwright;

namespace {

struct Asked {
  explicit Asked(SessionOptions its_options = {}) : options(std::move(its_options)) {
    space.add("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  }

  Space space;
  SessionOptions options;
};

Trial answer(std::uint64_t index, double score) {
  Trial trial;
  trial.index = index;
  trial.score = score;
  return trial;
}

}  // namespace

TEST_CASE("questions: each configuration once, the default first, until there is none left") {
  Asked asked({.default_index = 7});
  Questions questions(asked.space, asked.options);
  CHECK(questions.has_fixed_order());
  CHECK(questions.ask() == 7);
  std::set<std::uint64_t> seen{7};
  while (const auto index = questions.ask()) CHECK(seen.insert(*index).second);
  CHECK(seen.size() == 12);
  CHECK(questions.is_exhausted());
}

TEST_CASE("questions: those without an answer are told in their order") {
  Asked asked;
  Questions questions(asked.space, asked.options);
  for (const std::uint64_t number : {4, 2}) {
    REQUIRE(questions.ask());
    questions.expect(number);
  }
  CHECK(questions.open() == 2);
  CHECK(questions.oldest() == 4);
  questions.answer_oldest(answer(0, 1));
  CHECK(questions.oldest() == 2);
  questions.answer_oldest(answer(1, 1));
  CHECK(questions.open() == 0);
}

TEST_CASE(
    "questions: proposals come before the strategy's, and are asked for after eight answers") {
  int calls = 0;
  SessionOptions options;
  options.propose = [&calls] {
    return ++calls == 1 ? std::vector<std::uint64_t>{9, 9, 40} : std::vector<std::uint64_t>{11, 9};
  };
  Asked asked(std::move(options));
  Questions questions(asked.space, asked.options);
  CHECK_FALSE(questions.has_fixed_order());
  CHECK(questions.ask() == 9);
  std::set<std::uint64_t> seen{9};
  for (std::uint64_t number = 0; number < 8; ++number) {
    questions.expect(number);
    questions.answer_oldest(answer(number == 0 ? 9 : *seen.rbegin(), 1));
    if (number == 7) break;
    const auto index = questions.ask();
    REQUIRE(index);
    CHECK(seen.insert(*index).second);
  }
  CHECK(calls == 1);
  const bool is_new = !seen.contains(11);
  const auto next = questions.ask();
  CHECK(calls == 2);
  REQUIRE(is_new);
  CHECK(next == 11);
}

TEST_CASE("questions: what is no configuration, and no strategy, is refused") {
  Asked beyond({.initial = {12}});
  CHECK_THROWS_AS(Questions(beyond.space, beyond.options), InvalidArgument);
  Asked unknown({.strategy = "no such"});
  CHECK_THROWS_AS(Questions(unknown.space, unknown.options), NameNotFound);
}

TEST_CASE("scout: proposes what nobody took, and hears of each trial once") {
  Asked asked;
  Scout scout(asked.space, asked.options);
  std::vector<std::unique_ptr<Trial>> trials;
  std::set<std::uint64_t> taken{0, 1, 2};
  const auto is_taken = [&](std::uint64_t index) { return taken.contains(index); };
  while (const auto index = scout.next(trials, is_taken)) {
    CHECK(taken.insert(*index).second);
    trials.push_back(std::make_unique<Trial>(answer(*index, 1)));
  }
  CHECK(taken.size() == 12);
}
