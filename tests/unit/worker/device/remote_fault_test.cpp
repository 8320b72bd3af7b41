// Whatever goes wrong on a device behind a worker: a typed error, and a device that works again.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "tests/unit/worker/device/device_fixture.h"

using namespace kernwright;
using namespace worker_test;

namespace {

/// Whether the device works, with everything made anew.
bool works(RemoteDevice& device) {
  const RemoteBuffer x = upload<int>(device, {1, 2});
  device.launch(launch_of(load(device, kAdd), 2, x, 10));
  return download<int>(device, x) == std::vector{11, 12};
}

double seconds_of(const auto& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint64_t resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    pid_t id = 0, of = 0;
    std::string name, state;
    if (file >> id >> name >> state >> of && of == parent) children.push_back(id);
  }
  return children;
}

}  // namespace

TEST_CASE("remote device: an illegal address is told, and the device works again within 1 s") {
  for (const bool keep_spare : {false, true}) {
    CAPTURE(keep_spare);
    RemoteDeviceOptions options = device_options();
    options.keep_spare = keep_spare;
    RemoteDevice device(options);
    const RemoteKernel wild = load(device, kWild);
    const ObjectCode good = code_for(device, kAdd);
    const RemoteBuffer x = upload<int>(device, {1, 2});
    const std::uint64_t generation = device.generation();
    if (device.facts().is_simulated) {
      try {
        device.launch(launch_of(wild, 1, x, 0));
        FAIL("no exception");
      } catch (const DeviceFault& e) {
        CHECK(e.report.kind == FaultKind::bounds);
        CHECK(e.report.kernel == "k");
        CHECK(e.report.line == 2);
        CHECK(e.report.file == "test.cu");
      }
      // Its context survives, unlike a GPU's.
      CHECK((download<int>(device, x) == std::vector{1, 2}));
      CHECK(device.generation() == generation);
      continue;
    }
    device.launch(launch_of(load(device, kAdd), 2, x, 0));  // gives a spare its time
    const double seconds = seconds_of([&] {
      CHECK_THROWS_AS(device.launch(launch_of(wild, 1, x, 0)), DeviceLost);
      CHECK(device.generation() == 0);
      CHECK_THROWS_AS(device.fill(x, std::byte{0}), WorkerLost);
      device.launch(launch_of(device.load(good, "k"), 2, upload<int>(device, {1, 2}), 10));
    });
    MESSAGE("from an illegal address to the next kernel's end: " << seconds << " s");
    CHECK(seconds < 1);
    CHECK(device.losses() == 1);
    CHECK(device.generation() != generation);
    CHECK(works(device));
  }
}

TEST_CASE("remote device: an endless kernel ends at the deadline") {
  RemoteDevice device(device_options());
  const RemoteBuffer x = upload<int>(device, {0});
  const RemoteKernel kernel = load(device, kEndless);
  const pid_t process = device.process_id();
  CHECK_THROWS_WITH_AS(device.launch(launch_of(kernel, 1, x, 0), for_ms(200)),
                       doctest::Contains("a launch in a worker"), Timeout);
  CHECK(device.process_id() == -1);
  CHECK(is_gone(process));
  CHECK_THROWS_AS(device.read(x, {}), WorkerLost);
  device.release(x);  // quietly
  device.unload(kernel);
  CHECK(works(device));
  CHECK(device.losses() == 1);
}

TEST_CASE("remote device: the simulated device's own limit leaves the process alone") {
  RemoteDevice device(simulated({"KERNWRIGHT_SIM_BUDGET=10000"}));
  const RemoteBuffer x = upload<int>(device, {0});
  CHECK_THROWS_AS(device.launch(launch_of(load(device, kEndless), 1, x, 0)), Timeout);
  CHECK(device.losses() == 0);
  CHECK((download<int>(device, x) == std::vector{0}));
  CHECK(works(device));
}

TEST_CASE("remote device: a stop flag ends a launch") {
  RemoteDevice device(device_options());
  const RemoteBuffer x = upload<int>(device, {0});
  const RemoteKernel kernel = load(device, kEndless);
  WaitLimits limits;
  limits.stop = std::make_shared<std::atomic<bool>>(false);
  std::thread stopper([stop = limits.stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop->store(true);
  });
  CHECK_THROWS_AS(device.launch(launch_of(kernel, 1, x, 0), limits), Cancelled);
  stopper.join();
  CHECK(works(device));
}

TEST_CASE("remote device: a process killed from outside, between calls and in the middle of one") {
  RemoteDevice device(device_options());
  CHECK(works(device));
  ::kill(device.process_id(), SIGKILL);
  CHECK_THROWS_WITH_AS(device.allocate(4), doctest::Contains("signal 9"), WorkerLost);
  CHECK(works(device));

  const RemoteBuffer x = upload<int>(device, {0});
  const RemoteKernel kernel = load(device, kEndless);
  std::thread killer([process = device.process_id()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(process, SIGKILL);
  });
  CHECK_THROWS_AS(device.launch(launch_of(kernel, 1, x, 0)), WorkerLost);
  killer.join();
  CHECK(works(device));
  CHECK(device.losses() == 2);
}

TEST_CASE("remote device: a crash in the worker, and kill()") {
  RemoteDevice device(device_options());
  CHECK(works(device));
  CHECK_THROWS_AS(device.run({"crash", "the crash test", {}}), WorkerLost);
  CHECK(device.generation() == 0);
  CHECK(works(device));
  device.kill();
  CHECK(device.generation() == 0);
  CHECK(device.losses() == 2);
  CHECK(works(device));
}

TEST_CASE("remote device: a spare takes over, and another one follows") {
  RemoteDeviceOptions options = device_options();
  options.keep_spare = true;
  RemoteDevice device(options);
  CHECK(works(device));
  for (int i = 0; i < 3; ++i) {
    const pid_t before = device.process_id();
    ::kill(before, SIGKILL);
    CHECK_THROWS_AS(device.allocate(4), WorkerLost);
    CHECK(works(device));
    CHECK(device.process_id() != before);
  }
  CHECK(device.losses() == 3);
}

TEST_CASE("remote device: a spare that ended before it was needed is replaced without a word") {
  RemoteDevice other(device_options());
  CHECK(works(other));  // so that the tests' compiler runs, too
  const std::vector<pid_t> others = children_of(::getpid());
  RemoteDeviceOptions options = device_options();
  options.keep_spare = true;
  RemoteDevice device(options);
  CHECK(works(device));
  int spares = 0;
  for (const pid_t child : children_of(::getpid())) {
    const bool is_spare = child != device.process_id() &&
                          std::find(others.begin(), others.end(), child) == others.end();
    if (is_spare && ::kill(child, SIGKILL) == 0) ++spares;
  }
  CHECK(spares == 1);
  device.kill();
  CHECK(works(device));
  CHECK(device.losses() == 1);
}

TEST_CASE("remote device: out of memory is told and costs nothing") {
  RemoteDevice device(simulated({"KERNWRIGHT_SIM_MEMORY=64M"}));
  const RemoteBuffer kept = upload<int>(device, {3});
  try {
    device.allocate(65 << 20);
    FAIL("no exception");
  } catch (const OutOfMemory& e) {
    CHECK(e.requested == 65 << 20);
  }
  CHECK_THROWS_AS(device.allocate(1, 40 << 20), OutOfMemory);
  for (int i = 0; i < 10; ++i) device.release(device.allocate(60 << 20));
  CHECK((download<int>(device, kept) == std::vector{3}));
  CHECK(device.losses() == 0);
}

TEST_CASE("remote device: no device, no program") {
  RemoteDevice none(device_options({"KERNWRIGHT_DEVICE=nonsense"}));
  CHECK_THROWS_WITH_AS(none.facts(), doctest::Contains("nonsense"), Error);
  CHECK(none.process_id() == -1);
  CHECK_THROWS_WITH_AS(none.allocate(1), doctest::Contains("nonsense"), Error);
  CHECK(none.losses() == 0);
  RemoteDevice missing({.worker = {.command = {"/nowhere/worker"}}});
  CHECK_THROWS_WITH_AS(missing.facts(), doctest::Contains("No such file"), Error);
  CHECK(missing.generation() == 0);
}

TEST_CASE("remote device: 1 GiB goes there and back") {
  RemoteDevice device(device_options({"KERNWRIGHT_SIM_MEMORY=2G"}));
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  const RemoteBuffer buffer = device.allocate(kBytes);
  std::vector<std::uint64_t> values(kBytes / 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
  device.write(buffer, std::as_bytes(std::span(values)));
  std::fill(values.begin(), values.end(), 0);
  device.read(buffer, std::as_writable_bytes(std::span(values)));
  bool is_equal = true;
  for (std::size_t i = 0; i < values.size(); ++i) is_equal = is_equal && values[i] == i;
  CHECK(is_equal);
}

TEST_CASE("remote device: ten thousand launches take no memory") {
  RemoteDevice device(device_options());
  const RemoteBuffer x = upload<int>(device, {0});
  const RemoteLaunch launch = launch_of(load(device, kAdd), 1, x, 1);
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      device.launch(launch);
      if (i % 100 == 0) device.release(device.allocate(1 << 20, 256));
    }
    return resident_bytes(device.process_id());
  };
  const std::uint64_t before = run(1000), own = resident_bytes(::getpid());
  const std::uint64_t after = run(9000);
  CHECK(download<int>(device, x)[0] == 10'000);
  // A sanitizer keeps what was freed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(after < before + (4 << 20));
  CHECK(resident_bytes(::getpid()) < own + (4 << 20));
#else
  static_cast<void>(before + own + after);
#endif
}

TEST_CASE("remote device: a process that outgrows its limit of memory is replaced") {
  RemoteDeviceOptions options = simulated();
  options.worker.memory_limit = std::uint64_t{200} << 20;
  RemoteDevice device(options);
  const RemoteBuffer large = device.allocate(std::uint64_t{800} << 20);
  CHECK_THROWS_WITH_AS(device.fill_random(large, 1), doctest::Contains("above its limit of"),
                       WorkerOutgrown);
  CHECK(device.losses() == 1);
  CHECK(works(device));
}

TEST_CASE("remote device: a process that grew large is renewed between works, which is no loss") {
  RemoteDeviceOptions options = simulated();
  options.worker.memory_limit = std::uint64_t{400} << 20;
  RemoteDevice device(options);
  device.renew_if_large();
  CHECK(device.generation() == 0);
  CHECK(works(device));
  const std::uint64_t first = device.generation();
  device.renew_if_large();
  CHECK(device.generation() == first);
  device.fill_random(device.allocate(std::uint64_t{220} << 20), 1);
  device.renew_if_large();
  CHECK(device.generation() == 0);
  CHECK(device.losses() == 0);
  CHECK(works(device));
}

TEST_CASE("remote device: it ends with its parent, in the middle of a launch, and its spare too") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  // Compiled here: the child has no threads but its own.
  RemoteDevice outer(device_options());
  const ObjectCode code = code_for(outer, kEndless);
  const pid_t parent = ::fork();
  if (parent == 0) {
    RemoteDeviceOptions options = device_options();
    options.keep_spare = true;
    RemoteDevice device(options);
    const RemoteBuffer x = upload<int>(device, {0});
    const RemoteKernel kernel = device.load(code, "k");
    const pid_t id = device.process_id();
    if (::write(pipe[1], &id, sizeof id) != sizeof id) ::_exit(1);
    device.launch(launch_of(kernel, 1, x, 0));
    ::_exit(0);
  }
  pid_t worker = -1;
  REQUIRE(::read(pipe[0], &worker, sizeof worker) == sizeof worker);
  ::close(pipe[0]);
  ::close(pipe[1]);
  const auto two = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::vector<pid_t> children;
  while (children.size() < 2 && std::chrono::steady_clock::now() < two) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    children = children_of(parent);
  }
  REQUIRE(children.size() == 2);
  CHECK(std::count(children.begin(), children.end(), worker) == 1);
  kill_and_wait(parent);
  for (const pid_t child : children) CHECK(is_gone(child));
  CHECK(works(outer));
}
