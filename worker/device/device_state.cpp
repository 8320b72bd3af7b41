// Finding things by their numbers, and the memory around them.
#include "worker/device/device_state.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "core/launch/launch_history.h"
#include "core/runtime.h"
#include "memory/transfer.h"
#include "worker/device/random_bytes.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kGuardAlignment = 256;
constexpr std::uint64_t kMaxGuardBytes = std::uint64_t{1} << 40;

std::uint64_t random_seed() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

std::uint64_t rounded_guard(std::uint64_t bytes) {
  if (bytes > kMaxGuardBytes) {
    throw InvalidArgument(
        format("guard bands of {} bytes are too large: at most {}", bytes, kMaxGuardBytes));
  }
  return (bytes + kGuardAlignment - 1) / kGuardAlignment * kGuardAlignment;
}

template <typename Map>
auto& find(Map& map, std::uint64_t id, const char* noun) {
  const auto known = map.find(id);
  if (known != map.end()) return known->second;
  throw InvalidArgument(format("a worker has no {} {}: it was released or never made", noun, id));
}

/// Says for all lines on which line of its file each kernel's text begins.
void place_texts(CheckReport& report) {
  const auto first_line = [](const std::string& kernel, const std::string& file) {
    return static_cast<int>(KernelTag::find_first_line(kernel, file));
  };
  for (sim::Finding& finding : report.findings) {
    const std::string kernel = finding.fault.kernel;
    finding.fault.place_texts([&](const std::string& file) { return first_line(kernel, file); });
    if (finding.other) finding.other->first_line = first_line(kernel, finding.other->file);
  }
  for (sim::LineRecord& record : report.profile.lines) {
    record.first_line = first_line(record.kernel, record.file);
  }
}

}  // namespace

struct DeviceState::Checks {
  explicit Checks(const CheckOptions& options)
      : checks(sim::check_set(options.checks), options.limit) {
    if (options.schedule_seed || options.replays) schedule.emplace(options.schedule_seed);
  }
  sim::CheckScope checks;
  std::optional<sim::ScheduleScope> schedule;
  sim::LineProfileScope profile;
};

DeviceState::DeviceState(Device& device)
    : device_(device),
      stream_(Stream::create(device)),
      resource_(std::make_shared<DeviceResource>(device)) {}

DeviceState& DeviceState::get() {
  // Kept to the end of the process, which has no time for destructors.
  static DeviceState& state = *new DeviceState(Runtime::get().current_device());
  return state;
}

void DeviceState::share(SharedMemory memory) {
  if (!shared_.bytes().empty()) return;
  shared_ = std::move(memory);
  if (device_.is_simulated()) return;
  // Copies of page-locked memory need no second copy by the driver. A refusal only costs speed.
  const ContextGuard context(device_);
  device_.driver().cuMemHostRegister(shared_.bytes().data(), shared_.bytes().size(), 0);
}

std::span<std::byte> DeviceState::shared(std::uint64_t bytes) {
  if (bytes <= shared_.bytes().size()) return shared_.bytes().first(bytes);
  throw InvalidArgument(format("{} bytes are more than the {} that a worker shares with its parent",
                               bytes, shared_.bytes().size()));
}

void DeviceState::write_random(CUdeviceptr to, std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> part(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  for (std::uint64_t done = 0; done < bytes; done += part.size()) {
    part.resize(std::min<std::uint64_t>(bytes - done, part.size()));
    random_bytes(seed, done, part);
    copy_to_device(device_, to + done, part.data(), part.size());
  }
}

std::uint64_t DeviceState::allocate(std::uint64_t bytes, std::uint64_t guard_bytes) {
  GuardedBuffer made;
  made.guard_bytes = rounded_guard(guard_bytes);
  made.bytes = bytes;
  require_allocatable(device_, std::max<std::uint64_t>(bytes, 1), stream_);
  made.memory = Buffer(resource_, bytes + 2 * made.guard_bytes, stream_);
  if (made.guard_bytes > 0) {
    made.guard_seed = random_seed();
    write_random(made.memory.address(), made.guard_bytes, made.guard_seed);
    write_random(made.address() + bytes, made.guard_bytes, made.guard_seed + 1);
  }
  buffers_.emplace(++last_id_, std::move(made));
  return last_id_;
}

void DeviceState::release(std::uint64_t id) {
  static_cast<void>(buffer(id));
  buffers_.erase(id);
}

GuardedBuffer& DeviceState::buffer(std::uint64_t id) { return find(buffers_, id, "buffer"); }

std::optional<GuardDamage> DeviceState::damage_in_band(CUdeviceptr at, std::uint64_t bytes,
                                                       std::uint64_t seed) {
  std::vector<std::byte> found(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  std::vector<std::byte> expected(found.size());
  for (std::uint64_t done = 0; done < bytes; done += found.size()) {
    found.resize(std::min<std::uint64_t>(bytes - done, found.size()));
    expected.resize(found.size());
    random_bytes(seed, done, expected);
    copy_to_host(device_, found.data(), at + done, found.size());
    const auto [one, other] = std::mismatch(expected.begin(), expected.end(), found.begin());
    if (one == expected.end()) continue;
    const auto offset = static_cast<std::int64_t>(done) + (one - expected.begin());
    return GuardDamage{offset, static_cast<std::uint8_t>(*one), static_cast<std::uint8_t>(*other)};
  }
  return std::nullopt;
}

std::optional<GuardDamage> DeviceState::guard_damage(std::uint64_t id) {
  const GuardedBuffer& guarded = buffer(id);
  const auto size = static_cast<std::int64_t>(guarded.bytes);
  auto damage = damage_in_band(guarded.memory.address(), guarded.guard_bytes, guarded.guard_seed);
  if (damage) {
    damage->offset -= static_cast<std::int64_t>(guarded.guard_bytes);
    return damage;
  }
  damage = damage_in_band(guarded.address() + guarded.bytes, guarded.guard_bytes,
                          guarded.guard_seed + 1);
  if (damage) damage->offset += size;
  return damage;
}

void DeviceState::set_read_only(std::uint64_t id, bool is_read_only) {
  if (!device_.is_simulated()) {
    throw InvalidArgument(
        format("memory can be made read-only on the simulated device alone, and "
               "this worker holds {}",
               device_.identify()));
  }
  sim::set_read_only(buffer(id).address(), is_read_only);
}

std::uint64_t DeviceState::load(const Kernel& kernel) {
  kernels_.emplace(++last_id_, kernel);
  return last_id_;
}

void DeviceState::unload(std::uint64_t id) {
  static_cast<void>(kernel(id));
  kernels_.erase(id);
}

const Kernel& DeviceState::kernel(std::uint64_t id) const { return find(kernels_, id, "kernel"); }

std::unique_ptr<ResolvedLaunch> DeviceState::resolve(const RemoteLaunch& launch) {
  std::unique_ptr<ResolvedLaunch> result(new ResolvedLaunch{kernel(launch.kernel.id), {}, {}, {}});
  result->config = {.grid = launch.grid,
                    .block = launch.block,
                    .shared_bytes = launch.shared_bytes,
                    .stream = stream_,
                    .cluster = launch.cluster,
                    .cooperative = launch.cooperative};
  const KernelSignature& signature = result->kernel.signature();
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const RemoteArgument& argument = launch.arguments[i];
    std::vector<std::byte> value = argument.value;
    if (argument.buffer.id != 0) {
      value = RemoteArgument::of(buffer(argument.buffer.id).address() + argument.offset).value;
    }
    const std::size_t size = i < signature.parameters.size() ? signature.parameters[i].size : 0;
    if (value.empty() || (size != 0 && value.size() != size)) {
      throw ArgumentError(format("{}: argument {} has {} bytes, its parameter {}",
                                 signature.to_string(), i, value.size(), size));
    }
    result->values.push_back(std::move(value));
  }
  for (auto& value : result->values) result->pointers.push_back(value.data());
  return result;
}

void DeviceState::begin_checks(const CheckOptions& options) {
  if (!device_.is_simulated()) {
    throw InvalidArgument(
        format("checks run on the simulated device alone, and this worker holds {}: give it "
               "KERNWRIGHT_DEVICE=sim in its environment",
               device_.identify()));
  }
  if (checks_ != nullptr) throw InvalidArgument("checks have begun already: end them first");
  checks_ = std::make_unique<Checks>(options);
}

CheckReport DeviceState::end_checks() {
  if (checks_ == nullptr) throw InvalidArgument("no checks have begun");
  const std::unique_ptr<Checks> ended = std::move(checks_);
  CheckReport report{.findings = ended->checks.findings(),
                     .total = ended->checks.total(),
                     .profile = ended->profile.profile()};
  place_texts(report);
  return report;
}

}  // namespace kernwright
