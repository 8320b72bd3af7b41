// A worker with tasks that go wrong in every way.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "core/runtime.h"
#include "sim/device.h"
#include "worker/child_process.h"
#include "worker/device/device_tasks.h"
#include "worker/serve.h"

using namespace kernwright;

namespace {

using Bytes = std::vector<std::byte>;
using Files = std::vector<FileHandle>;

Bytes crash(ByteReader&, Files&) {
  std::raise(SIGSEGV);
  return {};
}

Bytes leave(ByteReader& in, Files&) { ::_exit(in.i32()); }

Bytes hang(ByteReader&, Files&) {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

Bytes eat(ByteReader& in, Files&) {
  std::vector<char> memory(in.u64(), 1);
  std::this_thread::sleep_for(std::chrono::seconds(20));
  return {static_cast<std::byte>(memory.back())};
}

Bytes fail(ByteReader& in, Files&) {
  Fault report;
  report.kind = FaultKind::race;
  report.message = "two of them";
  report.file = "a.cu";
  report.line = 7;
  report.block = {1, 2, 3};
  report.address = 0x7f0000000010;
  report.places.push_back({"warp 2", "b.cu", 3, 2, 1, "ld.global"});
  report.details = "more";
  Diagnostic diagnostic{Severity::warning, "odd", "k.cu", 3, 4, "x\n^", "do not"};
  switch (in.i32()) {
    case 0:
      throw Error("plain");
    case 1:
      throw InvalidArgument("invalid");
    case 2:
      throw DeviceLost("lost", 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    case 3:
      throw DriverError("driver", 1, "CUDA_ERROR_INVALID_VALUE");
    case 4:
      throw OutOfMemory("memory", 1, 2, 3, 4);
    case 5:
      throw DeviceFault(report);
    case 6:
      throw CompileError("compile", {diagnostic}, "the log", "the text", {"-a", "-b"});
    case 7:
      throw UnsupportedInstruction("unsupported", "foo.bar", 12);
    case 8:
      throw std::runtime_error("foreign");
    case 9:
      throw 42;
    case 10:
      throw NameNotFound("name");
    case 11:
      throw Timeout("time");
    case 12:
      throw LaunchConfigError("grid");
    default:
      return {};
  }
}

/// Writes "seen" into each file that it gets, and returns one more.
Bytes write_files(ByteReader&, Files& files) {
  for (const FileHandle& file : files) {
    if (::write(file.get(), "seen", 4) != 4) throw Error("not written");
  }
  files.clear();
  FileHandle made(FileSystem::real(), ::memfd_create("reply", MFD_CLOEXEC));
  if (::write(made.get(), "made", 4) != 4) throw Error("not written");
  files.push_back(std::move(made));
  return {};
}

/// Logs a line at each level, then fails on request.
Bytes say(ByteReader& in, Files&) {
  for (const LogLevel level : {LogLevel::error, LogLevel::info, LogLevel::debug}) {
    log(level, "a line of {}", log_level_name(level));
  }
  if (in.i32() != 0) throw InvalidArgument("said and failed");
  return {};
}

int depth_of(volatile char* above, int depth) {
  volatile char room[4000];
  room[0] = above[0];
  return depth == 0 ? room[0] : depth_of(room, depth - 1) + room[0];
}

/// So many frames of 4 KB.
Bytes descend(ByteReader& in, Files&) {
  volatile char top = 0;
  return {static_cast<std::byte>(depth_of(&top, in.i32()))};
}

Bytes temporary_folder(ByteReader&, Files&) {
  const char* folder = std::getenv("TMPDIR");
  ByteWriter out;
  out.text(folder == nullptr ? "" : folder);
  return out.take();
}

}  // namespace

int main() {
  Runtime::register_sim(&sim::driver_api);
  TaskTable tasks = worker_tasks();
  tasks.insert(device_tasks().begin(), device_tasks().end());
  tasks.insert({{"crash", crash},
                {"leave", leave},
                {"hang", hang},
                {"eat", eat},
                {"fail", fail},
                {"write files", write_files},
                {"say", say},
                {"descend", descend},
                {"temporary folder", temporary_folder}});
  serve_worker(ChildProcess::kChannel, tasks);
}
