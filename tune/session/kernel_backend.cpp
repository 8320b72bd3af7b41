// Buffers, kernels and launches of trials on their devices.
#include "tune/session/kernel_backend.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "tune/measure/measure_task.h"
#include "tune/session/kernel_lane.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kLoaded = 12;  // kernels that stay loaded on a device

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string code_hash(const ObjectCode& code) {
  return Hasher().field(code.code).digest().to_hex();
}

std::string launch_text(const KernelPlan& plan) {
  const auto text = [](const Dim3& d) { return format("{},{},{}", d.x, d.y, d.z); };
  return format("{} {} {} {}", text(plan.grid), text(plan.block), text(plan.cluster),
                plan.shared_bytes);
}

}  // namespace

KernelBackend::KernelBackend(Device& device, KernelBackendOptions options)
    : device_(device), options_(std::move(options)), free_(options_.free_outputs) {
  if (options_.devices.empty()) throw InvalidArgument("a session needs at least one device");
  for (const std::string& label : options_.devices) {
    RemoteDeviceOptions remote{.worker = options_.worker};
    remote.worker.environment.push_back("KERNWRIGHT_DEVICE=" + label);
    lanes_.push_back(std::make_unique<Lane>(std::move(remote)));
  }
}

KernelBackend::~KernelBackend() = default;

const DeviceFacts& KernelBackend::open(const WaitLimits& limits) {
  return ready(0, limits).device.facts(limits);
}

void KernelBackend::try_once(std::uint64_t index, const WaitLimits& limits) {
  const TrialWorkRef work = plan(index);
  compile(*work, limits);
  bind(*work);
  prepare(0, limits);
  load(0, *work, limits);
  if (const auto wrong = verify(0, *work, kFirstLaunches, limits)) throw Error(*wrong);
}

TrialWorkRef KernelBackend::plan(std::uint64_t index) {
  return std::make_shared<Work>(next_id(), options_.plan(index));
}

CompiledTrial KernelBackend::compile(TrialWork& trial, const WaitLimits& limits) {
  Work& work = static_cast<Work&>(trial);
  const WaitScope scope(limits);
  const LazyKernel kernel(work.plan.program, work.plan.name, &device_);
  const FoundCode found = kernel.found_code(device_);
  work.code = found.code;
  work.name = kernel.name();
  CompiledTrial compiled;
  compiled.code = code_hash(*work.code);
  compiled.same_key = format("{} {} {}", compiled.code, work.code->kernel(work.name).lowered,
                             launch_text(work.plan));
  compiled.compile_s = found.layer == CodeLayer::compiler ? work.code->compile_ms / 1000 : 0;
  return compiled;
}

void KernelBackend::bind(TrialWork& trial) {
  Work& work = static_cast<Work&>(trial);
  const KernelSignature& signature = work.code->kernel(work.name);
  work.arguments = options_.arguments(*work.code, signature);
  work.written.clear();
  work.constant.clear();
  for (std::size_t i = 0; i < work.arguments.size(); ++i) {
    const auto buffer = work.arguments[i].buffer;
    if (!buffer) continue;
    if (*buffer >= options_.buffers.size())
      throw InvalidArgument(
          format("argument {} names buffer {} of {}", i, *buffer, options_.buffers.size()));
    if (i < signature.parameters.size() && signature.parameters[i].pointee_const) {
      work.constant.emplace_back(*buffer,
                                 format("argument {} ({})", i, signature.parameters[i].name));
    } else if (std::find(work.written.begin(), work.written.end(), *buffer) == work.written.end()) {
      work.written.push_back(*buffer);
    }
  }
  std::erase_if(work.constant, [&](const auto& one) {
    return std::find(work.written.begin(), work.written.end(), one.first) != work.written.end();
  });
}

/// The lane with a device and all buffers, with their contents before a trial.
KernelBackend::Lane& KernelBackend::ready(unsigned number, const WaitLimits& limits) {
  Lane& lane = *lanes_[number];
  if (lane.generation != 0 && lane.device.generation() == lane.generation) return lane;
  lane.generation = 0;
  lane.loaded.clear();
  lane.buffers.clear();
  lane.device.facts(limits);  // starts it
  lane.has_room = true;
  lane.originals.assign(options_.buffers.size(), std::nullopt);
  for (const TuningBuffer& buffer : options_.buffers)
    lane.buffers.push_back(lane.device.allocate(buffer.bytes.size(), 0, limits));
  lane.is_dirty.assign(options_.buffers.size(), true);
  restore(lane, limits);
  lane.generation = lane.device.generation();
  return lane;
}

/// A copy of a buffer's contents before a trial, on the device if there is room.
const RemoteBuffer* KernelBackend::original(Lane& lane, std::size_t buffer,
                                            const WaitLimits& limits) {
  if (options_.buffers[buffer].is_poisoned) return nullptr;
  std::optional<RemoteBuffer>& copy = lane.originals[buffer];
  if (!copy && lane.has_room) {
    try {
      copy = lane.device.allocate(lane.buffers[buffer].bytes, 0, limits);
      lane.device.write(*copy, options_.buffers[buffer].bytes, 0, limits);
    } catch (const OutOfMemory&) {
      copy.reset();
      lane.has_room = false;
    }
  }
  return copy ? &*copy : nullptr;
}

void KernelBackend::restore(Lane& lane, const WaitLimits& limits,
                            std::span<const std::size_t> except) {
  if (std::find(lane.is_dirty.begin(), lane.is_dirty.end(), false) == lane.is_dirty.end())
    lane.is_pristine = except.empty();
  for (std::size_t i = 0; i < lane.buffers.size(); ++i) {
    if (!lane.is_dirty[i] || std::find(except.begin(), except.end(), i) != except.end()) continue;
    const TuningBuffer& buffer = options_.buffers[i];
    if (buffer.is_poisoned) {
      lane.device.fill(lane.buffers[i], std::byte{0xff}, limits);
    } else if (lane.originals[i]) {
      lane.device.copy(lane.buffers[i], *lane.originals[i], limits);
    } else {
      lane.device.write(lane.buffers[i], buffer.bytes, 0, limits);
    }
    lane.is_dirty[i] = false;
  }
}

void KernelBackend::prepare(unsigned lane, const WaitLimits& limits) {
  ready(lane, limits);
  find_free_outputs(lane, limits);
  ready(lane, limits);
}

KernelResources KernelBackend::load(unsigned number, TrialWork& trial, const WaitLimits& limits) {
  const Work& work = static_cast<Work&>(trial);
  Lane& lane = ready(number, limits);
  auto known = std::find_if(lane.loaded.begin(), lane.loaded.end(),
                            [&](const auto& entry) { return entry.first == work.id; });
  if (known == lane.loaded.end()) {
    const Source& source = work.plan.program.source();
    const SourceOrigin origin{source.name, source.first_line};
    if (lane.loaded.size() >= kLoaded) {
      lane.device.unload(lane.loaded.front().second, limits);
      lane.loaded.erase(lane.loaded.begin());
    }
    lane.loaded.emplace_back(work.id, lane.device.load(*work.code, work.name, limits, origin));
    fill_symbols(lane, work, limits);
  } else {
    std::rotate(known, known + 1, lane.loaded.end());
  }
  const KernelAttributes& attributes = lane.loaded.back().second.attributes;
  return {.registers = attributes.registers,
          .shared_bytes = static_cast<std::size_t>(attributes.shared_bytes),
          .local_bytes = static_cast<std::size_t>(attributes.local_bytes)};
}

void KernelBackend::fill_symbols(Lane& lane, const Work& work, const WaitLimits& limits) const {
  for (const auto& [name, bytes] : options_.symbols) {
    const auto lowered = work.code->symbols.find(name);
    if (lowered == work.code->symbols.end())
      throw NameNotFound(format("the text has no variable {}, which the session fills", name));
    lane.device.write_symbol(lane.loaded.back().second, lowered->second, bytes, limits);
  }
}

RemoteLaunch KernelBackend::make_launch(Lane& lane, const Work& work) const {
  RemoteLaunch launch;
  launch.kernel = lane.loaded.back().second;
  launch.grid = work.plan.grid;
  launch.block = work.plan.block;
  launch.shared_bytes = work.plan.shared_bytes;
  launch.cluster = work.plan.cluster;
  for (const TuningArgument& argument : work.arguments) {
    launch.arguments.push_back(
        argument.buffer ? RemoteArgument::at(lane.buffers[*argument.buffer], argument.offset)
                        : RemoteArgument{.value = argument.value});
  }
  for (const std::size_t buffer : work.written) lane.is_dirty[buffer] = true;
  lane.is_pristine = false;
  return launch;
}

TrialSamples KernelBackend::sample(unsigned number, TrialWork& trial, unsigned count, double cap_ms,
                                   const WaitLimits& limits) {
  const Work& work = static_cast<Work&>(trial);
  Lane& lane = *lanes_[number];
  MeasurePlan plan = options_.measure;
  plan.min_samples = plan.max_samples = static_cast<int>(count);
  plan.cap_ms = plan.energy ? 0 : cap_ms;
  // An earlier trial may have spoilt inputs; outputs of this one are restored between samples.
  restore(lane, limits, work.written);
  std::vector<RemoteRestore> restores;
  for (const std::size_t buffer : work.written) {
    if (const RemoteBuffer* const from = original(lane, buffer, limits))
      restores.push_back({lane.buffers[buffer], *from});
  }
  const Measurement measured =
      measure(lane.device, make_launch(lane, work), plan, limits, restores);
  TrialSamples samples{.times_ms = measured.times_ms};
  if (measured.counts) {
    samples.times_ms.clear();
    samples.cost = measured.counts->cost();
    samples.metrics["instructions"] = static_cast<double>(measured.counts->instructions);
    samples.metrics["transactions"] = static_cast<double>(measured.counts->transactions);
  }
  if (measured.sm_clock_mhz > 0) samples.metrics["sm_clock_mhz"] = measured.sm_clock_mhz;
  if (measured.is_throttled) samples.metrics["throttled"] = 1;
  if (measured.energy_joules) samples.metrics["energy_j"] = *measured.energy_joules;
  if (measured.power_watts) samples.metrics["power_w"] = *measured.power_watts;
  return samples;
}

}  // namespace kernwright
