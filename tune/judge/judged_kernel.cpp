// Buffers at changing addresses, with bands around them, for single launches and for series.
#include "tune/judge/judged_kernel.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/packing.h"
#include "tune/judge/series_task.h"
#include "tune/random.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kGuardBytes = 4096;
constexpr std::uint64_t kPadStep = 256, kPads = 64;

/// For the text's own demands: its variables, its stack.
template <typename Call>
void without_room_refused(const Call& call) {
  try {
    call();
  } catch (const OutOfMemory& error) {
    throw LaunchConfigError(error.what());
  }
}

}  // namespace

/// The buffers of one case.
class JudgedKernel::Memory {
 public:
  // The other constructor has made the object, so the destructor frees the rest after an exception.
  Memory(RemoteDevice& device, const HostCase& host_case, std::uint64_t seed,
         const WaitLimits& limits)
      : Memory(device, host_case.inputs.size()) {
    const bool is_simulated = device.facts(limits).is_simulated;
    // The simulated device itself finds writes outside a buffer; bands would hide some of them.
    const std::uint64_t guard = is_simulated ? 0 : kGuardBytes;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
      if (host_case.inputs[i].is_array()) order.push_back(i);
    }
    Random random(seed);
    random.shuffle(std::span(order));
    for (const std::size_t i : order) {
      pads_.push_back(device_.allocate(kPadStep * (1 + random.below(kPads)), 0, limits));
      buffers_[i] = device_.allocate(host_case.inputs[i].bytes.size(), guard, limits);
    }
  }
  ~Memory() {
    // Buffers of a lost process need no release.
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

  void read_back(const HostCase& host_case, LaunchOutcome& outcome,
                 const WaitLimits& limits) const {
    outcome.after = host_case.inputs;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].id == 0) continue;
      if (buffers_[i].bytes > 0) device_.read(buffers_[i], outcome.after[i].bytes, 0, limits);
      const auto damage = device_.check_guards(buffers_[i], limits);
      if (damage && outcome.damage.empty()) {
        outcome.damage =
            format("argument {} ({}) was written at byte {}, outside of its {} bytes", i,
                   host_case.inputs[i].to_string(), damage->offset, buffers_[i].bytes);
      }
    }
  }

 private:
  Memory(RemoteDevice& device, std::size_t count) : device_(device), buffers_(count) {}

  RemoteDevice& device_;
  std::vector<RemoteBuffer> buffers_;  ///< one an argument; without an id for values
  std::vector<RemoteBuffer> pads_;
};

/// Loaded modules, unloaded at the end.
class JudgedKernel::Modules {
 public:
  explicit Modules(RemoteDevice& device) : device_(device) {}
  ~Modules() {
    try {
      for (const RemoteKernel& kernel : kernels_) {
        if (kernel.generation == device_.generation()) device_.unload(kernel);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  void load(const ObjectCode& code, const std::string& name, const WaitLimits& limits) {
    kernels_.push_back(device_.load(code, name, limits));
  }
  const RemoteKernel& last() const { return kernels_.back(); }

 private:
  RemoteDevice& device_;
  std::vector<RemoteKernel> kernels_;
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
    without_room_refused([&] { kernel_ = device_.load(code_, signature_.name, limits); });
  }
  return kernel_;
}

std::unique_ptr<JudgedKernel::Memory> JudgedKernel::memory_for(const HostCase& host_case,
                                                               std::uint64_t seed,
                                                               const WaitLimits& limits) {
  try {
    return std::make_unique<Memory>(device_, host_case, seed, limits);
  } catch (const OutOfMemory&) {
    if (kernel_.id == 0) throw;
  }
  forget_module();
  static_cast<void>(Memory(device_, host_case, seed, limits));
  throw LaunchConfigError("the kernel's own variables leave no room for its arguments");
}

RemoteLaunch JudgedKernel::make_launch(const HostCase& host_case, const Memory& memory,
                                       const RemoteKernel& kernel) const {
  RemoteLaunch launch{.kernel = kernel,
                      .grid = *host_case.shape.grid,
                      .block = host_case.shape.block,
                      .shared_bytes = host_case.shape.shared_bytes,
                      .cluster = host_case.shape.cluster,
                      .cooperative = host_case.shape.cooperative,
                      .arguments = {}};
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    const HostValue& value = host_case.inputs[i];
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

void JudgedKernel::put_in_place(const HostCase& host_case, const Memory& memory,
                                std::size_t argument, Contents contents,
                                const LaunchSetting& setting, const WaitLimits& limits) {
  const HostValue& given = host_case.inputs[argument];
  if (!given.is_array() || given.bytes.empty()) return;
  const RemoteBuffer& buffer = memory[argument];
  const std::uint64_t seed = derived_seed(setting.seed, 1000 + argument);
  const double step = argument < setting.steps.size() ? setting.steps[argument] : 0;
  if (contents == Contents::given) {
    device_.write(buffer, given.bytes, 0, limits);
  } else if (contents == Contents::free && step != 0) {
    device_.write(buffer, steps(given, step), 0, limits);
  } else if (setting.fill == Fill::random) {
    device_.fill_random(buffer, seed, limits);
  } else {
    device_.write(buffer, filled(setting.fill, given, left_[argument], seed), 0, limits);
  }
}

void JudgedKernel::put_all_in_place(const HostCase& host_case, const Memory& memory,
                                    const std::vector<Contents>& contents,
                                    const LaunchSetting& setting, const WaitLimits& limits) {
  const bool is_simulated = device_.facts(limits).is_simulated;
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    const bool is_const = host_case.inputs[i].is_array() && signature_.parameters[i].pointee_const;
    const bool was_read_only = is_simulated && is_const && setting.before > 0;
    if (was_read_only) device_.set_read_only(memory[i], false, limits);
    put_in_place(host_case, memory, i, contents[i], setting, limits);
    if (is_simulated && is_const) device_.set_read_only(memory[i], true, limits);
  }
}

void JudgedKernel::launch_before(const HostCase& host_case, const Memory& memory,
                                 const std::vector<Contents>& contents,
                                 const LaunchSetting& setting, const WaitLimits& limits) {
  put_all_in_place(host_case, memory, contents, setting, limits);
  const RemoteLaunch launch = make_launch(host_case, memory, loaded(limits));
  for (std::uint64_t n = 0; n < setting.before; ++n) {
    without_room_refused([&] { device_.launch(launch, limits); });
    // Contents that do not matter need no renewal between two launches.
    for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
      const bool matters = host_case.expected[i] && contents[i] == Contents::given;
      if (matters) put_in_place(host_case, memory, i, contents[i], setting, limits);
    }
  }
}

LaunchOutcome JudgedKernel::run(const HostCase& host_case, const std::vector<Contents>& contents,
                                const LaunchSetting& setting,
                                const std::optional<CheckOptions>& checks,
                                const WaitLimits& limits) {
  LaunchOutcome outcome;
  if (host_case.shape.grid->count() == 0) {  // as forall(0): nothing to launch
    outcome.after = host_case.inputs;
    return outcome;
  }
  const std::unique_ptr<Memory> allocated = memory_for(host_case, setting.seed, limits);
  const Memory& memory = *allocated;
  if (!setting.repeats) left_ = left_last_;
  left_.resize(host_case.inputs.size());
  if (setting.before > 0) {
    const HostCase& first = setting.before_case ? *setting.before_case : host_case;
    launch_before(first, memory, contents, setting, limits);
  }
  put_all_in_place(host_case, memory, contents, setting, limits);
  const RemoteLaunch launch = make_launch(host_case, memory, loaded(limits));
  without_room_refused([&] {
    if (checks) {
      outcome.report = device_.check(launch, *checks, limits);
    } else {
      device_.launch(launch, limits);
    }
  });
  memory.read_back(host_case, outcome, limits);
  if (!setting.repeats) {
    left_last_.clear();
    for (const HostValue& value : outcome.after) left_last_.push_back(value.bytes);
  }
  return outcome;
}

std::vector<double> JudgedKernel::time(const std::vector<CaseRef>& cases,
                                       const std::vector<Contents>& contents, std::uint64_t seed,
                                       std::vector<LaunchOutcome>& outcomes,
                                       const WaitLimits& limits) {
  forget_module();
  const auto launch_seed = [&](std::size_t i) { return derived_seed(seed, i); };
  std::vector<std::unique_ptr<Memory>> memories;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    memories.push_back(memory_for(*cases[i], launch_seed(i), limits));
  }
  Modules modules(device_);
  std::vector<SeriesLaunch> series;
  for (const CaseRef& each : cases) {
    const std::uint64_t series_seed = launch_seed(series.size());
    const Memory& memory = *memories[series.size()];
    without_room_refused([&] { modules.load(code_, signature_.name, limits); });
    SeriesLaunch launch{make_launch(*each, memory, modules.last()), {}, {}};
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      if (!each->inputs[i].is_array() || each->inputs[i].bytes.empty()) continue;
      if (contents[i] != Contents::given) {
        launch.poisoned.emplace_back(memory[i], derived_seed(series_seed, 1000 + i));
      } else {
        device_.write(memory[i], each->inputs[i].bytes, 0, limits);
        launch.staged.push_back(memory[i]);
      }
    }
    series.push_back(std::move(launch));
  }
  std::vector<double> times = time_series(device_, series, limits);
  outcomes.resize(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    outcomes[i].damage.clear();
    memories[i]->read_back(*cases[i], outcomes[i], limits);
  }
  return times;
}

}  // namespace kernwright
