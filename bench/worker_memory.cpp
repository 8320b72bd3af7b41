// Ways of moving bytes from one process's memory to a device of another process.
//
//     worker_memory [-o result.json] [--max-mib 1024]
//
// socket: in the message. shared: through shared memory in parts, page-locked in the worker or not.
// remote_device: as RemoteDevice does. ipc: the parent copies to its own memory on the device, and
// the worker opens this memory (GPU only). in_process: a copy without another process. Each result
// is compared with the sent bytes. This program is its own worker.
#include "base/format.h"
#include "core/runtime.h"
#include "driver/shared_library.h"
#include "memory/buffer.h"
#include "memory/transfer.h"
#include "sim/device.h"
#include "worker/child_process.h"
#include "worker/device/device_state.h"
#include "worker/device/device_tasks.h"
#include "worker/device/random_bytes.h"
#include "worker/device/remote_device.h"
#include "worker/serve.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kw = kernwright;

namespace {

using Bytes = std::vector<std::byte>;
using Files = std::vector<kw::FileHandle>;
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLargestShared = 64 * kMiB;

// ------------------------------------------------------------------------------- CUDA IPC

struct IpcHandle {
  std::array<char, 64> bytes;
};

/// Three functions used only in this comparison.
struct Ipc {
  int (*get)(IpcHandle*, kw::CUdeviceptr) = nullptr;
  int (*open)(kw::CUdeviceptr*, IpcHandle, unsigned) = nullptr;
  int (*close)(kw::CUdeviceptr) = nullptr;

  static const Ipc& functions() {
    static const Ipc ipc = [] {
      std::string error;
      kw::SharedLibrary driver = kw::SharedLibrary::open("libcuda.so.1", error);
      if (!driver) throw std::runtime_error(error);
      Ipc found;
      kw::set_function(found.get, driver.symbol("cuIpcGetMemHandle"));
      kw::set_function(found.open, driver.symbol("cuIpcOpenMemHandle_v2"));
      kw::set_function(found.close, driver.symbol("cuIpcCloseMemHandle"));
      driver.keep_open();
      return found;
    }();
    return ipc;
  }
};

void require(int result, const char* call) {
  if (result != 0) throw std::runtime_error(kw::format("{}: {}", call, result));
}

// ------------------------------------------------------------------------ the worker's side

kw::SharedMemory& bench_memory() {
  static kw::SharedMemory& memory = *new kw::SharedMemory;
  return memory;
}

Bytes socket_write(kw::ByteReader& in, Files&) {
  kw::DeviceState& state = kw::DeviceState::get();
  const std::uint64_t id = in.u64(), offset = in.u64();
  const auto bytes = in.bytes(in.remaining());
  kw::copy_to_device(state.device(), state.buffer(id).address() + offset, bytes.data(),
                     bytes.size());
  return {};
}

Bytes share(kw::ByteReader& in, Files& files) {
  kw::DeviceState& state = kw::DeviceState::get();
  bench_memory() = kw::SharedMemory::open(std::move(files[0]));
  files.clear();
  if (in.u8() != 0 && !state.device().is_simulated()) {
    const kw::ContextGuard context(state.device());
    require(state.device().driver().cuMemHostRegister(bench_memory().bytes().data(),
                                                      bench_memory().bytes().size(), 0),
            "cuMemHostRegister");
  }
  return {};
}

Bytes shared_write(kw::ByteReader& in, Files&) {
  kw::DeviceState& state = kw::DeviceState::get();
  const std::uint64_t id = in.u64(), offset = in.u64(), bytes = in.u64();
  kw::copy_to_device(state.device(), state.buffer(id).address() + offset,
                     bench_memory().bytes().data(), bytes);
  return {};
}

/// Opens the parent's memory, copies it on the device, and closes it.
Bytes ipc_write(kw::ByteReader& in, Files&) {
  kw::DeviceState& state = kw::DeviceState::get();
  const std::uint64_t id = in.u64(), bytes = in.u64();
  IpcHandle handle{};
  const auto text = in.bytes(handle.bytes.size());
  std::memcpy(handle.bytes.data(), text.data(), text.size());
  const kw::ContextGuard context(state.device());
  kw::CUdeviceptr address = 0;
  require(Ipc::functions().open(&address, handle, 1), "cuIpcOpenMemHandle");
  kw::copy_on_device(state.device(), state.buffer(id).address(), address, bytes);
  require(Ipc::functions().close(address), "cuIpcCloseMemHandle");
  return {};
}

int work() {
  kw::TaskTable tasks = kw::worker_tasks();
  tasks.insert(kw::device_tasks().begin(), kw::device_tasks().end());
  tasks.insert({{"socket_write", socket_write},
                {"share", share},
                {"shared_write", shared_write},
                {"ipc_write", ipc_write}});
  kw::serve_worker(kw::ChildProcess::kChannel, tasks);
}

// ------------------------------------------------------------------------ the parent's side

double ms_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Way {
  std::string name;
  std::function<void(const kw::RemoteBuffer&, std::span<const std::byte>)> write;
};

void run(kw::RemoteDevice& device, const char* name, const Bytes& request) {
  device.run({name, name, request});
}

Way socket_way(kw::RemoteDevice& device) {
  return {"socket", [&device](const kw::RemoteBuffer& to, std::span<const std::byte> from) {
            for (std::size_t done = 0; done < from.size(); done += kLargestShared) {
              kw::ByteWriter request;
              request.u64(to.id);
              request.u64(done);
              request.bytes(from.subspan(done, std::min(kLargestShared, from.size() - done)));
              run(device, "socket_write", request.take());
            }
          }};
}

/// `part`: bytes of one transfer.
Way shared_way(kw::RemoteDevice& device, std::shared_ptr<kw::SharedMemory> memory, bool locked,
               std::size_t part) {
  const auto write = [&device, memory, part](const kw::RemoteBuffer& to,
                                             std::span<const std::byte> from) {
    for (std::size_t done = 0; done < from.size(); done += part) {
      const std::size_t bytes = std::min(part, from.size() - done);
      std::memcpy(memory->bytes().data(), from.data() + done, bytes);
      kw::ByteWriter request;
      for (const std::uint64_t number : {to.id, std::uint64_t{done}, std::uint64_t{bytes}}) {
        request.u64(number);
      }
      run(device, "shared_write", request.take());
    }
  };
  return {kw::format("shared{}_{}MiB", locked ? "_locked" : "", part / kMiB), write};
}

Way ipc_way(kw::RemoteDevice& device, kw::Device& own, const kw::Buffer& memory) {
  return {"ipc", [&](const kw::RemoteBuffer& to, std::span<const std::byte> from) {
            kw::copy_to_device(own, memory.address(), from.data(), from.size());
            IpcHandle handle{};
            {
              const kw::ContextGuard context(own);
              require(Ipc::functions().get(&handle, memory.address()), "cuIpcGetMemHandle");
            }
            kw::ByteWriter request;
            request.u64(to.id);
            request.u64(from.size());
            request.bytes(std::as_bytes(std::span(handle.bytes)));
            run(device, "ipc_write", request.take());
          }};
}

nlohmann::json row(const std::string& name, std::size_t bytes, std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  std::fprintf(stderr, "%-20s %12zu bytes  %10.4f ms  %7.2f GB/s\n", name.c_str(), bytes, median,
               static_cast<double>(bytes) / median / 1e6);
  return {{"way", name},
          {"bytes", bytes},
          {"ms", median},
          {"min_ms", ms.front()},
          {"gb_per_s", static_cast<double>(bytes) / median / 1e6}};
}

class Comparison {
 public:
  Comparison(kw::RemoteDevice& device, std::size_t largest) : device_(device), data_(largest) {
    kw::random_bytes(1, 0, data_);
  }

  void compare(const std::vector<Way>& ways, std::size_t bytes) {
    const kw::RemoteBuffer to = device_.allocate(bytes);
    const std::span<const std::byte> from(data_.data(), bytes);
    std::vector<std::vector<double>> ms(ways.size());
    const int rounds = bytes <= kMiB ? 51 : bytes <= 128 * kMiB ? 7 : 3;
    for (int round = 0; round <= rounds; ++round) {  // round 0 is a warm-up
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const double took = ms_of([&] { ways[i].write(to, from); });
        if (round > 0) ms[i].push_back(took);
        if (round == 0) verify(ways[i], to, from);
      }
    }
    for (std::size_t i = 0; i < ways.size(); ++i) rows_.push_back(row(ways[i].name, bytes, ms[i]));
    std::vector<double> reads;
    Bytes got(bytes);
    for (int round = 0; round < rounds; ++round) {
      reads.push_back(ms_of([&] { device_.read(to, got); }));
    }
    rows_.push_back(row("remote_device read", bytes, reads));
    device_.release(to);
  }

  const nlohmann::json& rows() const { return rows_; }

 private:
  void verify(const Way& way, const kw::RemoteBuffer& to, std::span<const std::byte> from) {
    if (way.name == "in_process") return;
    Bytes got(from.size());
    device_.read(to, got);
    if (!std::equal(got.begin(), got.end(), from.begin())) {
      throw std::runtime_error(way.name + ": other bytes arrived");
    }
    device_.fill(to, std::byte{0});
  }

  kw::RemoteDevice& device_;
  Bytes data_;
  nlohmann::json rows_ = nlohmann::json::array();
};

struct Arguments {
  std::string output;
  std::size_t largest = 1024 * kMiB;
  bool is_worker = false;
};

Arguments parse(int count, char** values) {
  Arguments result;
  for (int i = 1; i < count; ++i) {
    const std::string name = values[i];
    if (name == "--worker") result.is_worker = true;
    if (name == "-o" && i + 1 < count) result.output = values[i + 1];
    if (name == "--max-mib" && i + 1 < count) result.largest = std::stoul(values[i + 1]) * kMiB;
  }
  return result;
}

std::vector<Way> shared_ways(kw::RemoteDevice& device, bool locked) {
  const auto memory = std::make_shared<kw::SharedMemory>(kw::SharedMemory::create(kLargestShared));
  kw::ByteWriter request;
  request.u8(locked ? 1 : 0);
  const std::array<int, 1> files{memory->descriptor()};
  device.run({"share", "share", request.data(), files});
  std::vector<Way> ways;
  for (const std::size_t part : {kMiB, 4 * kMiB, 16 * kMiB, kLargestShared}) {
    ways.push_back(shared_way(device, memory, locked, part));
  }
  return ways;
}

}  // namespace

int main(int count, char** values) {
  kw::Runtime::register_sim(&kw::sim::driver_api);
  const Arguments arguments = parse(count, values);
  if (arguments.is_worker) return work();
  kw::RemoteDevice device({.worker = {.command = {values[0], "--worker"}}});
  const kw::DeviceFacts facts = device.facts();
  Comparison comparison(device, arguments.largest);
  kw::Device& own = kw::Runtime::get().current_device();
  const kw::Buffer memory(std::make_shared<kw::DeviceResource>(own), arguments.largest, {});
  for (const bool locked : {false, true}) {
    std::vector<Way> ways = shared_ways(device, locked);
    if (locked) {
      const auto remote = [&](const kw::RemoteBuffer& to, std::span<const std::byte> from) {
        device.write(to, from);
      };
      const auto here = [&](const kw::RemoteBuffer&, std::span<const std::byte> from) {
        kw::copy_to_device(own, memory.address(), from.data(), from.size());
      };
      ways.push_back({"remote_device", remote});
      ways.push_back(socket_way(device));
      if (!facts.is_simulated) ways.push_back(ipc_way(device, own, memory));
      ways.push_back({"in_process", here});
    }
    for (std::size_t bytes = 1024; bytes <= arguments.largest; bytes *= 32) {
      comparison.compare(ways, bytes);
    }
  }
  const nlohmann::json result{
      {"device", facts.name}, {"driver", facts.driver_version}, {"rows", comparison.rows()}};
  const std::string text = result.dump(2);
  std::printf("%s\n", text.c_str());
  if (!arguments.output.empty()) std::ofstream(arguments.output) << text << '\n';
  return 0;
}
