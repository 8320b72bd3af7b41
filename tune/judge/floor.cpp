// Peaks of GPUs from their drivers and from NVIDIA's tables.
#include "tune/judge/floor.h"

#include <algorithm>

#include "base/format.h"

namespace kernwright {
namespace {

double written_bytes(const HostCase& host_case) {
  double sum = 0;
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    if (host_case.expected[i]) sum += static_cast<double>(host_case.inputs[i].bytes.size());
  }
  return sum;
}

double moved_bytes(const Task& task, const HostCase& host_case) {
  return task.bytes ? task.bytes(host_case.inputs) : 0;
}

/// Dense floating-point operations of a multiprocessor in a clock, of its fastest unit: NVIDIA's
/// architecture whitepapers. An unknown GPU gets a rate beyond all.
double operations_per_clock(int capability, bool has_bytes) {
  constexpr double kNone = 1 << 17;
  struct Row {
    int capability;
    double halves, bytes;
  };
  constexpr Row kRows[] = {{70, 1024, 1024},   {72, 1024, 1024}, {75, 1024, 2048},
                           {80, 2048, 4096},   {86, 1024, 2048}, {87, 1024, 2048},
                           {89, 1024, 2048},   {90, 4096, 8192}, {100, 8192, 32768},
                           {103, 8192, 49152}, {120, 1024, 4096}};
  for (const Row& row : kRows) {
    if (row.capability == capability) return has_bytes ? row.bytes : row.halves;
  }
  return kNone;
}

bool has_byte_elements(const KernelSignature& signature) {
  return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                     [](const Parameter& parameter) {
                       return parameter.kind == ParameterKind::pointer &&
                              (!parameter.scalar || scalar_size(*parameter.scalar) == 1);
                     });
}

}  // namespace

Floor time_floor(const Task& task, const HostCase& host_case, const KernelSignature& signature,
                 const DeviceFacts& facts) {
  Floor floor;
  const double bandwidth = 2e3 * facts.memory_clock_khz * facts.memory_bus_bits / 8;  // bytes/s
  const double bytes = moved_bytes(task, host_case) -
                       std::min(written_bytes(host_case), static_cast<double>(facts.l2_bytes));
  if (bandwidth > 0 && bytes > 0) {
    floor = {bytes / bandwidth * 1e3,
             format("{:.4g} MB at {:.0f} GB/s", bytes / 1e6, bandwidth / 1e9)};
  }
  const double rate = 1e3 * facts.clock_khz * facts.sm_count *
                      operations_per_clock(facts.capability.number(), has_byte_elements(signature));
  const double operations = task.flops ? task.flops(host_case.inputs) : 0;
  if (rate > 0 && operations / rate * 1e3 > floor.value) {
    floor = {operations / rate * 1e3,
             format("{:.4g} GFLOP at {:.4g} TFLOP/s", operations / 1e9, rate / 1e12)};
  }
  return floor;
}

Floor count_floor(const Task& task, const HostCase& host_case, const sim::LineCounts& counts) {
  constexpr double kSector = 32, kOperations = 1 << 18;
  const double all = moved_bytes(task, host_case);
  const auto uncounted = static_cast<double>(counts.uncounted_bytes);
  const double bytes = std::max(0.0, all - uncounted);
  Floor floor{bytes / kSector, format("{:.4g} MB in transactions of 32 bytes", bytes / 1e6)};
  if (uncounted > 0) {
    floor.reason += format(", of {:.4g} MB less {:.4g} MB that {} instructions may have moved",
                           all / 1e6, uncounted / 1e6, counts.uncounted);
  }
  const double operations = task.flops ? task.flops(host_case.inputs) : 0;
  if (operations / kOperations > floor.value) {
    floor = {operations / kOperations,
             format("{:.4g} GFLOP in instructions of 2**18 at most", operations / 1e9)};
  }
  return floor;
}

}  // namespace kernwright
