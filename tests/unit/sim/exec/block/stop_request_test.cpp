// When a launch ends early, seen from the thread that launches and from others.
#include "sim/exec/block/stop_request.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "sim/code/program.h"
#include "sim/device/launch/grid.h"
#include "sim/ptx/parse/parser.h"

using namespace kernwright;
using namespace kernwright::sim;

namespace {

std::atomic<int> asked = 0;
bool is_pressed() { return ++asked >= 3; }
bool is_never_pressed() {
  ++asked;
  return false;
}

/// Asks until it is due; how often the check was called by then.
int looks_until_due(StopRequest& stop) {
  asked = 0;
  while (!stop.is_due()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return asked;
}

constexpr char kForever[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry forever()
{
AGAIN:
  bra AGAIN;
}
.visible .entry nothing()
{
  ret;
}
)";

std::uint32_t index_of(const Program& program, const char* name) {
  return static_cast<std::uint32_t>(program.find(name) - program.functions.data());
}

}  // namespace

TEST_CASE("stop request: a check is asked now and then, by the launching thread alone") {
  StopRequest stop(is_pressed, std::chrono::seconds(0));
  CHECK_FALSE(stop.is_due());
  const auto begin = StopRequest::Clock::now();
  std::thread([&] {
    asked = 0;
    while (StopRequest::Clock::now() - begin < std::chrono::milliseconds(120)) {
      CHECK_FALSE(stop.is_due());
    }
    CHECK(asked == 0);
  }).join();
  CHECK(looks_until_due(stop) == 3);
  CHECK(StopRequest::Clock::now() - begin >= std::chrono::milliseconds(150));
  CHECK(stop.reason() == FaultKind::interrupted);
  bool others_see_it = false;
  std::thread([&] { others_see_it = stop.is_due(); }).join();
  CHECK(others_see_it);
  CHECK(stop.is_due());
  CHECK(asked == 3);
}

TEST_CASE("stop request: without a check, and with a limit of time") {
  StopRequest stop(nullptr, std::chrono::seconds(1));
  looks_until_due(stop);
  CHECK(stop.reason() == FaultKind::timeout);
  CHECK(stop.message().find("1 s (KERNWRIGHT_SIM_TIMEOUT)") != std::string::npos);
}

TEST_CASE("stop request: grids of every kind end where they are") {
  const auto program = decode(ptx::parse(kForever), {});
  Memory memory(std::size_t{1} << 20);
  for (const char* name : {"forever", "nothing"}) {
    for (const int kind : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(kind);
      LaunchContext launch;
      launch.program = program.get();
      launch.function = index_of(*program, name);
      launch.memory = &memory;
      const bool is_endless = std::strcmp(name, "forever") == 0;
      launch.grid = {is_endless ? 6u : 1u << 30, 1, 1};
      launch.block = {40, 1, 1};
      if (kind == 1) launch.cluster = {2, 1, 1};
      // All blocks of a cooperative grid are there at once; an order is drawn up for all.
      if (!is_endless && kind > 1) continue;
      StopRequest stop(is_pressed, std::chrono::seconds(0));
      launch.stop = &stop;
      asked = 0;
      const GridResult result = kind < 2    ? run_grid(launch, 3)
                                : kind == 2 ? run_cooperative_grid(launch, 3)
                                            : run_scheduled_grid(launch, 7, false);
      REQUIRE(result.fault);
      CHECK(result.fault->kind == FaultKind::interrupted);
      CHECK(result.fault->kernel == name);
      CHECK(result.fault->ptx_line > 0);
      CHECK(asked == 3);
    }
  }
}

TEST_CASE("stop request: what is never due changes nothing") {
  const auto program = decode(ptx::parse(kForever), {});
  Memory memory(std::size_t{1} << 20);
  StopRequest stop(is_never_pressed, std::chrono::seconds(3600));
  LaunchContext launch;
  launch.program = program.get();
  launch.function = index_of(*program, "nothing");
  launch.memory = &memory;
  launch.grid = {100'000, 1, 1};
  launch.stop = &stop;
  CHECK_FALSE(run_grid(launch, 2).fault);
}
