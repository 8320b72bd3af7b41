// Partitions: sizes, refusals and lives on the fake driver; what runs where on the device under
// test.
#include "core/partition.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/kernel.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

/// A device of 15 groups of 8 multiprocessors and 12 more, as an H100 divides its 132.
Device& divided_device() {
  Device& device = fresh_device();
  FakeDriver::get().partition_groups = 15;
  FakeDriver::get().partition_remainder = 12;
  return device;
}

std::vector<Partition> partitions(Device& device, const std::vector<int>& sizes) {
  std::vector<PartitionRequest> requests;
  for (const int size : sizes) requests.push_back({.multiprocessors = size});
  return Partition::make(device, requests);
}

std::vector<int> sizes_of(const std::vector<Partition>& list) {
  std::vector<int> sizes;
  for (const Partition& partition : list) sizes.push_back(partition.multiprocessors());
  return sizes;
}

/// Each block writes the number of its multiprocessor.
constexpr const char* kWhere = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry where(
	.param .u64 where_param_0
)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [where_param_0];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %smid;
	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	st.global.u32 [%rd4], %r2;
	ret;
}
)";

constexpr int kBlocks = 1024;

/// Where the blocks of launches ran, in memory of the device.
class Places {
 public:
  explicit Places(Device& device)
      : device_(device), kernel_(Module::load(device, kWhere), signature()) {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemAlloc(&address_, 4 * kBlocks), "cuMemAlloc");
    clear();
  }
  ~Places() {
    ReleaseGuard guard(device_);
    if (guard) guard.report(device_.driver().cuMemFree(address_), "cuMemFree");
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  void clear() {
    const ContextGuard guard(device_);
    device_.check(device_.driver().cuMemsetD32(address_, 0xffff'ffff, kBlocks), "cuMemsetD32");
    device_.synchronize();
  }
  void launch(const Stream& stream, bool cooperative = false, unsigned blocks = kBlocks) {
    void* arguments[] = {&address_};
    kernel_.launch({.grid = {blocks}, .block = {32}, .stream = stream, .cooperative = cooperative},
                   arguments);
  }
  std::set<int> read() {
    std::vector<int> values(kBlocks);
    const ContextGuard guard(device_);
    device_.check(device_.driver().cuMemcpyDtoH(values.data(), address_, 4 * kBlocks),
                  "cuMemcpyDtoH");
    return {values.begin(), values.end()};
  }
  std::set<int> of(const Stream& stream) {
    clear();
    launch(stream);
    stream.synchronize();
    return read();
  }

 private:
  static KernelSignature signature() {
    KernelSignature made{.name = "where", .lowered = "where", .parameters = {}};
    made.parameters = {{.name = "to", .type = "int*", .kind = ParameterKind::pointer}};
    return made;
  }
  Device& device_;
  Kernel kernel_;
  CUdeviceptr address_ = 0;
};

bool are_disjoint(const std::set<int>& a, const std::set<int>& b) {
  return std::none_of(a.begin(), a.end(), [&](int value) { return b.contains(value); });
}

bool is_within(const std::set<int>& part, const std::set<int>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

CUcontext current_context(const Device& device) {
  CUcontext context = nullptr;
  device.driver().cuCtxGetCurrent(&context);
  return context;
}

/// The smallest partition, and all that is left.
std::vector<Partition> two_partitions(Device& device) {
  return partitions(device, {partition_rules(device).minimum, 0});
}

}  // namespace

TEST_CASE("partition: sizes are rounded up to whole groups and told") {
  Device& device = divided_device();
  const PartitionRules rules = partition_rules(device);
  CHECK(rules.supported);
  CHECK(rules.multiprocessors == 132);
  CHECK(rules.minimum == 8);
  CHECK(rules.alignment == 8);
  CHECK(rules.free == 132);
  const std::vector<Partition> made = partitions(device, {1, 8, 9, 64});
  CHECK(sizes_of(made) == std::vector<int>{8, 8, 16, 64});
  CHECK(made[2].request().multiprocessors == 9);
  CHECK(partition_rules(device).free == 132 - 96);
  CHECK(contains(made[3].identify(), "(64 multiprocessors) of cuda:0"));
  CHECK(made[0].id() != made[1].id());
  CHECK(testing::fake_current_context() == nullptr);
}

TEST_CASE("partition: the remainder goes to one that needs it, or to all that are left") {
  Device& device = divided_device();
  CHECK(sizes_of(partitions(device, {8, 124})) == std::vector<int>{8, 124});
  CHECK(sizes_of(partitions(device, {8, 0})) == std::vector<int>{8, 124});
  CHECK(sizes_of(partitions(device, {124, 0})) == std::vector<int>{124, 8});
  CHECK(sizes_of(partitions(device, {12, 120})) == std::vector<int>{12, 120});
  CHECK(sizes_of(partitions(device, {0})) == std::vector<int>{132});
  CHECK(sizes_of(partitions(device, {120, 0})) == std::vector<int>{120, 12});
  CHECK(sizes_of(partitions(device, {40, 40, 40})) == std::vector<int>{40, 40, 40});
}

TEST_CASE("partition: more than there are raises before anything is made, with the rules") {
  Device& device = divided_device();
  for (const std::vector<int>& sizes :
       {std::vector{133}, {124, 16}, {8, 125}, {65, 65}, {132, 0}, {120, 12, 1}}) {
    const std::string text = message_of<PartitionError>([&] { partitions(device, sizes); });
    CHECK(contains(text, "a partition has at least 8 and multiples of 8"));
    CHECK(contains(text, "cuda:0"));
  }
  CHECK(FakeDriver::get().calls("cuGreenCtxCreate") == 0);
  CHECK(partition_rules(device).free == 132);
  try {
    partitions(device, {65, 65});
  } catch (const PartitionError& error) {
    CHECK(error.needed == 144);
    CHECK(error.free == 132);
    CHECK(error.minimum == 8);
    CHECK(error.alignment == 8);
  }
}

TEST_CASE("partition: one that goes gives its multiprocessors back to later ones") {
  Device& device = divided_device();
  std::vector<Partition> first = partitions(device, {64, 64});
  CHECK_THROWS_AS(partitions(device, {8}), PartitionError);
  first.pop_back();
  const std::vector<Partition> second = partitions(device, {32, 32});
  CHECK(sizes_of(second) == std::vector<int>{32, 32});
  CHECK(FakeDriver::get().calls("cuDevSmResourceSplitByCount") == 2);  // one split: count and make
  first.clear();
  CHECK(partition_rules(device).free == 68);
}

TEST_CASE("partition: wrong requests are refused before the driver is asked") {
  Device& device = divided_device();
  const auto refuse = [&](std::vector<PartitionRequest> requests) {
    CHECK_THROWS_AS(Partition::make(device, requests), InvalidArgument);
  };
  refuse({});
  refuse({{.multiprocessors = -8}});
  refuse({{.multiprocessors = 0}, {.multiprocessors = 0}});
  for (const double share : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    refuse({{.multiprocessors = 8, .share = share}});
  }
  refuse({{.multiprocessors = 8, .streams = -1}});
  CHECK(FakeDriver::get().calls("cuDeviceGetDevResource") == 0);
  const Partition empty;
  CHECK_FALSE(static_cast<bool>(empty));
  CHECK(empty.id() == 0);
  CHECK_THROWS_AS(empty.device(), InvalidArgument);
  CHECK_THROWS_AS(empty.stream(), InvalidArgument);
}

TEST_CASE("partition: a driver without green contexts says so, and what works without") {
  Device& device = fresh_device();
  const PartitionRules rules = partition_rules(device);
  CHECK_FALSE(rules.supported);
  CHECK(rules.multiprocessors == 4);
  const std::string text = message_of<DriverError>([&] { partitions(device, {8}); });
  CHECK(contains(text, "of CUDA 12.8, has no green contexts"));
  CHECK(contains(text, "CUDA 12.5"));
}

TEST_CASE("partition: a step that fails leaves nothing behind") {
  for (const char* call : {"cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
                           "cuGreenCtxCreate", "cuCtxFromGreenCtx", "cuGreenCtxGetDevResource"}) {
    Device& device = divided_device();
    const int skip = std::string(call) == "cuDevSmResourceSplitByCount" ? 1 : 0;
    FakeDriver::get().fail(call, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 1, skip);
    CHECK_THROWS_AS(partitions(device, {8, 16}), DriverError);
    CHECK(FakeDriver::get().live("green context") == 0);
    CHECK(sizes_of(partitions(device, {8, 0})) == std::vector<int>{8, 124});
  }
}

TEST_CASE("partition: streams keep it, are counted and limited, and go before it") {
  Device& device = divided_device();
  Stream stream;
  {
    const PartitionRequest request{.multiprocessors = 16, .memory = 1 << 20, .streams = 2};
    const Partition partition = Partition::make(device, {&request, 1}).front();
    CHECK(partition.request().memory == 1 << 20);
    stream = partition.stream(-3);
    CHECK(FakeDriver::get().notes.back().first == -3);
    CHECK_THROWS_AS(partition.stream(-6), InvalidArgument);
    const Stream second = partition.stream();
    CHECK(partition.live_streams() == 2);
    const std::string text = message_of<PartitionError>([&] { partition.stream(); });
    CHECK(contains(text, "at most 2 were asked for"));
  }
  CHECK(FakeDriver::get().live("green context") == 1);
  CHECK(stream.partition().multiprocessors() == 16);
  CHECK(stream.partition().live_streams() == 1);
  CHECK(stream.multiprocessors() == 16);
  CHECK(Stream::borrow(device, stream.handle()).multiprocessors() == 16);
  CHECK(Stream::create(device).multiprocessors() == 4);
  CHECK_FALSE(static_cast<bool>(Stream::legacy(device).partition()));
  stream = {};
  CHECK(FakeDriver::get().live("stream") == 0);
  CHECK(FakeDriver::get().live("green context") == 0);
  CHECK(FakeDriver::get().live("event") == 0);
}

TEST_CASE("partition: one that the driver will not destroy stays taken, and is logged") {
  Device& device = divided_device();
  testing::LogLines log;
  FakeDriver::get().fail("cuGreenCtxDestroy", CUDA_ERROR_UNKNOWN);
  partitions(device, {16});
  CHECK(std::any_of(log.lines.begin(), log.lines.end(),
                    [](const std::string& line) { return contains(line, "cuGreenCtxDestroy"); }));
  CHECK(partition_rules(device).free == 116);
}

TEST_CASE("partition on a device: kernels run on its multiprocessors, disjoint from another's") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!partition_rules(device).supported) return;
  const CUcontext before = current_context(device);
  Places places(device);
  const std::vector<Partition> made = two_partitions(device);
  const Stream small = made[0].stream(), large = made[1].stream();
  const std::set<int> first = places.of(small), second = places.of(large);
  CHECK(are_disjoint(first, second));
  CHECK(static_cast<int>(first.size()) == made[0].multiprocessors());
  CHECK(static_cast<int>(second.size()) <= made[1].multiprocessors());
  CHECK(places.of(made[0].stream()) == first);
  CHECK(is_within(second, places.of(Stream::create(device))));
  CHECK(current_context(device) == before);
}

TEST_CASE(
    "partition on a device: a graph runs where it was captured, after the partition is gone") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!partition_rules(device).supported) return;
  Places places(device);
  const Stream whole = Stream::create(device);
  std::vector<Partition> made = two_partitions(device);
  const std::set<int> inside = places.of(made[0].stream()), other = places.of(made[1].stream());
  Graph graph(device);
  const auto replay = [&](const Stream& stream) {
    places.clear();
    graph.launch(stream);
    stream.synchronize();
    return places.read();
  };
  {
    const Stream captured = made[0].stream();
    graph.capture(captured, [&] { places.launch(captured); });
    CHECK(is_within(replay(captured), inside));
  }
  CHECK(is_within(replay(whole), inside));
  CHECK(is_within(replay(made[1].stream()), inside));
  // A graph of the same nodes needs a new executable in another partition.
  const Stream moved = made[1].stream();
  graph.capture(moved, [&] { places.launch(moved); });
  CHECK(is_within(replay(whole), other));
  graph.capture(whole, [&] { places.launch(whole); });
  CHECK_FALSE(is_within(replay(whole), inside));
  graph.capture(moved, [&] { places.launch(moved); });
  made.clear();
  CHECK(is_within(replay(whole), other));
}

TEST_CASE("partition on a device: a forked graph keeps each branch in its partition") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!partition_rules(device).supported) return;
  Places first(device), second(device);
  const std::vector<Partition> made = two_partitions(device);
  const Stream a = made[0].stream(), b = made[1].stream();
  const std::set<int> inside = first.of(a), other = first.of(b);
  Graph graph(device);
  for (int round = 0; round < 2; ++round) {
    graph.capture(a, [&] {
      first.launch(a);
      b.wait(a.record());
      second.launch(b);
      a.wait(b.record());
    });
  }
  first.clear();
  second.clear();
  graph.launch(a);
  a.synchronize();
  CHECK(is_within(first.read(), inside));
  CHECK(is_within(second.read(), other));
}

TEST_CASE("partition on a device: a cooperative grid must fit its multiprocessors") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!partition_rules(device).supported) return;
  Places places(device);
  const std::vector<Partition> made = two_partitions(device);
  const Stream stream = made[0].stream();
  const auto fitting = static_cast<unsigned>(made[0].multiprocessors());
  places.launch(stream, true, fitting);
  stream.synchronize();
  const std::string text =
      message_of<LaunchConfigError>([&] { places.launch(stream, true, kBlocks); });
  CHECK(contains(text, std::to_string(fitting) + " multiprocessors"));
}

TEST_CASE("partition on a device: work of a dropped stream ends before its partition does") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!partition_rules(device).supported) return;
  Places places(device);
  {
    const Partition partition = partitions(device, {1}).front();
    const Stream stream = partition.stream();
    places.launch(stream);
  }
  CHECK_FALSE(places.read().contains(-1));
  CHECK(partition_rules(device).free == partition_rules(device).multiprocessors);
}
