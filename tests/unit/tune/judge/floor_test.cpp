// Least times from peaks, and cases that are kept.
#include "tune/judge/floor.h"

#include <doctest/doctest.h>

#include "tune/judge/drawn_cases.h"

using namespace kernwright;

namespace {

/// An array that is read and one that is written, of so many floats.
HostCase reads_and_writes(std::size_t n, std::uint64_t seed = 0, int number = 0) {
  const HostValue array = HostValue::from(ScalarType::float32, std::vector<float>(n));
  return {number, seed, {array, array}, {std::nullopt, array}, {}};
}

DeviceFacts h100() {
  DeviceFacts facts;
  facts.capability = {9, 0};
  facts.sm_count = 132;
  facts.clock_khz = 1980000;
  facts.memory_clock_khz = 2619000;
  facts.memory_bus_bits = 5120;
  facts.l2_bytes = 50 << 20;
  return facts;
}

Task task_of(double bytes, double flops) {
  Task task;
  task.bytes = [bytes](const HostValues&) { return bytes; };
  task.flops = [flops](const HostValues&) { return flops; };
  return task;
}

}  // namespace

TEST_CASE("floor: bytes over the bandwidth, less what L2 may keep of the results") {
  const HostCase small = reads_and_writes(1 << 20);
  const double written = 4 << 20, gbs = 3352.32e9;
  const Floor floor = time_floor(task_of(8 << 20, 0), small, {}, h100());
  CHECK(floor.value == doctest::Approx(((8 << 20) - written) / gbs * 1e3));
  CHECK(floor.reason.find("3352 GB/s") != std::string::npos);
  CHECK(time_floor(task_of(0, 0), small, {}, h100()).value == 0);
  CHECK(time_floor(Task{}, small, {}, h100()).value == 0);
  CHECK(time_floor(task_of(1e9, 1e9), small, {}, DeviceFacts{}).value == 0);
}

TEST_CASE("floor: operations over the rate of the fastest unit") {
  const HostCase small = reads_and_writes(16);
  const Floor halves = time_floor(task_of(0, 1e12), small, {}, h100());
  // 132 x 4096 x 1.98 GHz: above the 989.4 TFLOP/s of the data sheet, which has a lower clock.
  CHECK(halves.value == doctest::Approx(1e12 / (132 * 4096 * 1.98e9) * 1e3));
  CHECK(halves.value < 1e12 / 989.4e12 * 1e3);
  KernelSignature bytes;
  bytes.parameters.resize(1);
  bytes.parameters[0].kind = ParameterKind::pointer;
  bytes.parameters[0].scalar = ScalarType::float8_e4m3fn;
  CHECK(time_floor(task_of(0, 1e12), small, bytes, h100()).value ==
        doctest::Approx(halves.value / 2));
  DeviceFacts later = h100();
  later.capability = {13, 0};
  CHECK(time_floor(task_of(0, 1e12), small, {}, later).value < halves.value / 10);
}

TEST_CASE("floor: counts of the simulated device") {
  const HostCase small = reads_and_writes(16);
  CHECK(count_floor(task_of(3200, 0), small, {}).value == 100);
  CHECK(count_floor(task_of(0, 1 << 20), small, {}).value == 4);
  sim::LineCounts uncounted;
  uncounted.uncounted = 2;
  CHECK_MESSAGE(count_floor(task_of(3200, 0), small, uncounted).value == 100, "of shared memory");
  uncounted.uncounted_bytes = 6400;
  CHECK(count_floor(task_of(3200, 0), small, uncounted).value == 0);
  const Floor rest = count_floor(task_of(9600, 0), small, uncounted);
  CHECK(rest.value == 100);
  CHECK(rest.reason.find("2 instructions may have moved") != std::string::npos);
}

TEST_CASE("drawn cases: the same seed and number are drawn once") {
  DrawnCases kept(3 * sizeof(HostCase) + 3 * 3000);
  int drawn = 0;
  const auto get = [&](std::uint64_t seed, int number) {
    return kept.get(seed, number, [&] {
      ++drawn;
      return std::make_shared<const HostCase>(reads_and_writes(250, seed, number));
    });
  };
  const CaseRef first = get(1, 0);
  CHECK(get(1, 0) == first);
  CHECK(drawn == 1);
  CHECK(get(1, 1)->number == 1);
  CHECK(get(2, 0)->seed == 2);
  CHECK(drawn == 3);
  CHECK(get(1, 0) == first);
  get(2, 1);  // the one that was unused for longest makes room
  CHECK(get(1, 0) == first);
  CHECK(drawn == 4);
  get(1, 1);
  CHECK(drawn == 5);
  CHECK(kept.bytes() == 3 * sizeof(HostCase) + 3 * 3000);
  DrawnCases many;
  for (int i = 0; i < 1000; ++i) {
    many.get(0, i, [&] { return std::make_shared<const HostCase>(reads_and_writes(1, 0, i)); });
  }
  CHECK(many.bytes() == 128 * (sizeof(HostCase) + 12));
}
