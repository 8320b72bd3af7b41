// When drafts are tried, kept and left out, by what steps took.
#include "engine/drafts.h"

#include <doctest/doctest.h>

using namespace kernwright::engine;

namespace {

constexpr Bucket kPlain = {4, 4}, kDrafted = {4, 32, 0, 7};

/// Steps of a policy in a world where steps take these times and drafts are accepted so often. The
/// time of all steps, in plain steps for as many tokens.
double relative_time(DraftPolicy& policy, int steps, double ratio, double accepted) {
  double time = 0, tokens = 0;
  for (int i = 0; i < steps; ++i) {
    const bool drafts = policy.wants(kPlain, accepted);
    policy.measure(drafts ? kDrafted : kPlain, drafts ? 1e-3 * ratio : 1e-3);
    time += drafts ? ratio : 1;
    tokens += drafts ? 1 + accepted : 1;
  }
  return time / tokens;
}

}  // namespace

TEST_CASE("drafts: steps that do not pay cost at most two hundredths") {
  for (const double ratio : {1.05, 1.3, 2.0, 8.0}) {
    for (const double accepted : {0.0, 0.04, 0.25}) {
      if (1 + accepted >= ratio) continue;
      DraftPolicy policy({.tokens = 7});
      relative_time(policy, 50, ratio, accepted);
      CHECK(relative_time(policy, 3000, ratio, accepted) < 1.02);
    }
  }
}

TEST_CASE("drafts: steps that pay are nearly all drafted, and come back after a bad time") {
  DraftPolicy policy({.tokens = 7});
  CHECK(relative_time(policy, 2000, 1.5, 3) < 1.02 * 1.5 / 4);
  CHECK(relative_time(policy, 2000, 6, 3) < 1.2);  // steps take longer now
  CHECK(relative_time(policy, 20000, 1.5, 3) < 0.5);
}

TEST_CASE("drafts: a host that is busy during some of the first steps decides nothing") {
  for (int busy = 0; busy < 7; ++busy) {  // which of the steps 2 to 4 of each way take longer
    const auto slowdown = [&](int step) {
      return step == 0 || (step < 4 && (busy >> (step - 1) & 1) != 0) ? 10 : 1;
    };
    for (const bool drafts_pay : {false, true}) {
      DraftPolicy policy({.tokens = 7});
      int drafted = 0, plain = 0;
      const double accepted = drafts_pay ? 3 : 0;
      for (int i = 0; i < 8; ++i) {
        const bool drafts = policy.wants(kPlain, accepted);
        int& step = drafts ? drafted : plain;
        // Trials of the way that is better are disturbed, so that it seems to be the worse one.
        const double factor = drafts == drafts_pay ? slowdown(step) : step == 0 ? 10 : 1;
        policy.measure(drafts ? kDrafted : kPlain, factor * (drafts ? 2e-3 : 1e-3));
        ++step;
      }
      CHECK(drafted == 4);
      CHECK(policy.wants(kPlain, accepted) == drafts_pay);
    }
  }
}

TEST_CASE("drafts: a host that is busy for some steps makes few drafts that do not pay") {
  for (const double factor : {1.5, 3.0, 20.0}) {
    for (int busy = 1; busy <= 12; ++busy) {
      DraftPolicy policy({.tokens = 7});
      relative_time(policy, 20, 2.8, 0.8);
      int drafted = 0;
      for (int i = 0; i < 200; ++i) {
        const bool drafts = policy.wants(kPlain, 0.8);
        const double seconds = (drafts ? 2.8e-3 : 1e-3) * (i < busy ? factor : 1);
        policy.measure(drafts ? kDrafted : kPlain, seconds);
        drafted += drafts ? 1 : 0;
      }
      CAPTURE(busy);
      CAPTURE(factor);
      CHECK(drafted <= 20);
    }
  }
}

TEST_CASE("drafts: each size is measured for itself, and with always none is") {
  DraftPolicy policy({.tokens = 7});
  relative_time(policy, 100, 9, 0);
  CHECK_FALSE(policy.wants(kPlain, 0));
  CHECK(policy.wants({8, 8}, 0));
  DraftPolicy always({.tokens = 7, .always = true});
  relative_time(always, 100, 9, 0);
  CHECK(always.wants(kPlain, 0));
}

TEST_CASE("drafts: a sequence is expected to go on as before, and a new one as the others") {
  DraftPolicy policy({.tokens = 7});
  float own = policy.expectation();
  for (int i = 0; i < 200; ++i) policy.observe(own, 4);
  CHECK(own == doctest::Approx(4).epsilon(0.01));
  CHECK(policy.expectation() == doctest::Approx(4).epsilon(0.05));
  for (int i = 0; i < 8; ++i) policy.observe(own, 0);
  CHECK(own < 0.5f);
  CHECK(policy.expectation() > 3);
}
