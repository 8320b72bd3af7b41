// Several devices behind workers, for several threads.
#include "worker/device/device_pool.h"

#include <doctest/doctest.h>

#include <mutex>
#include <set>

#include "tests/unit/worker/device/device_fixture.h"

using namespace kernwright;
using namespace worker_test;

TEST_CASE("device pool: threads share its devices, each alone on one at a time") {
  DevicePool pool(3, simulated());
  REQUIRE(pool.size() == 3);
  ObjectCode code;
  {
    const auto device = pool.lease();
    code = code_for(*device, kAdd);
  }
  std::mutex mutex;
  std::set<pid_t> processes;
  int right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        const auto device = pool.lease();
        const RemoteBuffer x = upload<int>(*device, {i});
        device->launch(launch_of(device->load(code, "k"), 1, x, round));
        const int got = download<int>(*device, x)[0];
        const std::lock_guard lock(mutex);
        right += got == i + round ? 1 : 0;
        processes.insert(device->process_id());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
  CHECK(processes.size() <= 3);
}

TEST_CASE("device pool: waiting for a device ends at the limits") {
  DevicePool pool(1, simulated());
  const auto taken = pool.lease();
  CHECK(taken.index() == 0);
  CHECK_THROWS_AS(pool.lease(for_ms(50)), Timeout);
}

TEST_CASE("device pool: without a count there is one device for each GPU") {
  DevicePool pool(0, device_options());
  std::set<std::string> uuids;
  std::vector<DevicePool::Lease> leases;
  for (unsigned i = 0; i < pool.size(); ++i) {
    leases.push_back(pool.lease());
    const DeviceFacts& facts = leases.back()->facts();
    uuids.insert(facts.uuid);
    if (facts.is_simulated) {
      CHECK(pool.size() == 1);
    } else {
      CHECK(pool.size() == static_cast<unsigned>(facts.device_count));
      CHECK(facts.label == "cuda:" + std::to_string(i));
      CHECK_THROWS_AS(DevicePool(pool.size() + 1, device_options()), InvalidArgument);
    }
  }
  CHECK(uuids.size() == pool.size());
  if (!leases[0]->facts().is_simulated) {
    CHECK(DevicePool(0, device_options({"KERNWRIGHT_DEVICE=cuda:0"})).size() == 1);
  }
}

TEST_CASE("device pool: a device that was lost comes back alone") {
  DevicePool pool(2, simulated());
  const auto one = pool.lease(), other = pool.lease();
  one->facts();
  other->facts();
  const std::uint64_t generation = other->generation();
  ::kill(one->process_id(), SIGKILL);
  CHECK_THROWS_AS(one->allocate(1), WorkerLost);
  CHECK(one->allocate(1).id != 0);
  CHECK(other->generation() == generation);
}
