// Each task reads its request, works on the process's DeviceState, and waits for the end of that.
#include "worker/device/device_tasks.h"

#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "jit/object_code.h"
#include "memory/transfer.h"
#include "worker/device/device_facts.h"
#include "worker/device/device_state.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

using Bytes = std::vector<std::byte>;
using Files = std::vector<FileHandle>;

/// For rows that take no files.
template <Bytes (*task)(ByteReader&, DeviceState&)>
Bytes on_device(ByteReader& in, Files&) {
  return task(in, DeviceState::get());
}

Bytes open(ByteReader&, Files& files) {
  if (files.size() != 1) throw InvalidArgument("a device is opened with one shared memory");
  DeviceState& state = DeviceState::get();
  state.share(SharedMemory::open(std::move(files[0])));
  files.clear();
  ByteWriter out;
  write(out, facts_of(state.device()));
  return out.take();
}

Bytes allocate(ByteReader& in, DeviceState& state) {
  const std::uint64_t bytes = in.u64();
  ByteWriter out;
  out.u64(state.allocate(bytes, in.u64()));
  return out.take();
}

Bytes release(ByteReader& in, DeviceState& state) {
  state.release(in.u64());
  return {};
}

Bytes check_guards(ByteReader& in, DeviceState& state) {
  const auto damage = state.guard_damage(in.u64());
  if (!damage) return {};
  ByteWriter out;
  out.i64(damage->offset);
  out.u8(damage->expected);
  out.u8(damage->found);
  return out.take();
}

/// A part of a buffer, checked against its end.
struct Part {
  CUdeviceptr address;
  std::uint64_t bytes;
};

Part read_part(ByteReader& in, DeviceState& state) {
  const GuardedBuffer& buffer = state.buffer(in.u64());
  const std::uint64_t offset = in.u64(), bytes = in.u64();
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) {
    throw InvalidArgument(
        format("{} bytes from {} on of a buffer of {}", bytes, offset, buffer.bytes));
  }
  return {buffer.address() + offset, bytes};
}

Bytes write_memory(ByteReader& in, DeviceState& state) {
  const Part to = read_part(in, state);
  copy_to_device(state.device(), to.address, state.shared(to.bytes).data(), to.bytes);
  return {};
}

Bytes read_memory(ByteReader& in, DeviceState& state) {
  const Part from = read_part(in, state);
  copy_to_host(state.device(), state.shared(from.bytes).data(), from.address, from.bytes);
  return {};
}

Bytes fill_memory(ByteReader& in, DeviceState& state) {
  const GuardedBuffer& to = state.buffer(in.u64());
  fill(state.device(), to.address(), in.u8(), 1, to.bytes);
  return {};
}

Bytes fill_random(ByteReader& in, DeviceState& state) {
  const GuardedBuffer& to = state.buffer(in.u64());
  state.write_random(to.address(), to.bytes, in.u64());
  return {};
}

Bytes set_read_only(ByteReader& in, DeviceState& state) {
  const std::uint64_t id = in.u64();
  state.set_read_only(id, in.u64() != 0);
  return {};
}

Bytes copy_memory(ByteReader& in, DeviceState& state) {
  const GuardedBuffer& to = state.buffer(in.u64());
  const GuardedBuffer& from = state.buffer(in.u64());
  if (to.bytes != from.bytes) {
    throw InvalidArgument(
        format("a copy from {} bytes to {}: the sizes must be equal", from.bytes, to.bytes));
  }
  copy_on_device(state.device(), to.address(), from.address(), to.bytes);
  return {};
}

Bytes load(ByteReader& in, DeviceState& state) {
  const auto bytes = in.blob();
  const ObjectCode code =
      ObjectCode::deserialize({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::string name = read_text(in);
  SourceOrigin origin;
  origin.file = read_text(in);
  origin.first_line = in.i32();
  const Kernel kernel(
      Module::load(state.device(), code.code, code.resource_cubin, std::move(origin)),
      code.kernel(name));
  ByteWriter out;
  out.u64(state.load(kernel));
  const KernelAttributes& facts = kernel.attributes();
  for (const int value :
       {facts.registers, facts.shared_bytes, facts.local_bytes, facts.constant_bytes,
        facts.max_threads_per_block, facts.ptx_version, facts.binary_version}) {
    out.i32(value);
  }
  return out.take();
}

Bytes write_symbol(ByteReader& in, DeviceState& state) {
  const Module& module = state.kernel(in.u64()).module();
  const std::string name = read_text(in);
  const auto bytes = in.blob();
  const ModuleSymbol symbol = module.symbol(name);
  if (bytes.size() > symbol.size)
    throw InvalidArgument(format("{} bytes for {}, which has {}", bytes.size(), name, symbol.size));
  copy_to_device(state.device(), symbol.address, bytes.data(), bytes.size());
  return {};
}

Bytes unload(ByteReader& in, DeviceState& state) {
  state.unload(in.u64());
  return {};
}

void launch_and_wait(const RemoteLaunch& launch, DeviceState& state) {
  state.resolve(launch)->start();
  state.stream().synchronize();
}

Bytes launch(ByteReader& in, DeviceState& state) {
  launch_and_wait(read_remote_launch(in), state);
  return {};
}

Bytes begin_checks(ByteReader& in, DeviceState& state) {
  state.begin_checks(read_check_options(in));
  return {};
}

Bytes end_checks(ByteReader&, DeviceState& state) {
  ByteWriter out;
  write(out, state.end_checks());
  return out.take();
}

Bytes check(ByteReader& in, DeviceState& state) {
  const CheckOptions options = read_check_options(in);
  const RemoteLaunch launch = read_remote_launch(in);
  state.begin_checks(options);
  try {
    launch_and_wait(launch, state);
  } catch (const DeviceFault&) {  // among the findings
  } catch (const Timeout&) {      // so is the simulated device's own limit
  } catch (...) {
    static_cast<void>(state.end_checks());
    throw;
  }
  ByteWriter out;
  write(out, state.end_checks());
  return out.take();
}

}  // namespace

const TaskTable& device_tasks() {
  static const TaskTable& table = *new TaskTable{
      {"device.open", open},
      {"device.allocate", on_device<allocate>},
      {"device.release", on_device<release>},
      {"device.check_guards", on_device<check_guards>},
      {"device.write", on_device<write_memory>},
      {"device.read", on_device<read_memory>},
      {"device.fill", on_device<fill_memory>},
      {"device.fill_random", on_device<fill_random>},
      {"device.copy", on_device<copy_memory>},
      {"device.set_read_only", on_device<set_read_only>},
      {"device.load", on_device<load>},
      {"device.write_symbol", on_device<write_symbol>},
      {"device.unload", on_device<unload>},
      {"device.launch", on_device<launch>},
      {"device.begin_checks", on_device<begin_checks>},
      {"device.end_checks", on_device<end_checks>},
      {"device.check", on_device<check>},
  };
  return table;
}

}  // namespace kernwright
