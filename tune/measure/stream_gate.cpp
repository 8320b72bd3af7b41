// The gate's kernels, and the host's part.
#include "tune/measure/stream_gate.h"

#include "core/device.h"
#include "jit/cache/code_cache.h"

#include <array>
#include <atomic>
#include <new>
#include <utility>

namespace kernwright {
namespace {

// NOTE: open_count only grows, so a gate that begins late is already open.
constexpr const char* kSource = R"(
struct ClockStamp {
  unsigned long long nanoseconds, cycles;
  unsigned sm, gave_up;
};

__device__ unsigned long long global_nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void write_stamp(ClockStamp* stamp, unsigned gave_up) {
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  stamp->nanoseconds = global_nanoseconds();
  stamp->cycles = clock64();
  stamp->sm = sm;
  stamp->gave_up = gave_up;
}

extern "C" __global__ void kernwright_gate(const volatile unsigned* open_count, unsigned number,
                                           unsigned long long limit_ns, ClockStamp* stamp) {
  const unsigned long long begin = global_nanoseconds();
  unsigned gave_up = 0;
  while (static_cast<int>(*open_count - number) < 0) {
    if (global_nanoseconds() - begin > limit_ns) {
      gave_up = 1;
      break;
    }
  }
  write_stamp(stamp, gave_up);
}

extern "C" __global__ void kernwright_stamp(ClockStamp* stamp) { write_stamp(stamp, 0); }
)";

}  // namespace

std::optional<double> clock_mhz(const ClockStamp& begin, const ClockStamp& end,
                                std::uint64_t least_ns) {
  if (begin.sm != end.sm || end.nanoseconds <= begin.nanoseconds || end.cycles <= begin.cycles) {
    return {};
  }
  const std::uint64_t span = end.nanoseconds - begin.nanoseconds;
  if (span < least_ns) return {};
  return 1000.0 * static_cast<double>(end.cycles - begin.cycles) / static_cast<double>(span);
}

std::shared_ptr<const ObjectCode> stream_gate_code(const DeviceTarget& target) {
  Source source;
  source.text = kSource;
  source.name = "stream_gate.cu";
  const ProgramOptions options;
  const ScannedSource declared = scan_source(source.text);
  const ProgramFields fields = program_fields(source, options);
  TargetRequest wanted;
  wanted.device = target;
  return CodeCache::process().get({source, options, declared, fields, std::move(wanted)}).code;
}

std::shared_ptr<const ObjectCode> stream_gate_code(Device& device) {
  DeviceTarget target;
  target.compute_capability = device.compute_capability().number();
  target.is_simulated = device.is_simulated();
  return stream_gate_code(target);
}

StreamGate::StreamGate(Device& device, const ObjectCode& code)
    : StreamGate(device, Module::load(device, code.code, code.resource_cubin), code) {}

StreamGate::StreamGate(Device& device, const Module& module, const ObjectCode& code)
    : gate_(module, code.kernel("kernwright_gate")),
      stamp_(module, code.kernel("kernwright_stamp")),
      memory_(device, sizeof(SharedState)),
      state_(new (memory_.data()) SharedState{}) {}

void StreamGate::close(const Stream& stream, std::uint64_t limit_ns) {
  std::uint32_t* open_count = &state_->open_count;
  ClockStamp* stamp = &state_->opened;
  const std::uint32_t number = closed_ + 1;
  const std::array<const void*, 4> values = {&open_count, &number, &limit_ns, &stamp};
  std::array<void*, 4> arguments;
  for (std::size_t i = 0; i < values.size(); ++i) arguments[i] = const_cast<void*>(values[i]);
  gate_.launch({.stream = stream}, arguments);
  closed_ = number;
}

void StreamGate::open() noexcept {
  std::atomic_ref(state_->open_count).store(closed_, std::memory_order_release);
}

void StreamGate::stamp(const Stream& stream) {
  ClockStamp* stamp = &state_->stamped;
  const std::array<void*, 1> arguments = {&stamp};
  stamp_.launch({.stream = stream}, arguments);
}

}  // namespace kernwright
