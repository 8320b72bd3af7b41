// Requests to the worker with the device, and the handling of failed ones.
#include "worker/device/remote_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "worker/device/device_tasks.h"
#include "worker/device/shared_memory.h"
#include "worker/machine_memory.h"

namespace kernwright {
namespace {

constexpr const char* kOpening = "opening a worker's device";

std::uint64_t next_generation() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

template <typename... Numbers>
std::vector<std::byte> numbers(Numbers... all) {
  ByteWriter out;
  (out.u64(all), ...);
  return out.take();
}

ByteReader reader_of(const Message& reply) {
  return {reply.bytes, "the reply of a device's worker"};
}

void require_current(const char* noun, std::uint64_t id, std::uint64_t of, std::uint64_t current) {
  if (id == 0) throw InvalidArgument(format("an empty {} has no place on a device", noun));
  if (of == current) return;
  throw WorkerLost(
      format("{} {} is not of this device's process: it went with a process that was lost, or was "
             "made on another device; make it again",
             noun, id));
}

void require_part(const RemoteBuffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return;
  throw InvalidArgument(format("{} bytes from {} on lie beyond the end of a buffer of {}", bytes,
                               offset, buffer.bytes));
}

RemoteDeviceOptions with_memory_limit(RemoteDeviceOptions options) {
  if (options.worker.memory_limit == 0) options.worker.memory_limit = memory_of_worker();
  return options;
}

/// New memory; where the worker is this process, the one that all devices in it share, because the
/// worker's side has one for all.
std::shared_ptr<SharedMemory> memory_shared_with(const WorkerOptions& options) {
  const auto make = [] {
    return std::make_shared<SharedMemory>(SharedMemory::create(kSharedBytes));
  };
  if (options.in_process == nullptr) return make();
  static const std::shared_ptr<SharedMemory> memory = make();
  return memory;
}

}  // namespace

struct RemoteDevice::State {
  explicit State(RemoteDeviceOptions wanted)
      : options(with_memory_limit(std::move(wanted))),
        shared(memory_shared_with(options.worker)),
        worker(options.worker) {}
  ~State() { release_all(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void open(const WaitLimits& limits);
  void open_process(const WaitLimits& limits);
  void start_spare();
  void lose() noexcept;
  Message run(const WorkerTask& task, const WaitLimits& limits);
  Message run(const char* name, const char* subject, std::span<const std::byte> request,
              const WaitLimits& limits) {
    return run(WorkerTask{name, subject, request}, limits);
  }

  void release_all() noexcept;
  std::span<std::byte> bytes() const { return shared->bytes(); }

  RemoteDeviceOptions options;
  std::shared_ptr<SharedMemory> shared;
  Worker worker;
  DeviceFacts facts;
  std::unique_ptr<Worker> spare;        ///< opens its device while `worker` works
  std::uint64_t generation = 0;         ///< 0: the device is not open
  std::uint64_t resident_at_first = 0;  ///< of the process, with its device open
  int losses = 0;
  std::set<std::uint64_t> buffers, kernels;  ///< what is there
};

/// If the worker is this process, nothing else frees the device's memory. It calls the worker
/// itself, because run() comes here when the device is lost.
void RemoteDevice::State::release_all() noexcept {
  if (options.worker.in_process == nullptr || generation == 0) return;
  try {
    for (const std::uint64_t id : kernels) {
      worker.run({"device.unload", "unloading a kernel", numbers(id)});
    }
    for (const std::uint64_t id : buffers) {
      worker.run({"device.release", "freeing memory", numbers(id)});
    }
  } catch (const std::exception& error) {
    log(LogLevel::warning, "memory of a device is not freed: {}", error.what());
  }
}

void RemoteDevice::State::open_process(const WaitLimits& limits) {
  const std::array<int, 1> files{shared->descriptor()};
  try {
    const Message reply = worker.run({"device.open", kOpening, {}, files}, limits);
    ByteReader in = reader_of(reply);
    facts = read_device_facts(in);
    resident_at_first = worker.resident_bytes();
  } catch (...) {
    worker.kill();  // the next attempt finds nothing of this one
    throw;
  }
}

/// Takes the spare over where there is one.
void RemoteDevice::State::open(const WaitLimits& limits) {
  if (generation != 0) return;
  if (spare != nullptr && worker.process_id() < 0) {
    worker = std::move(*std::exchange(spare, nullptr));
    try {
      open_process(limits);
    } catch (const WorkerLost&) {  // it had ended before it was needed
      open_process(limits);
    }
  } else {
    open_process(limits);
  }
  generation = next_generation();
  if (options.keep_spare && spare == nullptr) start_spare();
}

/// Without one a loss only takes longer.
void RemoteDevice::State::start_spare() {
  if (options.worker.in_process != nullptr) return;
  const std::array<int, 1> files{shared->descriptor()};
  auto started = std::make_unique<Worker>(options.worker);
  try {
    started->post({"device.open", kOpening, {}, files});
    spare = std::move(started);
  } catch (const Error& error) {
    log(LogLevel::warning, "a spare process for a device: {}", error.what());
  }
}

void RemoteDevice::State::lose() noexcept {
  release_all();
  buffers.clear();
  kernels.clear();
  worker.kill();
  if (std::exchange(generation, 0) != 0) ++losses;
}

Message RemoteDevice::State::run(const WorkerTask& task, const WaitLimits& limits) {
  open(limits);
  try {
    return worker.run(task, limits);
  } catch (const DeviceLost&) {
    lose();
    throw;
  } catch (...) {
    if (worker.process_id() < 0) lose();
    throw;
  }
}

RemoteDevice::RemoteDevice(RemoteDeviceOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
RemoteDevice::~RemoteDevice() = default;
RemoteDevice::RemoteDevice(RemoteDevice&&) noexcept = default;
RemoteDevice& RemoteDevice::operator=(RemoteDevice&&) noexcept = default;

void RemoteDevice::start() {
  if (state_->spare == nullptr) state_->worker.start();
}

const DeviceFacts& RemoteDevice::facts(const WaitLimits& limits) {
  state_->open(limits);
  return state_->facts;
}

std::uint64_t RemoteDevice::generation() const noexcept { return state_->generation; }
pid_t RemoteDevice::process_id() const noexcept { return state_->worker.process_id(); }
int RemoteDevice::losses() const noexcept { return state_->losses; }
void RemoteDevice::kill() noexcept { state_->lose(); }

void RemoteDevice::renew_if_large() {
  const std::uint64_t most = state_->resident_at_first + state_->options.worker.memory_limit / 2;
  if (state_->generation != 0 && state_->worker.resident_bytes() > most) renew();
}

void RemoteDevice::renew() {
  if (state_->generation == 0) return;
  const int before = state_->losses;
  state_->lose();
  state_->losses = before;
}

Message RemoteDevice::run(const WorkerTask& task, const WaitLimits& limits) {
  return state_->run(task, limits);
}

void RemoteDevice::require(const RemoteBuffer& buffer) const {
  require_current("buffer", buffer.id, buffer.generation, state_->generation);
}

void RemoteDevice::require(const RemoteKernel& kernel) const {
  require_current("kernel", kernel.id, kernel.generation, state_->generation);
}

void RemoteDevice::require(const RemoteLaunch& launch) const {
  require(launch.kernel);
  for (const RemoteArgument& argument : launch.arguments) {
    if (argument.buffer.id == 0) continue;
    require(argument.buffer);
    require_part(argument.buffer, argument.offset, 0);
  }
}

// -------------------------------------------------------------------------------------- memory

RemoteBuffer RemoteDevice::allocate(std::uint64_t bytes, std::uint64_t guard_bytes,
                                    const WaitLimits& limits) {
  const Message reply = state_->run("device.allocate", "allocating memory in a worker",
                                    numbers(bytes, guard_bytes), limits);
  const std::uint64_t id = reader_of(reply).u64();
  state_->buffers.insert(id);
  return {id, state_->generation, bytes};
}

void RemoteDevice::release(const RemoteBuffer& buffer, const WaitLimits& limits) {
  if (buffer.id == 0 || buffer.generation != state_->generation) return;
  state_->run("device.release", "freeing memory in a worker", numbers(buffer.id), limits);
  state_->buffers.erase(buffer.id);
}

std::optional<GuardDamage> RemoteDevice::check_guards(const RemoteBuffer& buffer,
                                                      const WaitLimits& limits) {
  require(buffer);
  const Message reply = state_->run("device.check_guards", "looking at guard bands in a worker",
                                    numbers(buffer.id), limits);
  if (reply.bytes.empty()) return std::nullopt;
  ByteReader in = reader_of(reply);
  GuardDamage damage;
  damage.offset = in.i64();
  damage.expected = in.u8();
  damage.found = in.u8();
  return damage;
}

void RemoteDevice::write(const RemoteBuffer& to, std::span<const std::byte> from,
                         std::uint64_t offset, const WaitLimits& limits) {
  require(to);
  require_part(to, offset, from.size());
  for (std::size_t done = 0; done < from.size();) {
    const std::size_t part = std::min(from.size() - done, kSharedBytes);
    std::memcpy(state_->bytes().data(), from.data() + done, part);
    state_->run("device.write", "copying to a worker's device", numbers(to.id, offset + done, part),
                limits);
    done += part;
  }
}

void RemoteDevice::read(const RemoteBuffer& from, std::span<std::byte> to, std::uint64_t offset,
                        const WaitLimits& limits) {
  require(from);
  require_part(from, offset, to.size());
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t part = std::min(to.size() - done, kSharedBytes);
    state_->run("device.read", "copying from a worker's device",
                numbers(from.id, offset + done, part), limits);
    std::memcpy(to.data() + done, state_->bytes().data(), part);
    done += part;
  }
}

void RemoteDevice::fill(const RemoteBuffer& to, std::byte value, const WaitLimits& limits) {
  require(to);
  ByteWriter request;
  request.u64(to.id);
  request.u8(static_cast<std::uint8_t>(value));
  state_->run("device.fill", "filling memory in a worker", request.data(), limits);
}

void RemoteDevice::fill_random(const RemoteBuffer& to, std::uint64_t seed,
                               const WaitLimits& limits) {
  require(to);
  state_->run("device.fill_random", "filling memory in a worker", numbers(to.id, seed), limits);
}

void RemoteDevice::set_read_only(const RemoteBuffer& buffer, bool is_read_only,
                                 const WaitLimits& limits) {
  require(buffer);
  if (buffer.bytes == 0) return;
  state_->run("device.set_read_only", "protecting memory in a worker",
              numbers(buffer.id, std::uint64_t{is_read_only}), limits);
}

void RemoteDevice::copy(const RemoteBuffer& to, const RemoteBuffer& from,
                        const WaitLimits& limits) {
  require(to);
  require(from);
  state_->run("device.copy", "copying on a worker's device", numbers(to.id, from.id), limits);
}

// ------------------------------------------------------------------------- kernels and launches

RemoteKernel RemoteDevice::load(const ObjectCode& code, const std::string& name,
                                const WaitLimits& limits, const SourceOrigin& origin) {
  ByteWriter request;
  const std::string bytes = code.serialize();
  request.blob(std::as_bytes(std::span(bytes)));
  request.text(name);
  request.text(origin.file);
  request.i32(origin.first_line);
  const std::string subject = format("loading {} in a worker", name);
  const Message reply = state_->run({"device.load", subject, request.data()}, limits);
  ByteReader in = reader_of(reply);
  RemoteKernel kernel{in.u64(), state_->generation, {}};
  state_->kernels.insert(kernel.id);
  KernelAttributes& facts = kernel.attributes;
  for (int* value :
       {&facts.registers, &facts.shared_bytes, &facts.local_bytes, &facts.constant_bytes,
        &facts.max_threads_per_block, &facts.ptx_version, &facts.binary_version}) {
    *value = in.i32();
  }
  return kernel;
}

void RemoteDevice::write_symbol(const RemoteKernel& kernel, const std::string& lowered,
                                std::span<const std::byte> bytes, const WaitLimits& limits) {
  require(kernel);
  ByteWriter request;
  request.u64(kernel.id);
  request.text(lowered);
  request.blob(bytes);
  state_->run("device.write_symbol", "filling a variable in a worker", request.data(), limits);
}

void RemoteDevice::unload(const RemoteKernel& kernel, const WaitLimits& limits) {
  if (kernel.id == 0 || kernel.generation != state_->generation) return;
  state_->run("device.unload", "unloading a kernel in a worker", numbers(kernel.id), limits);
  state_->kernels.erase(kernel.id);
}

void RemoteDevice::launch(const RemoteLaunch& launch, const WaitLimits& limits) {
  require(launch);
  ByteWriter request;
  kernwright::write(request, launch);
  state_->run("device.launch", "a launch in a worker", request.data(), limits);
}

// ---------------------------------------------------------------------------------------- checks

void RemoteDevice::begin_checks(const CheckOptions& options, const WaitLimits& limits) {
  ByteWriter request;
  kernwright::write(request, options);
  state_->run("device.begin_checks", "beginning checks in a worker", request.data(), limits);
}

CheckReport RemoteDevice::end_checks(const WaitLimits& limits) {
  const Message reply = state_->run("device.end_checks", "ending checks in a worker", {}, limits);
  ByteReader in = reader_of(reply);
  return read_check_report(in);
}

CheckReport RemoteDevice::check(const RemoteLaunch& launch, const CheckOptions& options,
                                const WaitLimits& limits) {
  require(launch);
  ByteWriter request;
  kernwright::write(request, options);
  kernwright::write(request, launch);
  const Message reply =
      state_->run("device.check", "a checked launch in a worker", request.data(), limits);
  ByteReader in = reader_of(reply);
  return read_check_report(in);
}

}  // namespace kernwright
