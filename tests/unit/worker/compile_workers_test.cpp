// Compiles in processes keep their promises whatever the text does.
#include "worker/compile_workers.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "base/log_sink.h"
#include "jit/compile/compile_profile.h"
#include "jit/compile/compile_trace.h"
#include "jit/compile/lint.h"
#include "tests/unit/worker/compile_fixture.h"

using namespace kernwright;
using namespace worker_test;
using std::chrono::milliseconds;

namespace {

using Clock = std::chrono::steady_clock;

/// Two workers, each with that much memory.
struct Workers {
  explicit Workers(std::uint64_t memory = 0, WorkerOptions options = test_program())
      : service({2, memory}, std::move(options)) {
    set_site_packages({testing::site_packages()});
  }

  CompileResult compile(const CompileRequest& request) {
    return service.compile({request}, *service.nvrtc());
  }

  CompileWorkers service;
};

CompileError error_of(Workers& workers, const CompileRequest& request) {
  try {
    workers.compile(request);
  } catch (const CompileError& error) {
    return error;
  }
  throw Error("it compiled");
}

/// What is logged while it lives.
struct Log {
  Log() {
    set_log_sink([this](LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
  ~Log() { set_log_sink({}); }
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("compile workers: the code and the trace of a compile in this process") {
  Workers workers;
  CHECK(workers.service.nvrtc_if_known() == nullptr);
  workers.service.prepare();
  const CompileService::Facts facts = workers.service.nvrtc();
  const LoadedNvrtc& here = nvrtc();
  CHECK((facts->path == here.path && facts->builtins_path == here.builtins_path));
  CHECK((facts->stamp == here.stamp && !here.stamp.empty()));
  CHECK((facts->archs == here.archs && facts->version() == here.version()));
  CHECK(workers.service.nvrtc_if_known() == facts);
  DirectCompileService direct;
  CompileJob job{request_for("#include <cuda_fp16.h>\n__global__ void f(__half* x) { *x = 1.f; }",
                             CodeKind::cubin)};
  job.with_cuda_headers = true;
  const CompileResult there = workers.service.compile(job, *facts);
  const CompileResult expected = direct.compile(job, here);
  CHECK(there.code.code == expected.code.code);
  CHECK(there.folders == expected.folders);
  CHECK(there.note == expected.note);
  CHECK(there.code.trace->options == expected.code.trace->options);
  CHECK(there.code.trace->nvrtc_ms > 0);
  CHECK(there.code.compile_ms >= there.code.trace->nvrtc_ms);
  CHECK(there.phase_times.empty());
  job.is_measured = true;
  const CompileResult measured = workers.service.compile(job, *facts);
  CHECK_FALSE(read_phase_times(measured.phase_times).empty());
}

TEST_CASE("compile workers: relative folders count from where this process is") {
  Workers workers;
  workers.compile(request_for(kPlain));  // the worker is there, in another folder
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("kw-relative-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/near.h") << "typedef double T;\n";
  std::filesystem::current_path(folder);
  CompileRequest request = request_for("#include <near.h>\n__global__ void f(T x) {}");
  request.options.include_dirs = {"own"};
  CHECK(workers.compile(request).code.kernel("f").to_string() == "f(double x)");
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST_CASE("compile workers: a deadline, a stop flag and a signal end a bomb, and nothing is left") {
  Workers workers;
  workers.compile(request_for(kPlain));
  CompileRequest bomb = request_for(kBomb);
  bomb.options.timeout = milliseconds(200);
  auto begin = Clock::now();
  CHECK_THROWS_WITH_AS(workers.compile(bomb),
                       "compiling kernel.cu took longer than the timeout of 200 ms", Timeout);
  CHECK(Clock::now() - begin < milliseconds(300));
  bomb.options.timeout.reset();
  static std::atomic<bool> interrupted = false;
  set_interrupt_check([] { return interrupted.load(); });
  WaitLimits limits;
  limits.stop = std::make_shared<std::atomic<bool>>(false);
  for (const bool by_signal : {false, true}) {
    // A busy machine may be late once: the fastest of several ends counts.
    Clock::duration fastest = std::chrono::seconds(1);
    for (int i = 0; i < 5 && fastest >= milliseconds(100); ++i) {
      interrupted = *limits.stop = false;
      workers.compile(request_for(kPlain));
      static std::atomic<Clock::rep> when = 0;
      std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(100));
        when = Clock::now().time_since_epoch().count();
        (by_signal ? interrupted : *limits.stop) = true;
      });
      const WaitScope scope(by_signal ? WaitLimits{} : limits);
      if (by_signal) {
        CHECK_THROWS_AS(workers.compile(bomb), Interrupted);
      } else {
        CHECK_THROWS_AS(workers.compile(bomb), Cancelled);
      }
      fastest = std::min(fastest, Clock::now() - Clock::time_point(Clock::duration(when)));
      other.join();
    }
    CHECK(fastest < milliseconds(100));
  }
  interrupted = false;
  set_interrupt_check(nullptr);
  CHECK(workers.compile(request_for(kPlain)).code.kernels.size() == 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("compile workers: too deep and too large texts are errors of the text") {
  Workers workers(std::uint64_t{700} << 20);
  const auto nested = [](std::size_t depth) {
    return request_for("__global__ void k(int* x) { *x = " + std::string(depth, '(') + "1" +
                       std::string(depth, ')') + "; }");
  };
  CHECK(workers.compile(nested(5000)).code.kernels.size() == 1);
  const CompileError deep = error_of(workers, nested(100'000));
  CHECK(std::string(deep.what()).starts_with("kernel.cu nests too deep for NVRTC"));
  REQUIRE(deep.diagnostics.size() == 1);
  CHECK(deep.diagnostics[0].file == "kernel.cu");
  CHECK(workers.service.lint(nested(100'000).source, {}).size() == 1);
  CHECK(std::string(error_of(workers, request_for(kBomb)).what())
            .starts_with("compiling kernel.cu took more than 700 MiB of memory"));
  CHECK(workers.compile(request_for(kPlain)).code.kernels.size() == 1);
}

TEST_CASE("compile workers: the memory of one compile serves the next") {
  Worker worker(test_program());
  const auto page_faults = [&] {
    std::ifstream file("/proc/" + std::to_string(worker.process_id()) + "/stat");
    std::string field;
    for (int i = 0; i < 10; ++i) file >> field;
    return std::stol(field);
  };
  const CompileRequest request = request_for(kPlain, CodeKind::cubin);
  for (int i = 0; i < 3; ++i) code_from(worker, request);
  const long before = page_faults();
  for (int i = 0; i < 4; ++i) code_from(worker, request);
  // Each has 1700 of them where what a compile frees goes back to the system.
  CHECK((page_faults() - before) / 4 < 500);
}
#endif

TEST_CASE("compile workers: many threads at once, each with its own answer") {
  Workers workers;
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] {
      const std::string name = "k" + std::to_string(i);
      if (i == 3) {
        CompileRequest bomb = request_for(kBomb);
        bomb.options.timeout = milliseconds(100);
        CHECK_THROWS_AS(workers.compile(bomb), Timeout);
        return name;
      }
      return workers.compile(request_for("__global__ void " + name + "() {}"))
          .code.kernels.at(0)
          .name;
    }));
  }
  for (int i = 0; i < 8; ++i) CHECK(answers[i].get() == "k" + std::to_string(i));
}

TEST_CASE("compile workers: lint finds what lint finds, and errors keep their types") {
  Workers workers;
  const Source bad{"__global__ void f() {\n  x = 1; }", "some file.cu", 10, ""};
  const auto there = workers.service.lint(bad, {});
  const auto here = lint(nvrtc(), bad);
  REQUIRE((there.size() == 1 && here.size() == 1));
  CHECK(there[0].to_string() == here[0].to_string());
  CHECK(workers.service.lint({kPlain, "k.cu", 1, ""}, {}).empty());
  CHECK_THROWS_AS(workers.service.lint({std::string("a\0b", 3), "k.cu", 1, ""}, {}),
                  InvalidArgument);
  CHECK(error_of(workers, request_for("__global__ void f() { x; }")).diagnostics.size() == 1);
  CompileRequest unknown = request_for(kPlain);
  unknown.names = {"g"};
  CHECK_THROWS_AS(workers.compile(unknown), NameNotFound);
  unknown.names = {""};
  CHECK_THROWS_AS(workers.compile(unknown), InvalidArgument);
}

TEST_CASE("compile workers: what cannot be started is said once, and compiles go on here") {
  for (const char* program : {"/nowhere/worker", "/bin/false", "/etc/passwd"}) {
    Log log;
    Workers workers(0, {.command = {program}});
    CHECK(workers.compile(request_for(kPlain)).code.kernels.size() == 1);
    CHECK(workers.service.lint({kPlain, "k.cu", 1, ""}, {}).empty());
    CHECK(log.lines.size() == 1);
    CHECK(log.lines.at(0).find("compiled in this process") != std::string::npos);
    workers.service.prepare();
  }
}

TEST_CASE("compile workers: an NVRTC whose files were replaced is noticed") {
  Workers workers;
  NvrtcFacts other = *workers.service.nvrtc();
  other.stamp += "another";
  CHECK_THROWS_AS(workers.service.compile({request_for(kPlain)}, other), NvrtcChanged);
  DirectCompileService direct;
  CHECK_THROWS_AS(direct.compile({request_for(kPlain)}, other), NvrtcChanged);
  CHECK(workers.compile(request_for(kPlain)).code.kernels.size() == 1);
}

// ThreadSanitizer takes a thread of the child for one of the parent's.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("compile workers: a forked child has its own") {
  set_worker_command({TEST_WORKER_PROGRAM});
  use_compile_workers();
  const CompileRequest plain = request_for(kPlain);
  const auto compiles = [&] {
    CompileService& service = compile_service();
    return service.compile({plain}, *service.nvrtc()).code.kernels.size() == 1;
  };
  CHECK(compiles());
  for (int round = 0; round < 2; ++round) {
    // The second time a compile is going on meanwhile.
    WaitLimits limits;
    limits.stop = std::make_shared<std::atomic<bool>>(false);
    std::thread other;
    if (round == 1) {
      other = std::thread([&] {
        const WaitScope scope(limits);
        const CompileRequest bomb = request_for(kBomb);
        CHECK_THROWS_AS(compile_service().compile({bomb}, *compile_service().nvrtc()), Cancelled);
      });
      std::this_thread::sleep_for(milliseconds(200));
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(compiles() ? 0 : 1);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    *limits.stop = true;
    if (other.joinable()) other.join();
    CHECK(compiles());
  }
  set_compile_service(nullptr);
}
#endif

TEST_CASE("compile workers: as many as the machine has room for") {
  const CompileWorkerLimits limits = CompileWorkerLimits::of_machine();
  CHECK((limits.workers >= 1 && limits.workers <= 64));
  CHECK(limits.workers <= std::max(1u, std::thread::hardware_concurrency()));
  CHECK(limits.memory >= std::uint64_t{1} << 30);
}
