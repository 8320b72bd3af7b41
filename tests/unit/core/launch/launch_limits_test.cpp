// Launch limits: the fast check and the message must agree on every configuration.
#include "core/launch/launch_limits.h"

#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <random>

using namespace kernwright;
using testing::contains;

namespace {

LaunchLimits hopper() {
  LaunchLimits limits;
  limits.grid = {2147483647, 65535, 65535};
  limits.block = {1024, 1024, 64};
  limits.device_threads = 1024;
  limits.kernel_threads = 1024;
  limits.static_shared = 1024;
  limits.block_shared = 232448;
  limits.cluster_blocks = 16;
  limits.cooperative = true;
  limits.programmatic_dependent = true;
  limits.launch_completion = true;
  limits.greatest_priority = -5;
  return limits;
}

std::string text(const LaunchLimits& limits, const LaunchConfig& config) {
  return limits.explain(config).text;
}

}  // namespace

TEST_CASE("limits: everything at its limit is allowed, one more is not") {
  const LaunchLimits limits = hopper();
  const auto allowed = [&](const LaunchConfig& config) { return limits.allow(config); };
  CHECK(allowed({}));
  CHECK(allowed({.grid = {2147483647, 65535, 65535}, .block = {1024, 1, 1}}));
  CHECK(allowed({.block = {1, 1024, 1}}));
  CHECK(allowed({.block = {1, 16, 64}}));
  CHECK(allowed({.shared_bytes = 232448 - 1024}));
  CHECK(allowed({.grid = {16, 1, 1}, .cluster = {16, 1, 1}}));
  CHECK(allowed({.cooperative = true, .programmatic_dependent = true}));

  CHECK(text(limits, {.grid = {2147483648U, 1, 1}}) ==
        "grid of 2147483648 x 1 x 1: at most 2147483647 x 65535 x 65535");
  CHECK(text(limits, {.grid = {1, 65536, 1}}) ==
        "grid of 1 x 65536 x 1: at most 2147483647 x 65535 x 65535");
  CHECK(text(limits, {.block = {2048, 1, 1}}) ==
        "block of 2048 threads (2048 x 1 x 1): at most 1024 threads");
  CHECK(text(limits, {.block = {33, 32, 1}}) ==
        "block of 1056 threads (33 x 32 x 1): at most 1024 threads");
  CHECK(text(limits, {.block = {1, 1, 65}}) == "block of 1 x 1 x 65: at most 1024 x 1024 x 64");
  CHECK(text(limits, {.block = {4294967295U, 4294967295U, 4294967295U}}) != "");
  CHECK(text(limits, {.shared_bytes = 232448}) ==
        "shared memory of 233472 bytes (232448 dynamic and 1024 static): at most 232448 bytes");
  CHECK(text(limits, {.shared_bytes = 4294967295U}) != "");
  const LaunchConfig one_more{.shared_bytes = 232448 - 1024 + 1};
  CHECK_FALSE(allowed(one_more));
  CHECK(text(limits, one_more) ==
        "shared memory of 232449 bytes (231425 dynamic and 1024 static): at most 232448 bytes");
}

TEST_CASE("limits: extents of 0 are refused by name") {
  const LaunchLimits limits = hopper();
  for (const Dim3 zero : {Dim3{0, 1, 1}, Dim3{1, 0, 1}, Dim3{1, 1, 0}, Dim3{0, 0, 0}}) {
    CHECK(contains(text(limits, {.grid = zero}), "grid of "));
    CHECK(contains(text(limits, {.grid = zero}), "at least 1"));
    CHECK(contains(text(limits, {.block = zero}), "block of "));
    CHECK(contains(text(limits, {.block = zero}), "at least 1"));
  }
}

TEST_CASE("limits: a kernel with many registers has a lower limit, and the note says why") {
  LaunchLimits limits = hopper();
  limits.kernel_threads = 512;
  CHECK(limits.allow({.block = {512, 1, 1}}));
  const LimitViolation violation = limits.explain({.block = {1024, 1, 1}});
  CHECK(violation.text == "block of 1024 threads (1024 x 1 x 1): at most 512 threads");
  CHECK(contains(violation.note, "registers"));
}

TEST_CASE("limits: clusters need a device that has them, a fitting grid, and the compiled size") {
  LaunchLimits limits = hopper();
  CHECK(contains(text(limits, {.grid = {17, 1, 1}, .cluster = {17, 1, 1}}), "at most 16 blocks"));
  CHECK(contains(text(limits, {.grid = {6, 1, 1}, .cluster = {4, 1, 1}}), "not a multiple"));
  CHECK(contains(text(limits, {.grid = {4, 1, 1}, .cluster = {4, 0, 1}}), "or all 0"));
  limits.required_cluster = {2, 1, 1};
  CHECK(limits.allow({.grid = {4, 1, 1}}));
  CHECK(limits.allow({.grid = {4, 1, 1}, .cluster = {2, 1, 1}}));
  CHECK(contains(text(limits, {.grid = {3, 1, 1}}), "compiled"));
  CHECK(contains(text(limits, {.grid = {4, 1, 1}, .cluster = {4, 1, 1}}), "compiled"));
  limits = hopper();
  limits.cluster_blocks = 0;
  CHECK(contains(limits.explain({.grid = {2, 1, 1}, .cluster = {2, 1, 1}}).note, "9.0"));
}

TEST_CASE("limits: cooperative and dependent launches need support") {
  LaunchLimits limits = hopper();
  limits.cooperative = false;
  limits.programmatic_dependent = false;
  CHECK(contains(text(limits, {.cooperative = true}), "cooperative"));
  CHECK(contains(text(limits, {.programmatic_dependent = true}), "dependent"));
  CHECK(limits.allow({}));
}

TEST_CASE("limits: the fast check and the message agree on random configurations") {
  std::mt19937 random(20240607);
  const std::uint32_t values[] = {0,    1,     2,     3,          4,           8,
                                  16,   32,    64,    65,         512,         1024,
                                  1025, 65535, 65536, 2147483647, 2147483648U, 4294967295U};
  const auto pick = [&] { return values[random() % std::size(values)]; };
  const auto pick_small = [&] { return values[random() % 8]; };
  LaunchLimits limits = hopper();
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    limits.kernel_threads = random() % 2 == 0 ? 1024 : 512;
    limits.cluster_blocks = random() % 4 == 0 ? 0 : 16;
    limits.cooperative = random() % 2 == 0;
    limits.programmatic_dependent = random() % 2 == 0;
    limits.required_cluster = random() % 4 == 0 ? Dim3{2, 1, 1} : Dim3{0, 0, 0};
    LaunchConfig config;
    config.grid = {pick(), pick_small(), pick_small()};
    config.block = {pick(), pick_small(), pick_small()};
    config.shared_bytes = pick();
    if (random() % 2 == 0) config.cluster = {pick_small(), pick_small(), 1};
    config.cooperative = random() % 3 == 0;
    config.programmatic_dependent = random() % 3 == 0;
    const bool allowed = limits.allow(config);
    REQUIRE(limits.explain(config).text.empty() == allowed);
    refused += allowed ? 0 : 1;
  }
  CHECK(refused > 100);
  CHECK(refused < 20000);
}
