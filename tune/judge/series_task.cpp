// Both sides of a series of timed launches.
#include "tune/judge/series_task.h"

#include <memory>

#include "base/errors.h"
#include "memory/buffer.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"
#include "tune/measure/measure_loop.h"
#include "tune/measure/sampler.h"
#include "worker/device/device_state.h"

namespace kernwright {
namespace {

constexpr const char* kTaskName = "judge.series";

/// Larger arrays wait in pageable memory: a machine has more of it.
constexpr std::size_t kMostLocked = std::size_t{64} << 20;

/// An array away from the device while other launches run. Page-locked memory is copied some ten
/// times as fast as new pages, and a judgement copies each array seven times in each series.
class Away {
 public:
  Away(const GuardedBuffer& buffer, DeviceState& state)
      : address_(buffer.address()), bytes_(buffer.bytes) {
    if (bytes_ <= kMostLocked) {
      locked_ = PinnedBuffer(state.device(), bytes_);
    } else {
      pageable_.resize(bytes_);
    }
    copy_to_host(state.device(), data(), address_, bytes_);
    fill(state.device(), address_, 0, 1, bytes_);
  }

  void put_back(DeviceState& state) const {
    copy_to_device(state.device(), address_, data(), bytes_);
  }

 private:
  void* data() const noexcept {
    return pageable_.empty() ? locked_.data() : const_cast<std::byte*>(pageable_.data());
  }

  CUdeviceptr address_;
  std::size_t bytes_;
  PinnedBuffer locked_;
  std::vector<std::byte> pageable_;
};

/// A launch as the worker prepares it.
struct Prepared {
  std::unique_ptr<ResolvedLaunch> launch;
  std::vector<Away> away;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> poisoned;  ///< buffer, seed
  std::vector<std::uint64_t> arrays;                              ///< all buffers
};

Prepared prepare(ByteReader& in, DeviceState& state) {
  Prepared prepared;
  prepared.launch = state.resolve(read_remote_launch(in));
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    prepared.arrays.push_back(in.u64());
    prepared.away.emplace_back(state.buffer(prepared.arrays.back()), state);
  }
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    prepared.arrays.push_back(in.u64());
    prepared.poisoned.emplace_back(prepared.arrays.back(), in.u64());
  }
  return prepared;
}

void put_in_place(const Prepared& prepared, DeviceState& state) {
  for (const Away& each : prepared.away) each.put_back(state);
  for (const auto& [id, seed] : prepared.poisoned) {
    const GuardedBuffer& buffer = state.buffer(id);
    state.write_random(buffer.address(), buffer.bytes, seed);
  }
}

/// Moves a launch's results away: a later launch can neither find nor finish them.
void take_results(Prepared& prepared, DeviceState& state) {
  prepared.away.clear();
  for (const std::uint64_t id : prepared.arrays) {
    prepared.away.emplace_back(state.buffer(id), state);
  }
  prepared.poisoned.clear();
}

/// The sampler of this process, kept to its end.
struct Sampling {
  Sampling(Device& device, std::span<const std::byte> gate_code)
      : sampler(device, ObjectCode::deserialize(
                            {reinterpret_cast<const char*>(gate_code.data()), gate_code.size()})),
        loop(sampler) {}

  Sampler sampler;
  MeasureLoop loop;
};

/// After work to raise the clocks of an idle GPU.
Sampling& warm_sampling(Device& device, std::span<const std::byte> gate_code) {
  static Sampling& sampling = *new Sampling(device, gate_code);
  if (!sampling.loop.was_idle()) return sampling;
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const Buffer scratch(std::make_shared<DeviceResource>(device), kBytes, sampling.sampler.stream());
  const TimedWork fills{"warming up", [&](const Stream& stream, std::size_t) {
                          fill(device, scratch.address(), 0, 4, kBytes / 4, stream);
                        }};
  MeasurePlan plan;
  plan.max_warm_up = plan.warm_up;
  sampling.loop.warm_up_for(fills, plan, {});
  return sampling;
}

std::vector<std::byte> run_series(ByteReader& in, std::vector<FileHandle>&) {
  DeviceState& state = DeviceState::get();
  const auto gate_code = in.blob();
  std::vector<Prepared> series(in.u32());
  for (Prepared& each : series) each = prepare(in, state);
  std::size_t next = 0;
  const auto restore = [&](const Stream& stream) {
    stream.synchronize();
    put_in_place(series[next], state);
  };
  const auto queue = [&](const Stream& stream, std::size_t) {
    ResolvedLaunch& launch = *series[next].launch;
    launch.config.stream = stream;
    launch.start();
  };
  const TimedWork work{"a judged launch", queue, 1, restore};
  Sampling& sampling = warm_sampling(state.device(), gate_code);
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(series.size() - 1));
  for (; next < series.size(); ++next) {
    // The first launch may load code, and loading waits for the device: not behind a gate.
    const Sample sample = sampling.sampler.take(work, CachePolicy::cold, next > 0, {});
    if (next > 0) out.f64(sample.ms);
    take_results(series[next], state);
  }
  sampling.loop.mark_busy();
  for (const Prepared& each : series) put_in_place(each, state);
  return out.take();
}

}  // namespace

std::vector<double> time_series(RemoteDevice& device, std::span<const SeriesLaunch> series,
                                const WaitLimits& limits) {
  if (series.size() < 2) throw InvalidArgument("a series has two launches or more");
  const DeviceFacts& facts = device.facts(limits);
  DeviceTarget target;
  target.compute_capability = facts.capability.number();
  target.is_simulated = facts.is_simulated;
  const std::string gate_code = stream_gate_code(target)->serialize();
  ByteWriter out;
  out.blob(std::as_bytes(std::span(gate_code.data(), gate_code.size())));
  out.u32(static_cast<std::uint32_t>(series.size()));
  for (const SeriesLaunch& each : series) {
    device.require(each.launch);
    write(out, each.launch);
    out.u32(static_cast<std::uint32_t>(each.staged.size()));
    for (const RemoteBuffer& buffer : each.staged) {
      device.require(buffer);
      out.u64(buffer.id);
    }
    out.u32(static_cast<std::uint32_t>(each.poisoned.size()));
    for (const auto& [buffer, seed] : each.poisoned) {
      device.require(buffer);
      out.u64(buffer.id);
      out.u64(seed);
    }
  }
  const Message reply = device.run({kTaskName, "a timed series", out.data()}, limits);
  ByteReader in(reply.bytes, "the times of a series");
  std::vector<double> times(in.u32());
  for (double& time : times) time = in.f64();
  return times;
}

const TaskTable& judge_tasks() {
  static const TaskTable& table = *new TaskTable{{kTaskName, run_series}};
  return table;
}

}  // namespace kernwright
