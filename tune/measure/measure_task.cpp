// A measurement's request, and its execution in the worker.
#include "tune/measure/measure_task.h"

#include "base/errors.h"
#include "base/format.h"
#include "jit/object_code.h"
#include "memory/transfer.h"
#include "tune/measure/stream_gate.h"
#include "tune/measure/timer.h"
#include "worker/device/device_state.h"

#include <algorithm>
#include <map>
#include <memory>

namespace kernwright {
namespace {

constexpr std::uint64_t kMostCopies = 64;

using Restores = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // ids: to, from

/// The worker's timer, with its warm clocks. Kept to the end of the process.
Timer& worker_timer(std::span<const std::byte> gate_code) {
  static Timer& timer = *[&] {
    Device& device = DeviceState::get().device();
    if (device.is_simulated()) return new Timer(device);
    return new Timer(device,
                     ObjectCode::deserialize(
                         {reinterpret_cast<const char*>(gate_code.data()), gate_code.size()}));
  }();
  return timer;
}

/// A launch with as many copies of its buffers as the policy asks for.
class RotatingLaunch {
 public:
  RotatingLaunch(DeviceState& state, const RemoteLaunch& launch, bool rotates)
      : state_(state), launch_(launch) {
    resolved_.push_back(state.resolve(launch));
    if (!rotates) return;
    std::map<std::uint64_t, std::uint64_t> sizes;
    std::uint64_t all = 0;
    for (const RemoteArgument& argument : launch.arguments) {
      if (argument.buffer.id == 0) continue;
      const std::uint64_t bytes = state.buffer(argument.buffer.id).bytes;
      if (sizes.emplace(argument.buffer.id, bytes).second) all += bytes;
    }
    if (all == 0) {
      throw InvalidArgument(
          "the policy \"rotate\" copies the buffers of a launch, and this one has none: use "
          "\"warm\"");
    }
    const auto l2 =
        static_cast<std::uint64_t>(state.device().attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    const std::uint64_t count = std::clamp(2 * l2 / all + 1, std::uint64_t{2}, kMostCopies);
    while (resolved_.size() < count) add_copy(sizes);
  }

  std::size_t copies() const { return resolved_.size(); }

  void queue(const Stream& stream, std::size_t copy) {
    resolved_[copy]->config.stream = stream;
    resolved_[copy]->start();
  }

  /// All copies of `to`.
  void restore(const Stream& stream, std::uint64_t to, std::uint64_t from) {
    const GuardedBuffer& source = state_.buffer(from);
    const GuardedBuffer& target = state_.buffer(to);
    if (source.bytes != target.bytes) {
      throw InvalidArgument(format("restoring {} bytes from {}: the sizes must be equal",
                                   target.bytes, source.bytes));
    }
    copy_on_device(state_.device(), target.address(), source.address(), source.bytes, stream);
    for (const auto& copy : memory_) {
      const auto at = copy.find(to);
      if (at == copy.end()) continue;
      copy_on_device(state_.device(), at->second.address(), source.address(), source.bytes, stream);
    }
  }

 private:
  void add_copy(const std::map<std::uint64_t, std::uint64_t>& sizes) {
    auto& copy = memory_.emplace_back();
    for (const auto& [id, bytes] : sizes) {
      Buffer memory(state_.buffer(id).memory.resource(), bytes, state_.stream());
      copy_on_device(state_.device(), memory.address(), state_.buffer(id).address(), bytes);
      copy.emplace(id, std::move(memory));
    }
    RemoteLaunch moved = launch_;
    for (RemoteArgument& argument : moved.arguments) {
      if (argument.buffer.id == 0) continue;
      const CUdeviceptr address = copy.at(argument.buffer.id).address() + argument.offset;
      argument = RemoteArgument::of(address);
    }
    resolved_.push_back(state_.resolve(moved));
  }

  DeviceState& state_;
  const RemoteLaunch& launch_;
  std::vector<std::unique_ptr<ResolvedLaunch>> resolved_;
  std::vector<std::map<std::uint64_t, Buffer>> memory_;  ///< of the copies, by the original's id
};

std::vector<std::byte> run_measure_task(ByteReader& in, std::vector<FileHandle>&) {
  const MeasurePlan plan = read_measure_plan(in);
  const RemoteLaunch launch = read_remote_launch(in);
  Restores restores(in.u32());
  for (auto& [to, from] : restores) {
    to = in.u64();
    from = in.u64();
  }
  Timer& timer = worker_timer(in.blob());
  in.expect_end();

  DeviceState& state = DeviceState::get();
  RotatingLaunch rotating(state, launch, plan.policy == CachePolicy::rotate);
  TimedWork work{
      .name = state.kernel(launch.kernel.id).signature().name,
      .queue = [&](const Stream& stream, std::size_t copy) { rotating.queue(stream, copy); },
      .copies = rotating.copies()};
  if (!restores.empty()) {
    work.restore = [&](const Stream& stream) {
      for (const auto& [to, from] : restores) rotating.restore(stream, to, from);
    };
  }
  ByteWriter out;
  write(out, timer.measure(work, plan));
  return out.take();
}

}  // namespace

const TaskTable& measure_tasks() {
  static const TaskTable& table = *new TaskTable{{"measure", run_measure_task}};
  return table;
}

Measurement measure(RemoteDevice& device, const RemoteLaunch& launch, const MeasurePlan& plan,
                    const WaitLimits& limits, std::span<const RemoteRestore> restore) {
  plan.check();
  device.require(launch);
  const DeviceFacts& facts = device.facts(limits);
  ByteWriter request;
  write(request, plan);
  write(request, launch);
  request.u32(static_cast<std::uint32_t>(restore.size()));
  for (const RemoteRestore& one : restore) {
    device.require(one.to);
    device.require(one.from);
    request.u64(one.to.id);
    request.u64(one.from.id);
  }
  std::string gate_code;
  if (!facts.is_simulated) {
    DeviceTarget target;
    target.compute_capability = facts.capability.number();
    gate_code = stream_gate_code(target)->serialize();
  }
  request.blob(std::as_bytes(std::span(gate_code.data(), gate_code.size())));
  const WorkerTask task{"measure", "measuring in a worker", request.data()};
  const Message reply = device.run(task, limits);
  ByteReader in(reply.bytes, "a measurement from a worker");
  Measurement measurement = read_measurement(in);
  in.expect_end();
  return measurement;
}

}  // namespace kernwright
