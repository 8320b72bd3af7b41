// Links between devices: asked once, opened once, and absent without harm.
#include "core/peers.h"

#include "base/errors.h"
#include "core/device.h"
#include "sim/device.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace kernwright;
using testing::FakeDriver;

namespace {

struct Pair {
  DeviceRegistry& registry = testing::fake_registry();
  Device& first = registry.by_index(0);
  Device& second = registry.by_index(1);
  FakeDriver& driver = FakeDriver::get();
};

}  // namespace

TEST_CASE("peers: a link is opened once for each direction, with the device's context current") {
  Pair pair;
  CHECK(peer_link(pair.first, pair.second).access);
  CHECK(enable_peer_access(pair.first, pair.second));
  CHECK(enable_peer_access(pair.first, pair.second));
  CHECK(pair.driver.calls("cuCtxEnablePeerAccess") == 1);
  CHECK(enable_peer_access(pair.second, pair.first));
  CHECK(pair.driver.calls("cuCtxEnablePeerAccess") == 2);
  CHECK(testing::fake_current_context() == nullptr);
  CHECK(enable_peer_access(pair.first, pair.first));
  CHECK(peer_link(pair.first, pair.first).native_atomics);
}

TEST_CASE("peers: opened by another library is as good, and no link or no room is no failure") {
  {
    Pair pair;
    pair.driver.fail("cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK(enable_peer_access(pair.first, pair.second));
  }
  {
    Pair pair;
    pair.driver.fail("cuCtxEnablePeerAccess", CUDA_ERROR_TOO_MANY_PEERS);
    CHECK_FALSE(enable_peer_access(pair.first, pair.second));
    CHECK_FALSE(enable_peer_access(pair.first, pair.second));
    CHECK(pair.driver.calls("cuCtxEnablePeerAccess") == 1);
  }
  {
    Pair pair;
    pair.driver.peers = false;
    CHECK_FALSE(peer_link(pair.first, pair.second).access);
    CHECK_FALSE(enable_peer_access(pair.first, pair.second));
    CHECK(pair.driver.calls("cuCtxEnablePeerAccess") == 0);
  }
}

TEST_CASE("peers: a real failure is raised, and asked for again") {
  Pair pair;
  pair.driver.fail("cuDeviceCanAccessPeer", CUDA_ERROR_INVALID_DEVICE);
  CHECK_THROWS_AS(peer_link(pair.first, pair.second), DriverError);
  pair.driver.fail("cuCtxEnablePeerAccess", CUDA_ERROR_INVALID_CONTEXT);
  CHECK_THROWS_AS(enable_peer_access(pair.first, pair.second), DriverError);
  CHECK(enable_peer_access(pair.first, pair.second));
}

TEST_CASE("peers: a GPU and the simulated device do not reach each other") {
  FakeDriver::get().reset();
  DeviceRegistry registry({.cuda = &FakeDriver::get().api(),
                           .cuda_reason = {},
                           .sim = &sim::driver_api,
                           .wanted = "auto"});
  Device& gpu = registry.by_name("cuda:0");
  Device& simulated = registry.by_name("sim:0");
  CHECK_FALSE(peer_link(gpu, simulated).access);
  CHECK_FALSE(enable_peer_access(gpu, simulated));
}

TEST_CASE("peers: threads open a link once") {
  Pair pair;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { CHECK(enable_peer_access(pair.first, pair.second)); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pair.driver.calls("cuCtxEnablePeerAccess") == 1);
}
