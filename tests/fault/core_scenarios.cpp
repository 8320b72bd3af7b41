// Uses of the core room: devices, streams, events, modules, kernels and launches.
#include "base/errors.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/image/tensor_map.h"
#include "core/image/texture.h"
#include "core/launch/launch_pieces.h"
#include "core/module.h"
#include "core/partition.h"
#include "core/stream.h"
#include "fault/fault_fixture.h"
#include "sim/device.h"
#include "unit/core/saxpy.h"

#include <doctest/doctest.h>

#include <chrono>
#include <span>
#include <vector>

namespace kernwright::testing {
namespace {

void use_devices(DeviceRegistry& registry) {
  require(registry.devices().size() == 4, "four devices");
  Device& device = registry.by_index(1);
  require(&registry.by_name(device.uuid()) == &device, "found by UUID");
  require(&registry.by_name(device.pci_bus_id()) == &device, "found by bus id");
  require(&registry.preferred() == registry.devices()[0], "the first is preferred");
  require(!device.name().empty() && device.compute_capability().number() >= 75, "properties");
  require(device.driver_version() >= 12000, "version");
  const MemoryInfo info = device.memory_info();
  require(info.free <= info.total && info.total > 0, "memory");
  device.synchronize();
  device.synchronize(std::chrono::seconds(20));
}

void use_streams(Device& device) {
  const Stream first = Stream::create(device, priority_of(device, StreamPriority::high));
  const Stream second = Stream::create(device);
  require(first.priority() <= second.priority(), "priorities");
  Event event = first.record();
  second.wait(event);
  second.record(event);
  first.synchronize();
  second.synchronize(std::chrono::seconds(20));
  require(first.done() && second.done(), "both streams are done");
  Stream::legacy(device).synchronize();
}

void use_partitions(Device& device) {
  const PartitionRequest requests[] = {{.multiprocessors = 8}, {.multiprocessors = 0}};
  std::vector<Partition> made = Partition::make(device, requests);
  require(made[0].multiprocessors() == 8 && made[1].multiprocessors() > 8, "sizes");
  const Stream first = made[0].stream(), second = made[1].stream(-1);
  made.clear();
  second.wait(first.record());
  second.synchronize();
  require(first.multiprocessors() == 8 && second.done(), "streams keep their partitions");
}

void use_tensor_maps(Device& device) {
  TensorLayout tensor{.address = 0x10000, .shape = {10, 8, 32}};
  const std::uint32_t box[] = {1, 8, 32};
  TensorMap map = TensorMap::tiled(device, tensor, box);
  const TensorMap columns = TensorMap::im2col(
      device, tensor,
      {.lower_corner = {0}, .upper_corner = {0}, .channels_per_pixel = 32, .pixels_per_column = 8});
  require(!(map == columns), "two kinds of map");
  map.replace_address(0x20000);
  tensor.address = 0x20000;
  require(map == TensorMap::tiled(device, tensor, box), "a map of another address");
}

void use_textures(Device& device) {
  const std::int64_t shape[] = {4, 8};
  const Stream stream = Stream::create(device);
  CudaArray array(device, shape, ScalarType::float32, {.surface = true});
  std::vector<float> values(32, 1.5f), back(32);
  array.copy_from_host(values.data(), stream);
  const TextureObject texture(array, {.filter = CU_TR_FILTER_MODE_LINEAR});
  const SurfaceObject surface(array);
  require(texture.handle() != 0 && surface.handle() != 0, "handles");
  texture.use_on(stream);
  surface.use_on(stream);
  array.copy_to_host(back.data(), stream);
  require(back == values, "the array's values");
}

void use_events(Device& device) {
  const Stream stream = Stream::create(device);
  Event start(device);
  Event end(device);
  start.record(stream);
  end.record(stream);
  end.synchronize();
  require(end.done() && end.elapsed_ms(start) >= 0, "time passed");
  Event untimed(device, false);
  untimed.record({});
  untimed.synchronize();
}

void use_modules(Device& device) {
  const Module module = Module::load(device, kSaxpyPtx);
  require(module.function("saxpy") != nullptr, "the kernel is found");
  require(module.symbol("counters").size == 64, "the variable is found");
  require(module.function_names().size() <= 1, "one kernel");
  try {
    module.function("missing");
    require(false, "an unknown kernel is refused");
  } catch (const NameNotFound&) {}
}

void use_kernels(Device& device) {
  const Kernel kernel = load_saxpy(device);
  require(kernel.attributes().max_threads_per_block > 0, "attributes");
  require(kernel.occupancy(128) > 0 && kernel.suggest_block() > 0, "occupancy");
  require(kernel.occupancy(64, 64 << 10) > 0, "occupancy with much shared memory");
  if (device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return;
  require(kernel.max_cluster(128) >= 8, "large clusters");
  require(kernel.active_clusters({.grid = {4}, .block = {128}, .cluster = {2, 1, 1}}) > 0,
          "clusters at a time");
}

void use_reset(Device& device) {
  const Stream before = Stream::create(device);
  Device& fresh = device.reset();
  Stream::create(fresh).synchronize();
  fresh.synchronize();
  try {
    before.synchronize();
    require(false, "a stream of before the reset is refused");
  } catch (const DeviceLost&) {}
}

/// Plain device memory, without the rooms above core.
struct Floats {
  Floats(Device& its_device, std::size_t its_count) : device(its_device), count(its_count) {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemAlloc(&address, 4 * count), "cuMemAlloc");
  }
  ~Floats() {
    ReleaseGuard guard(device);
    if (guard) guard.report(device.driver().cuMemFree(address), "cuMemFree");
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  void write(const std::vector<float>& values) const {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemcpyHtoD(address, values.data(), 4 * count), "cuMemcpyHtoD");
  }
  std::vector<float> read() const {
    std::vector<float> values(count);
    const ContextGuard guard(device);
    device.check(device.driver().cuMemcpyDtoH(values.data(), address, 4 * count), "cuMemcpyDtoH");
    return values;
  }
  Device& device;
  std::size_t count;
  CUdeviceptr address = 0;
};

/// y += 2 * 3 a hundred times, with y = 1 at first.
struct Saxpy {
  explicit Saxpy(Device& device) : kernel(load_saxpy(device)), x(device, 100), y(device, 100) {
    x.write(std::vector<float>(100, 3));
    y.write(std::vector<float>(100, 1));
  }
  Saxpy(const Saxpy&) = delete;
  Saxpy& operator=(const Saxpy&) = delete;

  const Kernel kernel;
  const Floats x;
  const Floats y;
  float a = 2;
  int n = 100;
  CUdeviceptr from = x.address;
  CUdeviceptr to = y.address;
  void* arguments[4] = {&a, &from, &to, &n};
};

void use_launches(Device& device) {
  Saxpy saxpy(device);
  const Kernel& kernel = saxpy.kernel;
  const std::span<void* const> arguments = saxpy.arguments;
  const Stream stream = Stream::create(device);
  kernel.launch({.grid = {1}, .block = {128}}, arguments);
  device.synchronize();
  const bool together = device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  kernel.launch({.grid = {1}, .block = {128}, .stream = stream, .cooperative = together},
                arguments);
  kernel.launch({.grid = {1}, .block = {128}, .shared_bytes = 60 << 10, .stream = stream},
                arguments);
  stream.synchronize();
  require(saxpy.y.read() == std::vector<float>(100, 19), "three launches");
}

void use_graphs(Device& device) {
  Saxpy saxpy(device);
  const Kernel& kernel = saxpy.kernel;
  const std::span<void* const> arguments = saxpy.arguments;
  const Stream stream = Stream::create(device);
  const Stream side = Stream::create(device);
  Graph graph(device);
  Event done(device);
  const auto record = [&](int launches) {
    graph.capture(stream, [&] {
      side.wait(stream.record());
      kernel.launch({.grid = {1}, .block = {128}, .stream = side}, arguments);
      stream.wait(side.record());
      for (int i = 1; i < launches; ++i) {
        kernel.launch({.grid = {1}, .block = {128}, .stream = stream}, arguments);
      }
      done.record(stream, true);
    });
  };
  record(2);
  require(graph.nodes().size() == 2, "two kernels");
  graph.launch(stream);
  stream.synchronize();
  require(saxpy.y.read() == std::vector<float>(100, 13), "a launch of two kernels");
  saxpy.a = 1;
  graph.update(graph.nodes()[0], arguments);
  graph.launch(stream);
  record(2);
  record(3);
  graph.launch(stream);
  stream.synchronize();
  require(saxpy.y.read() == std::vector<float>(100, 31), "kernels with new arguments, and a third");
  done.synchronize();
  const auto pieces = graph.cut(2, side);
  while (pieces->left() != 0) pieces->queue();
  side.synchronize();
  const float piecewise = saxpy.y.read().front();
  graph.launch(stream);
  stream.synchronize();
  const float whole = saxpy.y.read().front();
  require(piecewise > 31 && whole - piecewise == piecewise - 31,
          "a launch in pieces, and a whole one");
  graph.reset();
}

/// Whether the simulated device captures streams.
bool has_graphs() {
  const DriverApi& api = sim::driver_api();
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  return api.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
         api.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
}

}  // namespace

std::vector<Scenario> core_scenarios() {
  std::vector<Scenario> list = {
      {"devices", Seen::as_gpu, use_devices},
      {"simulated devices", Seen::as_simulated, use_devices},
      on_device("streams", Seen::as_gpu, use_streams),
      on_device("events", Seen::as_gpu, use_events),
      on_device("tensor maps", Seen::as_gpu, use_tensor_maps),
      // Where waiting for events fails, destructors wait for the device.
      on_device("textures", Seen::as_gpu, use_textures,
                {"cuEventCreate", "cuEventRecord", "cuEventSynchronize"}),
      // Where an event behind a stream's work fails, its end waits for the stream.
      on_device("partitions", Seen::as_gpu, use_partitions,
                {"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventQuery"}),
      on_device("modules", Seen::as_gpu, use_modules),
      on_device("modules of simulated devices", Seen::as_simulated, use_modules),
      on_device("kernels", Seen::as_gpu, use_kernels),
      on_device("launches", Seen::as_gpu, use_launches),
      on_device("a reset", Seen::as_gpu, use_reset, {"cuDevicePrimaryCtxRelease"}),
      on_device("launches on simulated devices", Seen::as_simulated, use_launches),
  };
  if (has_graphs())
    list.push_back(on_device("graphs", Seen::as_gpu, use_graphs, {"cuGraphUpload"}));
  return list;
}

}  // namespace kernwright::testing
