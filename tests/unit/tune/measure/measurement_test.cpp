// Scores, and measurements that travel between processes.
#include "tune/measure/measurement.h"

#include "base/byte_reader.h"
#include "base/errors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

using namespace kernwright;

namespace {

Measurement timed() {
  Measurement m;
  m.policy = CachePolicy::graph;
  m.times_ms = {2, 4, 3};
  m.first_ms = 9;
  m.batch = 40;
  m.sm_clock_mhz = 1755;
  m.is_throttled = true;
  m.is_gated = true;
  m.gpu_seconds = 0.25;
  m.summarize();
  return m;
}

std::vector<std::byte> bytes_of(const auto& value) {
  ByteWriter out;
  write(out, value);
  return out.take();
}

}  // namespace

TEST_CASE("measurement: the summary is that of the samples") {
  const Measurement m = timed();
  CHECK(m.median_ms == 3);
  CHECK(m.interval_ms == Interval{2, 4});
  CHECK(m.noise == doctest::Approx(1.4826 / 3));
  Measurement none;
  none.summarize();
  CHECK(std::isnan(none.median_ms));
}

TEST_CASE("measurement: scores, and what cannot be scored") {
  Measurement m = timed();
  CHECK(score(m, Objective::time) == 3);
  CHECK_THROWS_AS(score(m, Objective::energy), InvalidArgument);
  CHECK_THROWS_AS(score(m, Objective::edp), InvalidArgument);
  m.energy_joules = 0.5;
  CHECK(score(m, Objective::energy) == 0.5);
  CHECK(score(m, Objective::edp) == doctest::Approx(0.5 * 0.003));
  Measurement counted;
  counted.counts = LaunchCounts{.instructions = 100, .transactions = 20};
  CHECK(score(counted, Objective::time) == 120);
  CHECK_THROWS_AS(score(counted, Objective::energy), InvalidArgument);
  CHECK_THROWS_AS(score(Measurement{}, Objective::time), InvalidArgument);
}

TEST_CASE("measurement: every field arrives, and cut or wrong bytes are an error") {
  Measurement m = timed();
  m.energy_joules = 0.125;
  m.counts = LaunchCounts{.instructions = 1, .transactions = 2};
  const std::vector<std::byte> bytes = bytes_of(m);
  ByteReader in(bytes, "a measurement");
  const Measurement back = read_measurement(in);
  in.expect_end();
  CHECK(bytes_of(back) == bytes);
  CHECK(back.times_ms == m.times_ms);
  CHECK(back.counts == m.counts);
  CHECK(back.energy_joules == m.energy_joules);
  CHECK_FALSE(back.power_watts.has_value());
  CHECK(back.policy == CachePolicy::graph);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut(std::span<const std::byte>(bytes).first(size), "a measurement");
    CHECK_THROWS_AS(read_measurement(cut), Error);
  }
  std::vector<std::byte> wrong = bytes;
  wrong[0] = std::byte{9};
  ByteReader bad(wrong, "a measurement");
  CHECK_THROWS_AS(read_measurement(bad), Error);
}

TEST_CASE("measurement: every field of a plan arrives") {
  MeasurePlan plan;
  plan.policy = CachePolicy::rotate;
  plan.min_samples = 3;
  plan.max_samples = 7;
  plan.target_noise = 0.25;
  plan.max_time = Seconds(1.5);
  plan.batch = 11;
  plan.warm_up = Seconds(2.5);
  plan.max_warm_up = Seconds(3.5);
  plan.clock_floor = 0.75;
  plan.max_throttle_wait = Seconds(4.5);
  plan.cap_ms = 6.5;
  plan.is_gated = false;
  plan.energy = true;
  plan.energy_time = Seconds(5.5);
  const std::vector<std::byte> bytes = bytes_of(plan);
  ByteReader in(bytes, "a plan");
  const MeasurePlan back = read_measure_plan(in);
  in.expect_end();
  CHECK(bytes_of(back) == bytes);
  CHECK(back.batch == 11);
  CHECK(back.energy_time == Seconds(5.5));
  CHECK_FALSE(back.is_gated);
}
