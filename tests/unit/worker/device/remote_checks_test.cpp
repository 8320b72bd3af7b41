// Checked and counted launches of a simulated device behind a worker.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/worker/device/device_fixture.h"

using namespace kernwright;
using namespace worker_test;

namespace {

constexpr const char* kRace = R"(
extern "C" __global__ void k(int* x, int n) {
  __shared__ int room[64];
  room[threadIdx.x] = n;
  x[threadIdx.x] = room[63 - threadIdx.x];
})";

bool has(const CheckReport& report, FaultKind kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const sim::Finding& finding) { return finding.fault.kind == kind; });
}

}  // namespace

TEST_CASE("remote checks: a clean kernel has no findings, and exact counts by line") {
  RemoteDevice device(simulated());
  const RemoteBuffer x = upload<int>(device, std::vector<int>(64, 1));
  const RemoteLaunch launch = launch_of(load(device, kAdd), 64, x, 1);
  const CheckReport report = device.check(launch);
  CHECK(report.findings.empty());
  CHECK(report.total == 0);
  CHECK(report.profile.launches == std::map<std::string, std::uint64_t>{{"k", 1}});
  const sim::LineCounts counts = report.profile.total();
  CHECK(counts.global_loads == 2);  // two warps
  CHECK(counts.global_stores == 2);
  CHECK(counts.global_sectors == 2 * 64 * 4 / 32);
  CHECK(counts.instructions > 4);
  CHECK(std::any_of(
      report.profile.lines.begin(), report.profile.lines.end(), [](const sim::LineRecord& record) {
        return record.file == "test.cu" && record.line == 2 && record.counts.global_loads == 2;
      }));
  CHECK(device.check(launch).profile.total() == counts);
}

TEST_CASE("remote checks: findings arrive with their lines and their other access") {
  RemoteDevice device(simulated());
  const RemoteBuffer x = device.allocate(4 * 64);
  const RemoteLaunch launch = launch_of(load(device, kRace), 64, x, 5);
  const CheckReport report = device.check(launch, {.checks = {"race"}});
  REQUIRE(has(report, FaultKind::race));
  const sim::Finding& finding = report.findings[0];
  CHECK(finding.fault.file == "test.cu");
  CHECK((finding.fault.line == 4 || finding.fault.line == 5));
  REQUIRE(finding.other);
  CHECK((finding.other->line == 4 || finding.other->line == 5));
  CHECK(finding.space == "shared memory");
  CHECK(!finding.hint.empty());
  CHECK(finding.breadth != sim::Breadth::none);
  CHECK(report.total >= finding.count);
  CHECK(device.check(launch, {.checks = {"memory"}}).findings.empty());
  CHECK(has(device.check(launch, {.checks = {"race"}, .schedule_seed = 3}), FaultKind::race));
  CHECK(device.check(launch, {.checks = {"all"}, .limit = 1}).findings.size() == 1);
}

TEST_CASE("remote checks: what stops a launch is a finding, and the device goes on") {
  RemoteDevice device(simulated({"KERNWRIGHT_SIM_BUDGET=10000"}));
  const RemoteBuffer x = upload<int>(device, {0});
  const CheckReport wild = device.check(launch_of(load(device, kWild), 1, x, 0));
  REQUIRE(wild.findings.size() == 1);
  CHECK(wild.findings[0].fault.kind == FaultKind::bounds);
  CHECK(has(device.check(launch_of(load(device, kEndless), 1, x, 0)), FaultKind::timeout));
  RemoteLaunch bad = launch_of(load(device, kAdd), 2000, x, 0);
  CHECK_THROWS_AS(device.check(bad), LaunchConfigError);
  bad.block = {1};
  CHECK(device.check(bad).findings.empty());
  CHECK(device.losses() == 0);
}

TEST_CASE("remote checks: memory that is allocated between begin and end counts as unwritten") {
  RemoteDevice device(simulated());
  const RemoteKernel kernel = load(device, kAdd);
  const RemoteBuffer old = device.allocate(4 * 32);
  device.begin_checks();
  const RemoteBuffer fresh = device.allocate(4 * 32);
  const RemoteBuffer written = upload(device, std::vector<int>(32, 1));
  device.launch(launch_of(kernel, 32, old, 1));
  device.launch(launch_of(kernel, 32, written, 1));
  device.launch(launch_of(kernel, 32, fresh, 1));
  CHECK_THROWS_AS(device.begin_checks(), InvalidArgument);
  CHECK_THROWS_AS(device.check(launch_of(kernel, 32, old, 1)), InvalidArgument);
  const CheckReport report = device.end_checks();
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].fault.kind == FaultKind::init);
  CHECK(report.profile.launches.at("k") == 3);
  CHECK_THROWS_AS(device.end_checks(), InvalidArgument);
  CHECK_THROWS_AS(device.begin_checks({.checks = {"everything"}}), InvalidArgument);
  CHECK(device.check(launch_of(kernel, 32, old, 1)).findings.empty());
}

TEST_CASE("remote checks: lines count in the file that holds the kernel's text") {
  RemoteDevice device(simulated());
  const RemoteBuffer x = device.allocate(4 * 64);
  const SourceOrigin origin{"test.cu", 101};
  const RemoteKernel race = device.load(code_for(device, kRace), "k", {}, origin);
  const CheckReport report = device.check(launch_of(race, 64, x, 5), {.checks = {"race"}});
  REQUIRE(has(report, FaultKind::race));
  CHECK(report.findings[0].fault.first_line == 101);
  REQUIRE(report.findings[0].other);
  CHECK(report.findings[0].other->first_line == 101);
  CHECK(report.profile.lines[0].first_line == 101);
  const RemoteKernel wild = device.load(code_for(device, kWild), "k", {}, origin);
  try {
    device.launch(launch_of(wild, 1, x, 0));
    FAIL("no exception");
  } catch (const DeviceFault& e) {
    CHECK(e.report.line == 2);
    CHECK(e.report.first_line == 101);
    CHECK(std::string(e.what()).find("test.cu:102") != std::string::npos);
  }
}

TEST_CASE("remote checks: a GPU has none") {
  RemoteDevice device(device_options());
  if (device.facts().is_simulated) return;
  const RemoteBuffer x = upload<int>(device, {0});
  CHECK_THROWS_WITH_AS(device.check(launch_of(load(device, kAdd), 1, x, 0)),
                       doctest::Contains("KERNWRIGHT_DEVICE=sim"), InvalidArgument);
}
