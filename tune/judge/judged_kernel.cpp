// Buffers at addresses that move, with bands around them, for single launches and for series.
#include "tune/judge/judged_kernel.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "base/format.h"
#include "tune/judge/packing.h"
#include "tune/judge/series_task.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kGuardBytes = 4096;
constexpr std::uint64_t kPadStep = 256, kPads = 64;

}  // namespace

/// The buffers of one case.
class JudgedKernel::Memory {
 public:
  Memory(RemoteDevice& device, const HostCase& of, std::uint64_t seed, const WaitLimits& limits)
      : device_(device), buffers_(of.inputs.size()) {
    const bool is_simulated = device.facts(limits).is_simulated;
    // The simulated device finds writes beyond a buffer itself, also those that bands would hide.
    const std::uint64_t guard = is_simulated ? 0 : kGuardBytes;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < of.inputs.size(); ++i) {
      if (of.inputs[i].is_array()) order.push_back(i);
    }
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[derived_seed(seed, i) % i]);
    }
    for (const std::size_t i : order) {
      pads_.push_back(
          device_.allocate(kPadStep * (1 + derived_seed(seed, 100 + i) % kPads), 0, limits));
      buffers_[i] = device_.allocate(of.inputs[i].bytes.size(), guard, limits);
    }
  }
  ~Memory() {
    // What was lost with its process is no loss here.
    try {
      for (const RemoteBuffer& buffer : buffers_) {
        if (buffer.id == 0) continue;
        if (buffer.bytes > 0) device_.fill(buffer, std::byte{0});
        device_.release(buffer);
      }
      for (const RemoteBuffer& pad : pads_) device_.release(pad);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const RemoteBuffer& operator[](std::size_t i) const { return buffers_[i]; }

  void read_back(const HostCase& of, LaunchOutcome& outcome, const WaitLimits& limits) const {
    outcome.after = of.inputs;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].id == 0) continue;
      if (buffers_[i].bytes > 0) device_.read(buffers_[i], outcome.after[i].bytes, 0, limits);
      const auto damage = device_.check_guards(buffers_[i], limits);
      if (damage && outcome.damage.empty()) {
        outcome.damage = format("argument {} ({}) was written at byte {}, outside of its {} bytes",
                                i, of.inputs[i].to_string(), damage->offset, buffers_[i].bytes);
      }
    }
  }

 private:
  RemoteDevice& device_;
  std::vector<RemoteBuffer> buffers_;  ///< one an argument; without an id for values
  std::vector<RemoteBuffer> pads_;
};

JudgedKernel::JudgedKernel(RemoteDevice& device, ObjectCode code, KernelSignature signature)
    : device_(device), code_(std::move(code)), signature_(std::move(signature)) {}

JudgedKernel::~JudgedKernel() { forget_module(); }

void JudgedKernel::forget_module() noexcept {
  if (kernel_.id == 0) return;
  try {
    if (kernel_.generation == device_.generation()) device_.unload(kernel_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  kernel_ = {};
}

const RemoteKernel& JudgedKernel::loaded(const WaitLimits& limits) {
  if (kernel_.id == 0 || kernel_.generation != device_.generation()) {
    kernel_ = device_.load(code_, signature_.name, limits);
  }
  return kernel_;
}

RemoteLaunch JudgedKernel::launch_of(const HostCase& of, const Memory& memory) const {
  RemoteLaunch launch{.kernel = kernel_,
                      .grid = *of.shape.grid,
                      .block = of.shape.block,
                      .shared_bytes = of.shape.shared_bytes,
                      .cluster = of.shape.cluster,
                      .cooperative = of.shape.cooperative,
                      .arguments = {}};
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    const HostValue& value = of.inputs[i];
    if (value.is_array()) {
      launch.arguments.push_back(RemoteArgument::at(memory[i]));
    } else if (value.kind == HostValue::Kind::null) {
      launch.arguments.push_back(RemoteArgument::null());
    } else {
      launch.arguments.push_back({{}, 0, pack(signature_.parameters[i], value)});
    }
  }
  return launch;
}

LaunchOutcome JudgedKernel::run(const HostCase& of, const std::vector<Contents>& contents,
                                std::uint64_t seed, const std::optional<CheckOptions>& checks,
                                const WaitLimits& limits) {
  LaunchOutcome outcome;
  outcome.after = of.inputs;
  if (of.shape.grid->count() == 0) return outcome;  // as forall(0): nothing to launch
  loaded(limits);
  const Memory memory(device_, of, seed, limits);
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    if (!of.inputs[i].is_array() || of.inputs[i].bytes.empty()) continue;
    if (contents[i] == Contents::poisoned) {
      device_.fill_random(memory[i], derived_seed(seed, 1000 + i), limits);
    } else {
      device_.write(memory[i], of.inputs[i].bytes, 0, limits);
    }
  }
  const RemoteLaunch launch = launch_of(of, memory);
  if (checks) {
    outcome.report = device_.check(launch, *checks, limits);
  } else {
    device_.launch(launch, limits);
  }
  memory.read_back(of, outcome, limits);
  return outcome;
}

std::vector<double> JudgedKernel::time(const std::vector<CaseRef>& cases,
                                       const std::vector<Contents>& contents, std::uint64_t seed,
                                       std::vector<LaunchOutcome>& outcomes,
                                       const WaitLimits& limits) {
  forget_module();
  loaded(limits);
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<SeriesLaunch> series;
  for (const CaseRef& each : cases) {
    const std::uint64_t own_seed = derived_seed(seed, series.size());
    memories.push_back(std::make_unique<Memory>(device_, *each, own_seed, limits));
    const Memory& memory = *memories.back();
    SeriesLaunch launch{launch_of(*each, memory), {}, {}};
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      if (!each->inputs[i].is_array() || each->inputs[i].bytes.empty()) continue;
      if (contents[i] == Contents::poisoned) {
        launch.poisoned.emplace_back(memory[i], derived_seed(own_seed, 1000 + i));
      } else {
        device_.write(memory[i], each->inputs[i].bytes, 0, limits);
        launch.staged.push_back(memory[i]);
      }
    }
    series.push_back(std::move(launch));
  }
  std::vector<double> times = time_series(device_, series, limits);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    LaunchOutcome outcome;
    memories[i]->read_back(*cases[i], outcome, limits);
    outcomes.push_back(std::move(outcome));
  }
  return times;
}

}  // namespace kernwright
