// Memory, kernels and launches of a device behind a worker.
#include "worker/device/remote_device.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/runtime.h"
#include "sim/device.h"
#include "tests/unit/worker/device/device_fixture.h"
#include "worker/device/device_state.h"
#include "worker/device/device_tasks.h"
#include "worker/device/random_bytes.h"

using namespace kernwright;
using namespace worker_test;

TEST_CASE("remote device: it says what it is") {
  RemoteDevice device(device_options());
  CHECK(device.generation() == 0);
  CHECK(device.process_id() == -1);
  const DeviceFacts& facts = device.facts();
  CHECK(!facts.name.empty());
  CHECK(facts.label == (facts.is_simulated ? "sim:0" : "cuda:0"));
  CHECK(facts.uuid.starts_with("GPU-"));
  CHECK(facts.capability.major >= 5);
  CHECK(facts.driver_version >= 11000);
  CHECK(facts.device_count >= 1);
  CHECK(facts.sm_count > 0);
  CHECK(facts.warp_size == 32);
  CHECK(facts.max_threads_per_block == 1024);
  CHECK(facts.max_shared_bytes_per_block >= 48 << 10);
  CHECK(facts.max_registers_per_block == 65536);
  CHECK(facts.l2_bytes > 0);
  CHECK(facts.total_bytes > 0);
  CHECK(device.generation() != 0);
  CHECK(device.process_id() > 0);
}

TEST_CASE("remote device: bytes of every size and place go there and back") {
  RemoteDevice device(device_options());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{255}, kSharedBytes,
                                 kSharedBytes + 1, 2 * kSharedBytes + 77}) {
    CAPTURE(size);
    std::vector<std::byte> sent(size);
    random_bytes(size, 0, sent);
    const RemoteBuffer buffer = device.allocate(size);
    CHECK(buffer.bytes == size);
    device.write(buffer, sent);
    std::vector<std::byte> got(size);
    device.read(buffer, got);
    CHECK((got == sent));
    const RemoteBuffer other = device.allocate(size);
    device.copy(other, buffer);
    std::vector<std::byte> tail(size / 3);
    device.read(other, tail, size - tail.size());
    CHECK(
        (tail == std::vector<std::byte>(sent.end() - static_cast<long>(tail.size()), sent.end())));
    device.write(other, tail, size / 2);
    device.read(other, got);
    std::copy(tail.begin(), tail.end(), sent.begin() + static_cast<long>(size / 2));
    CHECK((got == sent));
    device.release(buffer);
    device.release(other);
  }
}

TEST_CASE("remote device: fills with a byte and with the random stream of a seed") {
  RemoteDevice device(device_options());
  const RemoteBuffer buffer = device.allocate((3 << 20) + 5);
  device.fill(buffer, std::byte{0xa5});
  CHECK((download<std::byte>(device, buffer) ==
         std::vector<std::byte>(buffer.bytes, std::byte{0xa5})));
  device.fill_random(buffer, 42);
  std::vector<std::byte> expected(buffer.bytes);
  random_bytes(42, 0, expected);
  CHECK((download<std::byte>(device, buffer) == expected));
}

TEST_CASE("remote device: a kernel runs on its buffers and its numbers") {
  RemoteDevice device(device_options());
  const RemoteKernel kernel = load(device, kAdd);
  CHECK(kernel.attributes.max_threads_per_block > 0);
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const RemoteBuffer x = upload(device, values);
  RemoteLaunch launch = launch_of(kernel, 100, x, 7);
  launch.grid = {10};
  device.launch(launch);
  std::vector<int> got = download<int>(device, x);
  for (int i = 0; i < 1000; ++i) REQUIRE(got[i] == i + 7);
  // A pointer into the middle.
  launch.arguments[0].offset = 4 * 900;
  launch.grid = {1};
  device.launch(launch);
  got = download<int>(device, x);
  CHECK(got[899] == 906);
  CHECK(got[900] == 914);
}

TEST_CASE("remote device: each load is a module of its own, with fresh variables") {
  RemoteDevice device(device_options());
  const ObjectCode code = code_for(
      device, "__device__ int count; extern \"C\" __global__ void k(int* x) { *x = ++count; }");
  const RemoteBuffer x = upload<int>(device, {0});
  const auto run = [&](const RemoteKernel& kernel) {
    device.launch(
        {.kernel = kernel, .grid = {1}, .block = {1}, .arguments = {RemoteArgument::at(x)}});
    return download<int>(device, x)[0];
  };
  const RemoteKernel first = device.load(code, "k");
  CHECK(run(first) == 1);
  CHECK(run(first) == 2);
  const RemoteKernel second = device.load(code, "k");
  CHECK(run(second) == 1);
  CHECK(run(first) == 3);
  device.unload(first);
  CHECK_THROWS_WITH_AS(run(first), doctest::Contains("was released or never made"),
                       InvalidArgument);
  CHECK(run(second) == 2);
}

TEST_CASE("remote device: structs, null pointers, bytes and dynamic shared memory") {
  RemoteDevice device(device_options());
  const RemoteKernel kernel = load(device, R"(
struct Pair { double a; char b; };
extern "C" __global__ void k(double* x, Pair p, const float* none, unsigned char c) {
  extern __shared__ double room[];
  room[threadIdx.x] = p.a + p.b + c + (none == nullptr ? 0.5 : 0.0);
  __syncthreads();
  x[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x] + threadIdx.x;
})");
  struct Pair {
    double a;
    char b;
  };
  const RemoteBuffer x = device.allocate(8 * 1024);
  const Pair pair{10, 2};
  RemoteLaunch launch{.kernel = kernel,
                      .grid = {1},
                      .block = {1024},
                      .shared_bytes = 100'000,  // above what needs no opting in
                      .arguments = {RemoteArgument::at(x), RemoteArgument::of(pair),
                                    RemoteArgument::null(), RemoteArgument::of<std::uint8_t>(200)}};
  device.launch(launch);
  const auto got = download<double>(device, x);
  for (int i = 0; i < 1024; ++i) REQUIRE(got[i] == 212.5 + i);
}

TEST_CASE("remote device: cooperative launches and clusters") {
  RemoteDevice device(device_options());
  if (device.facts().capability.major < 9) return;  // no clusters before
  const RemoteKernel kernel = load(device, R"(
extern "C" __global__ void k(int* x, int n) {
  unsigned blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  x[blockIdx.x] = blocks + n;
})");
  const RemoteBuffer x = upload<int>(device, {0, 0, 0, 0});
  RemoteLaunch launch = launch_of(kernel, 1, x, 10);
  launch.grid = {4};
  launch.cluster = {2, 1, 1};
  device.launch(launch);
  CHECK((download<int>(device, x) == std::vector{12, 12, 12, 12}));
  launch.cluster = {0, 0, 0};
  launch.cooperative = true;
  device.launch(launch);
  CHECK((download<int>(device, x) == std::vector{11, 11, 11, 11}));
  launch.grid = {1 << 20};
  CHECK_THROWS_AS(device.launch(launch), LaunchConfigError);
}

TEST_CASE("remote device: guard bands tell the first damaged byte") {
  RemoteDevice device(device_options());
  const RemoteKernel kernel = load(device, R"(
extern "C" __global__ void k(char* x, int n) { x[n] = x[n] + 1; })");
  for (const int size : {1, 250, 256, 1000}) {
    CAPTURE(size);
    for (const int at : {-256, -1, 0, size - 1, size, size + 255}) {
      const RemoteBuffer x = device.allocate(static_cast<std::uint64_t>(size), 200);
      device.fill(x, std::byte{0});
      CHECK(!device.check_guards(x));
      device.launch(launch_of(kernel, 1, x, at));
      const auto damage = device.check_guards(x);
      if (at >= 0 && at < size) {
        CHECK(!damage);
      } else {
        REQUIRE(damage);
        CHECK(damage->offset == at);
        CHECK(damage->found == static_cast<std::uint8_t>(damage->expected + 1));
      }
      device.release(x);
    }
  }
  CHECK(!device.check_guards(device.allocate(10)));
  const RemoteBuffer empty = device.allocate(0, 1);
  CHECK(!device.check_guards(empty));
  CHECK_THROWS_AS(device.allocate(1, ~std::uint64_t{0}), InvalidArgument);
}

TEST_CASE("remote device: wrong calls are refused, and the device goes on") {
  RemoteDevice device(device_options());
  const RemoteBuffer x = upload<int>(device, {1, 2, 3, 4});
  const std::uint64_t generation = device.generation();
  std::vector<std::byte> bytes(17);
  CHECK_THROWS_AS(device.write(x, bytes), InvalidArgument);
  CHECK_THROWS_AS(device.read(x, bytes), InvalidArgument);
  CHECK_THROWS_AS(device.write(x, std::span(bytes).first(1), 16), InvalidArgument);
  CHECK_THROWS_AS(device.read(x, std::span(bytes).first(2), ~std::uint64_t{0}), InvalidArgument);
  CHECK_THROWS_AS(device.copy(x, device.allocate(15)), InvalidArgument);
  CHECK_THROWS_AS(device.fill({}, std::byte{1}), InvalidArgument);
  CHECK_THROWS_AS(device.allocate(~std::uint64_t{0}), InvalidArgument);
  CHECK_THROWS_AS(device.allocate(std::uint64_t{1} << 50), OutOfMemory);
  device.release({});
  const RemoteBuffer gone = device.allocate(4);
  device.release(gone);
  CHECK_THROWS_AS(device.release(gone), InvalidArgument);

  const ObjectCode code = code_for(device, kAdd);
  CHECK_THROWS_AS(device.load(code, "nothing"), NameNotFound);
  ObjectCode broken = code;
  broken.code = "no code at all";
  CHECK_THROWS_AS(device.load(broken, "k"), DriverError);
  const RemoteKernel kernel = device.load(code, "k");
  RemoteLaunch launch = launch_of(kernel, 4, x, 1);
  const auto refused = [&](const auto& change) {
    RemoteLaunch other = launch;
    change(other);
    device.launch(other);
  };
  CHECK_THROWS_AS(refused([](auto& l) { l.block = {2000}; }), LaunchConfigError);
  CHECK_THROWS_AS(refused([](auto& l) { l.grid = {0}; }), LaunchConfigError);
  CHECK_THROWS_AS(refused([](auto& l) { l.shared_bytes = 1 << 30; }), LaunchConfigError);
  CHECK_THROWS_AS(refused([](auto& l) { l.arguments.pop_back(); }), ArgumentError);
  CHECK_THROWS_AS(refused([](auto& l) { l.arguments.push_back(l.arguments[1]); }), ArgumentError);
  CHECK_THROWS_AS(refused([](auto& l) { l.arguments[1] = RemoteArgument::of(1.0); }),
                  ArgumentError);
  CHECK_THROWS_AS(refused([](auto& l) { l.arguments[1] = {}; }), ArgumentError);
  CHECK_THROWS_AS(refused([](auto& l) { l.arguments[0].offset = 17; }), InvalidArgument);
  CHECK_THROWS_AS(refused([](auto& l) { l.kernel = {}; }), InvalidArgument);
  device.launch(launch);
  CHECK((download<int>(device, x) == std::vector{2, 3, 4, 5}));
  CHECK(device.generation() == generation);
  CHECK(device.losses() == 0);
}

TEST_CASE("remote device: a name of another device is refused") {
  RemoteDevice one(device_options()), other(device_options());
  const RemoteBuffer x = upload<int>(one, {1});
  const RemoteBuffer y = upload<int>(other, {2});
  CHECK(one.generation() != other.generation());
  CHECK_THROWS_AS(other.fill(x, std::byte{0}), WorkerLost);
  CHECK_THROWS_AS(one.launch(launch_of(load(other, kAdd), 1, x, 1)), WorkerLost);
  one.launch(launch_of(load(one, kAdd), 1, x, 1));
  other.launch(launch_of(load(other, kAdd), 1, y, 1));
  CHECK(download<int>(one, x)[0] == 2);
  CHECK(download<int>(other, y)[0] == 3);
}

TEST_CASE("remote device: it moves") {
  RemoteDevice device(device_options());
  const RemoteBuffer x = upload<int>(device, {5});
  RemoteDevice moved = std::move(device);
  CHECK(download<int>(moved, x)[0] == 5);
}

TEST_CASE("remote device: in this process, side by side and one after the other, nothing is left") {
  Runtime::register_sim(&sim::driver_api);
  RemoteDeviceOptions options;
  options.worker.in_process = &device_tasks();
  constexpr std::uint64_t kLarge = std::uint64_t{256} << 20;
  std::uint64_t before = 0;
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    RemoteDevice one(options), other(options);
    Device& device = DeviceState::get().device();
    const std::uint64_t free = device.memory_info().free;
    if (round == 0) before = free;
    // On a GPU others use its memory, too.
    if (device.is_simulated()) CHECK(free + (kLarge / 4) >= before);
    const RemoteBuffer large = one.allocate(kLarge);
    const RemoteBuffer x = upload<int>(one, {round}), y = upload<int>(other, {10 * round});
    one.launch(launch_of(load(one, kAdd), 1, x, 1));
    other.launch(launch_of(load(other, kAdd), 1, y, 2));
    CHECK(download<int>(one, x)[0] == round + 1);
    CHECK(download<int>(other, y)[0] == 10 * round + 2);
    CHECK_THROWS_AS(other.fill(x, std::byte{0}), WorkerLost);
    one.kill();
    CHECK_THROWS_AS(one.fill(large, std::byte{0}), WorkerLost);
    CHECK(download<int>(other, y)[0] == 10 * round + 2);
    CHECK(upload<int>(one, {1}).bytes == 4);
  }
}
