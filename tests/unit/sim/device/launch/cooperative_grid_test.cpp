// Cooperative launches: grid-wide barriers as compiled by cooperative groups, on any number of
// threads, and grids too large for the device.
#include "sim/code/program.h"
#include "sim/device/launch/grid.h"
#include "sim/device/launch/thread_pool.h"
#include "sim/device/profile.h"
#include "sim/ptx/parse/parser.h"
#include "unit/sim/device/stream_fixture.h"

#include <cstring>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// x[i] = i, grid.sync(), y[i] = x[n - 1 - i], as NVRTC writes grid_group::sync(): an arrival at
/// the counter behind %envreg1 and %envreg2, and a loop until its top bit turns. `lonely` blocks
/// (from the end) leave before the barrier.
constexpr char kGridSync[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 lonely)
{
  .reg .pred %p<8>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<21>;
  ld.param.u64 %rd3, [x];
  ld.param.u64 %rd4, [y];
  ld.param.u32 %r2, [n];
  ld.param.u32 %r30, [lonely];
  mov.u32 %r3, %envreg2;
  cvt.u64.u32 %rd6, %r3;
  mov.u32 %r4, %envreg1;
  cvt.u64.u32 %rd7, %r4;
  bfi.b64 %rd1, %rd7, %rd6, 32, 32;
  mov.u32 %r9, %ctaid.x;
  mov.u32 %r7, %nctaid.x;
  mov.u32 %r11, %ntid.x;
  mov.u32 %r18, %tid.x;
  mad.lo.u32 %r19, %r9, %r11, %r18;
  mul.wide.u32 %rd20, %r19, 4;
  add.s64 %rd8, %rd3, %rd20;
  st.global.u32 [%rd8], %r19;
  setp.ne.s64 %p1, %rd1, 0;
  @%p1 bra VALID;
  trap;
VALID:
  sub.u32 %r31, %r7, %r30;
  setp.ge.u32 %p5, %r9, %r31;
  @%p5 bra LEAVE;
  barrier.sync 0;
  setp.ne.u32 %p2, %r18, 0;
  @%p2 bra ARRIVED;
  add.s64 %rd9, %rd1, 4;
  setp.eq.u32 %p3, %r9, 0;
  sub.u32 %r20, 0x80000001, %r7;
  selp.b32 %r26, %r20, 1, %p3;
  atom.add.release.gpu.u32 %r25, [%rd9], %r26;
SPIN:
  ld.acquire.gpu.u32 %r27, [%rd9];
  xor.b32 %r28, %r27, %r25;
  setp.gt.s32 %p4, %r28, -1;
  @%p4 bra SPIN;
ARRIVED:
  barrier.sync 0;
  not.b32 %r32, %r19;
  add.s32 %r33, %r32, %r2;
  mul.wide.s32 %rd10, %r33, 4;
  add.s64 %rd11, %rd3, %rd10;
  ld.volatile.global.u32 %r34, [%rd11];
  add.s64 %rd12, %rd4, %rd20;
  st.global.u32 [%rd12], %r34;
LEAVE:
  ret;
}
)";

struct Turn {
  explicit Turn(std::uint32_t its_blocks, std::uint32_t its_threads = 64)
      : blocks(its_blocks),
        count(its_blocks * its_threads),
        memory(64 << 20),
        threads(its_threads) {
    program = decode(ptx::parse(kGridSync), {});
    x = memory.allocate(4 * count, AllocationKind::device).value();
    y = memory.allocate(4 * count, AllocationKind::device).value();
  }
  GridResult run(int width, std::uint32_t lonely = 0, bool cooperative = true) {
    std::byte parameters[24] = {};
    const auto n = static_cast<std::uint32_t>(count);
    std::memcpy(parameters, &x, 8);
    std::memcpy(parameters + 8, &y, 8);
    std::memcpy(parameters + 16, &n, 4);
    std::memcpy(parameters + 20, &lonely, 4);
    LaunchContext launch;
    launch.program = program.get();
    launch.function = static_cast<std::uint32_t>(program->find("turn") - program->functions.data());
    launch.grid = {blocks, 1, 1};
    launch.block = {threads, 1, 1};
    launch.parameters = parameters;
    launch.parameter_bytes = 24;
    launch.memory = &memory;
    launch.instruction_budget = 3000000;
    return cooperative ? run_cooperative_grid(launch, width) : run_grid(launch, width);
  }
  bool turned() const {
    const auto* values = reinterpret_cast<const std::uint32_t*>(host_pointer(y));
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] != count - 1 - i) return false;
    }
    return true;
  }

  std::uint32_t blocks;
  std::size_t count;
  Memory memory;
  std::uint32_t threads;
  std::unique_ptr<Program> program;
  std::uint64_t x = 0, y = 0;
};

}  // namespace

TEST_CASE("cooperative grid: every block passes the barrier, on any number of threads") {
  for (const int width : {1, 2, 3, 8}) {
    for (const std::uint32_t blocks : {1u, 2u, 7u, 108u, 500u}) {
      INFO(blocks, " blocks on ", width, " threads");
      Turn turn(blocks);
      const std::uint64_t used = turn.memory.used();
      const GridResult result = turn.run(width);
      REQUIRE_FALSE(result.fault);
      CHECK(turn.turned());
      CHECK(turn.memory.used() == used);  // the workspace is gone
    }
  }
}

TEST_CASE("cooperative grid: a plain launch has no workspace, and a barrier short of blocks ends") {
  Turn turn(4);
  GridResult result = turn.run(2, 0, false);
  REQUIRE(result.fault);
  CHECK(result.fault->kind == FaultKind::trap);
  result = turn.run(2, 1);
  REQUIRE(result.fault);
  CHECK(result.fault->kind == FaultKind::timeout);
  CHECK_FALSE(turn.run(2).fault);
}

TEST_CASE("sim launch: a cooperative grid must be resident as a whole") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  int per_processor = 0, processors = 0, supported = 0;
  REQUIRE(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, device.count_kernel, 256,
                                                          0) == CUDA_SUCCESS);
  REQUIRE(api.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) ==
          CUDA_SUCCESS);
  REQUIRE(api.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0) ==
          CUDA_SUCCESS);
  CHECK(supported == 1);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUdeviceptr address = x;
  void* parameters[] = {&address};
  const auto most = static_cast<unsigned>(per_processor * processors);
  CUlaunchConfig config{most, 1, 1, 256, 1, 1, 0, nullptr, &attribute, 1};
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(device.word(x) == most * 256);
  config.gridDimX = most + 1;
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attribute.value.cooperative = 0;
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim launch: a cooperative grid of clusters must be resident cluster by cluster") {
  if (!device_profile().is_90) return;
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {5, 1, 1};
  CUdeviceptr address = x;
  void* parameters[] = {&address};
  int per_processor = 0;
  REQUIRE(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, device.count_kernel, 256,
                                                          0) == CUDA_SUCCESS);
  const auto blocks = static_cast<unsigned>(per_processor) * 132;
  CUlaunchConfig config{blocks / 5 * 5, 1, 1, 256, 1, 1, 0, nullptr, attributes, 2};
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(device.word(x) == blocks / 5 * 5 * 256);
  config.gridDimX += 5;
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attributes[1].value.clusterDim = {16, 1, 1};
  config.gridDimX = 16;
  CHECK(api.cuLaunchKernelEx(&config, device.count_kernel, parameters, nullptr) ==
        CUDA_ERROR_INVALID_CLUSTER_SIZE);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim launch: attributes of a launch, and the events among them") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUevent event = device.event(), timed = device.event(CU_EVENT_DEFAULT);
  const CUstream stream = device.stream(), other = device.stream();
  CUdeviceptr address = x;
  std::uint32_t value = 5;
  void* parameters[] = {&address, &value};
  CUlaunchAttribute attributes[3]{};
  CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, attributes, 3};
  const auto launch = [&] {
    return api.cuLaunchKernelEx(&config, device.push_kernel, parameters, nullptr);
  };
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[0].value.priority = -1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[1].value.programmaticStreamSerializationAllowed = 1;
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attributes[2].value.launchCompletionEvent = {event, 0};
  const Seeded seeded(8);
  CHECK(launch() == CUDA_SUCCESS);
  CHECK(api.cuStreamWaitEvent(other, event, 0) == CUDA_SUCCESS);
  CHECK(device.push(other, x, 6) == CUDA_SUCCESS);
  CHECK(api.cuStreamSynchronize(other) == CUDA_SUCCESS);
  CHECK(device.word(x) == pushed({5, 6}));
  attributes[2].value.launchCompletionEvent = {timed, 0};
  CHECK(launch() == CUDA_ERROR_INVALID_VALUE);
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  attributes[2].value.programmaticEvent = {event, 0, 0};
  CHECK(launch() == CUDA_SUCCESS);
  CHECK(api.cuEventSynchronize(event) == CUDA_SUCCESS);
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[2].value.clusterDim = {1, 1, 1};
  CHECK(launch() == CUDA_SUCCESS);
  attributes[2].value.clusterDim = {2, 1, 1};
  // A grid of one block is no whole number of clusters of two, where there are clusters.
  CHECK(launch() ==
        (device_profile().is_90 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CLUSTER_SIZE));
  attributes[2].id = static_cast<CUlaunchAttributeID>(99);
  CHECK(launch() == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  for (const CUevent one : {event, timed}) CHECK(api.cuEventDestroy(one) == CUDA_SUCCESS);
  for (const CUstream one : {stream, other}) CHECK(api.cuStreamDestroy(one) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}
