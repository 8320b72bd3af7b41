// A worker's tasks end with their result or a typed error, and the next one finds a process.
#include "worker/worker.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/log_sink.h"
#include "tests/unit/worker/worker_fixture.h"

using namespace kernwright;
using namespace worker_test;

TEST_CASE("worker: a task's result comes back, whatever its size") {
  Worker worker(test_program());
  CHECK(worker.process_id() == -1);
  for (const std::size_t size : {0UL, 1UL, 4095UL, 70'000UL, 100'000'003UL}) {
    std::vector<std::byte> sent(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 7);
    const Message reply = worker.run({"ping", "a ping", sent});
    CHECK((reply.bytes == sent));
  }
  CHECK(worker.starts() == 1);
}

TEST_CASE("worker: one that crashes or leaves is named, and the next task gets another") {
  Worker worker(test_program());
  CHECK_THROWS_WITH_AS(worker.run({"crash", "the crash test", {}}),
                       "the worker ended during the crash test: signal 11 (Segmentation fault)",
                       WorkerLost);
  const auto three = number(3);
  CHECK_THROWS_WITH_AS(worker.run({"leave", "the leave test", three}),
                       "the worker ended during the leave test: exit code 3", WorkerLost);
  CHECK(worker.run({"ping", "a ping", three}).bytes == three);
  CHECK(worker.starts() == 3);
}

TEST_CASE("worker: a deadline and a stop flag end a task and its process") {
  Worker worker(test_program());
  worker.start();
  const pid_t first = worker.process_id();
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(worker.run({"hang", "a hang", {}}, for_ms(100)), Timeout);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  CHECK(worker.process_id() == -1);
  CHECK(is_gone(first));
  WaitLimits stopped;
  stopped.stop = std::make_shared<std::atomic<bool>>(true);
  CHECK_THROWS_AS(worker.run({"hang", "a hang", {}}, stopped), Cancelled);
  CHECK(worker.run({"ping", "a ping", {}}).bytes.empty());
}

TEST_CASE("worker: one that takes more memory than it may is killed") {
  WorkerOptions options = test_program();
  options.memory_limit = std::uint64_t{200} << 20;
  Worker worker(options);
  ByteWriter request;
  request.u64(std::uint64_t{400} << 20);
  CHECK_THROWS_WITH_AS(worker.run({"eat", "a meal", request.data()}),
                       doctest::Contains("above its limit of 209715200"), WorkerLost);
  CHECK(worker.run({"ping", "a ping", {}}).bytes.empty());
}

TEST_CASE("worker: exceptions arrive with their type and fields") {
  Worker worker(test_program());
  const auto fail = [&](int which) {
    const auto request = number(which);
    worker.run({"fail", "a failure", request});
  };
  CHECK_THROWS_WITH_AS(fail(0), "plain", Error);
  CHECK_THROWS_WITH_AS(fail(1), "invalid", InvalidArgument);
  CHECK_THROWS_WITH_AS(fail(8), "foreign", Error);
  CHECK_THROWS_WITH_AS(fail(9), "a task of a worker threw no std::exception", Error);
  CHECK_THROWS_WITH_AS(fail(10), "name", NameNotFound);
  CHECK_THROWS_WITH_AS(fail(11), "time", Timeout);
  CHECK_THROWS_WITH_AS(fail(12), "grid", LaunchConfigError);
  try {
    fail(2);
    FAIL("no exception");
  } catch (const DeviceLost& e) {
    CHECK((e.code == 700 && e.name == "CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  try {
    fail(4);
    FAIL("no exception");
  } catch (const OutOfMemory& e) {
    CHECK((e.requested == 1 && e.used == 2 && e.reserved == 3 && e.free == 4));
  }
  try {
    fail(5);
    FAIL("no exception");
  } catch (const DeviceFault& e) {
    CHECK(e.report.kind == FaultKind::race);
    CHECK(e.report.line == 7);
    CHECK((e.report.block == std::array<unsigned, 3>{1, 2, 3}));
    CHECK(e.report.address == 0x7f0000000010);
    REQUIRE(e.report.places.size() == 1);
    CHECK(e.report.places[0].to_string() ==
          FaultPlace{"warp 2", "b.cu", 3, 2, 1, "ld.global"}.to_string());
    CHECK(e.report.details == "more");
  }
  try {
    fail(6);
    FAIL("no exception");
  } catch (const CompileError& e) {
    REQUIRE(e.diagnostics.size() == 1);
    CHECK(e.diagnostics[0].to_string() ==
          Diagnostic{Severity::warning, "odd", "k.cu", 3, 4, "x\n^", "do not"}.to_string());
    CHECK((e.log == "the log" && e.source == "the text"));
    CHECK((e.options == std::vector<std::string>{"-a", "-b"}));
  }
  CHECK_THROWS_AS(fail(3), DriverError);
  CHECK_THROWS_AS(fail(7), UnsupportedInstruction);
  CHECK(worker.starts() == 1);
}

TEST_CASE("worker: files travel both ways") {
  Worker worker(test_program());
  const int file = ::memfd_create("request", MFD_CLOEXEC);
  const std::array<int, 1> files{file};
  const Message reply = worker.run({"write files", "a write", {}, files});
  std::array<char, 4> text{};
  REQUIRE(::pread(file, text.data(), 4, 0) == 4);
  CHECK(std::memcmp(text.data(), "seen", 4) == 0);
  REQUIRE(reply.files.size() == 1);
  REQUIRE(::pread(reply.files[0].get(), text.data(), 4, 0) == 4);
  CHECK(std::memcmp(text.data(), "made", 4) == 0);
  ::close(file);
}

TEST_CASE("worker: what cannot be started, an unknown task, too much at once") {
  Worker missing({.command = {"/nowhere/worker"}});
  CHECK_THROWS_WITH_AS(missing.run({"ping", "a ping", {}}),
                       doctest::Contains("\"/nowhere/worker\": No such file"), Error);
  Worker other({.command = {"/bin/true"}});
  CHECK_THROWS_WITH_AS(other.run({"ping", "a ping", {}}), doctest::Contains("exit code 0"),
                       WorkerLost);
  Worker worker(test_program());
  CHECK_THROWS_WITH_AS(worker.run({"sing", "a song", {}}), "workers know no task sing",
                       InvalidArgument);
}

TEST_CASE("worker: the environment is the caller's with changes") {
  WorkerOptions options{.command = {"/bin/sh", "-c", "exit $((${KW_TEST_EXIT:-1}))"},
                        .environment = {"KW_TEST_EXIT=17"}};
  Worker worker(options);
  CHECK_THROWS_WITH_AS(worker.run({"ping", "a ping", {}}), doctest::Contains("exit code 17"),
                       WorkerLost);
}

TEST_CASE("worker: it has 2 connections to a GPU unless the options say otherwise") {
  for (const std::string given : {"", "5"}) {
    WorkerOptions options{.command = {"/bin/sh", "-c", "exit $CUDA_DEVICE_MAX_CONNECTIONS"}};
    if (!given.empty()) options.environment = {"CUDA_DEVICE_MAX_CONNECTIONS=" + given};
    Worker worker(options);
    CHECK_THROWS_WITH_AS(worker.run({"ping", "a ping", {}}),
                         doctest::Contains(given.empty() ? "exit code 2" : "exit code 5"),
                         WorkerLost);
  }
}

TEST_CASE("worker: what it logs is logged here, up to the level of here") {
  Worker worker(test_program());
  std::vector<std::string> lines;
  const LogLevel before = log_level();
  set_log_sink([&](LogLevel level, std::string_view text) {
    lines.push_back(std::string(log_level_name(level)) + ": " + std::string(text));
  });
  const auto good = number(0), bad = number(1);
  set_log_level(LogLevel::info);
  worker.run({"say", "a word", good});
  CHECK((lines == std::vector<std::string>{"error: a line of error", "info: a line of info"}));
  lines.clear();
  set_log_level(LogLevel::debug);
  CHECK_THROWS_WITH_AS(worker.run({"say", "a word", bad}), "said and failed", InvalidArgument);
  CHECK(lines.size() == 3);
  set_log_level(before);
  set_log_sink({});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("worker: a task has 64 MiB of stack, and one that takes more is named") {
  Worker worker(test_program());
  const auto deep = number(10'000), endless = number(1'000'000'000);
  CHECK(worker.run({"descend", "a descent", deep}).bytes.size() == 1);
  CHECK_THROWS_WITH_AS(worker.run({"descend", "the descent", endless}),
                       "the descent ran out of stack in a worker", WorkerOverflow);
  CHECK(worker.run({"ping", "a ping", deep}).bytes == deep);
}
#endif

TEST_CASE("worker: a task that nobody waits for is done before the next") {
  Worker worker(test_program());
  const auto one = number(1), two = number(2);
  CHECK_FALSE(worker.has_answered());
  worker.post({"ping", "a ping", one});
  worker.post({"fail", "a failure", one});
  CHECK(worker.process_id() >= 0);
  CHECK(worker.run({"ping", "a ping", two}).bytes == two);
  CHECK(worker.has_answered());
  worker.post({"crash", "a crash", {}});
  CHECK_THROWS_AS(worker.run({"ping", "a ping", two}), WorkerLost);
  CHECK_FALSE(worker.has_answered());
  CHECK(worker.run({"ping", "a ping", two}).bytes == two);
}

TEST_CASE("worker: in this process nothing is started, and nothing done that nobody waits for") {
  Worker worker({.in_process = &worker_tasks()});
  const auto one = number(1);
  worker.start();
  worker.post({"ping", "a ping", one});
  CHECK_FALSE(worker.has_process());
  CHECK(worker.process_id() == ::getpid());
  CHECK(worker.run({"ping", "a ping", one}).bytes == one);
  worker.kill();
  CHECK(worker.starts() == 0);
}

TEST_CASE("worker: its folder for temporary files goes away with it") {
  std::string folder;
  {
    Worker worker(test_program());
    const Message reply = worker.run({"temporary folder", "a question", {}});
    folder = ByteReader(reply.bytes, "a folder").text(4096);
    REQUIRE(std::filesystem::is_directory(folder));
    std::ofstream(folder + "/file") << "text";
    CHECK_THROWS_AS(worker.run({"crash", "a crash", {}}), WorkerLost);
    CHECK_FALSE(std::filesystem::exists(folder));
    const Message other = worker.run({"temporary folder", "a question", {}});
    folder = ByteReader(other.bytes, "a folder").text(4096);
    CHECK(std::filesystem::exists(folder));
  }
  CHECK_FALSE(std::filesystem::exists(folder));
}

namespace {

/// Starts a worker that hangs in a process of its own, which then does `rest` and waits; returns
/// both process ids.
template <typename Rest>
std::array<pid_t, 2> start_in_another_process(const Rest& rest) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Worker worker(test_program());
    worker.run({"ping", "a ping", {}});
    const pid_t id = worker.process_id();
    std::thread([&] {
      try {
        worker.run({"hang", "a hang", {}});
      } catch (...) {}
    }).detach();
    rest();
    if (::write(pipe[1], &id, sizeof id) != sizeof id) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t worker = -1;
  REQUIRE(::read(pipe[0], &worker, sizeof worker) == sizeof worker);
  ::close(pipe[0]);
  ::close(pipe[1]);
  return {parent, worker};
}

}  // namespace

TEST_CASE("worker: it ends with its parent, also in the middle of a task") {
  const auto [parent, worker] = start_in_another_process([] {});
  CHECK(::kill(worker, 0) == 0);
  kill_and_wait(parent);
  CHECK(is_gone(worker));
}

TEST_CASE("worker: a forked child of the parent keeps no worker alive") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const auto [parent, worker] = start_in_another_process([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::sleep(20);
      ::_exit(0);
    }
    if (::write(pipe[1], &child, sizeof child) != sizeof child) ::_exit(1);
  });
  pid_t child = -1;
  REQUIRE(::read(pipe[0], &child, sizeof child) == sizeof child);
  kill_and_wait(parent);
  CHECK(is_gone(worker));
  CHECK(::kill(child, 0) == 0);
  ::kill(child, SIGKILL);
  ::close(pipe[0]);
  ::close(pipe[1]);
}
