// The owner of one NVRTC program, over a table with planned failures.
#include "jit/compile/nvrtc_unit.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "base/errors.h"
#include "unit/jit/fake_nvrtc.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("nvrtc unit: results come back as they are") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  {
    NvrtcUnit unit(nvrtc, "text", "name.cu", {{"b.h", "2"}, {"a.h", "1"}});
    unit.add_name("k");
    CHECK(unit.compile({"-x", "-y"}, kNever));
    CHECK(unit.ptx() == ".visible .entry k(){ ret; }\n");
    CHECK(
        unit.cubin().starts_with("\x7f"
                                 "ELF"));
    CHECK(unit.lowered_name("k") == "k");
    CHECK(unit.log() == "");
  }
  const FakeNvrtc& fake = FakeNvrtc::get();
  CHECK(fake.source == "text");
  CHECK(fake.name == "name.cu");
  CHECK(fake.headers == std::vector<std::string>{"a.h", "b.h"});
  CHECK(fake.options == std::vector<std::string>{"-x", "-y"});
  CHECK(fake.created == 1);
  CHECK(fake.destroyed == 1);
}

TEST_CASE("nvrtc unit: every failure is typed and leaves no program behind") {
  const struct {
    nvrtcResult result;
    const char* text;
  } rows[] = {{NVRTC_ERROR_OUT_OF_MEMORY, "failed with 1"},
              {NVRTC_ERROR_INVALID_OPTION, "refuses an option"},
              {NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, "libnvrtc-builtins.so.13.1"},
              {NVRTC_ERROR_INTERNAL_ERROR, "/fake/libnvrtc.so.13"},
              {NVRTC_ERROR_CANCELLED, "stopped"}};
  for (const auto& row : rows) {
    const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
    FakeNvrtc::get().compile_result = row.result;
    const auto error = thrown_by<Error>([&] {
      NvrtcUnit unit(nvrtc, "text", "name.cu", {});
      unit.compile({}, kNever);
    });
    CHECK(contains(error.what(), row.text));
    CHECK(FakeNvrtc::get().created == FakeNvrtc::get().destroyed);
  }
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().compile_result = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  NvrtcUnit unit(nvrtc, "text", "name.cu", {});
  CHECK_THROWS_AS(unit.compile({}, kNever), NvrtcNotFound);
  FakeNvrtc::get().compile_result = NVRTC_ERROR_INVALID_OPTION;
  CHECK_THROWS_AS(unit.compile({}, kNever), InvalidArgument);
  FakeNvrtc::get().compile_result = NVRTC_ERROR_COMPILATION;
  CHECK_FALSE(unit.compile({}, kNever));
}

TEST_CASE("nvrtc unit: a refused value is told with its option and the version") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().compile_result = NVRTC_ERROR_INVALID_OPTION;
  FakeNvrtc::get().log = "nvrtc: error: invalid value for --std(-std)\n";
  NvrtcUnit unit(nvrtc, "text", "name.cu", {});
  const auto error = thrown_by<InvalidArgument>([&] {
    unit.compile({"-lineinfo", "--std=c++26"}, kNever);
  });
  CHECK(contains(error.what(), "NVRTC 13.1 refuses an option (--std=c++26; another release"));
}

TEST_CASE("nvrtc unit: a program that cannot be made is an error and is not destroyed") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().create_result = NVRTC_ERROR_OUT_OF_MEMORY;
  CHECK_THROWS_AS(NvrtcUnit(nvrtc, "text", "name.cu", {}), Error);
  CHECK(FakeNvrtc::get().destroyed == 0);
}

TEST_CASE("nvrtc unit: a huge log is cut with a note") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().log.assign(3 << 20, 'x');
  NvrtcUnit unit(nvrtc, "text", "name.cu", {});
  const std::string log = unit.log();
  CHECK(log.size() < (1 << 20) + 100);
  CHECK(contains(log, "3145728 bytes"));
}

TEST_CASE("nvrtc unit: the deadline stops a compile, and the next one does not begin") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().compile_time = std::chrono::seconds(20);
  const CompileDeadline deadline(WaitLimits{}.within(std::chrono::milliseconds(30)), "making it");
  const auto begin = std::chrono::steady_clock::now();
  const auto error =
      thrown_by<Timeout>([&] { NvrtcUnit(nvrtc, "text", "name.cu", {}).compile({}, deadline); });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(contains(error.what(), "making it took longer than the timeout of 30 ms"));
  CHECK(deadline.expired());
  CHECK_THROWS_AS(NvrtcUnit(nvrtc, "text", "name.cu", {}).compile({}, deadline), Timeout);
  CHECK(FakeNvrtc::get().compiled == 1);
  CHECK(FakeNvrtc::get().created == FakeNvrtc::get().destroyed);
}

TEST_CASE("nvrtc unit: a stop flag and a signal stop it too, each with its own error") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().compile_time = std::chrono::seconds(20);
  static std::atomic<bool> interrupted = false;
  set_interrupt_check([] { return interrupted.load(); });
  WaitLimits limits;
  limits.stop = std::make_shared<std::atomic<bool>>(false);
  for (const bool by_signal : {false, true}) {
    const CompileDeadline deadline(by_signal ? WaitLimits{} : limits, "making it");
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      (by_signal ? interrupted : *limits.stop) = true;
    });
    NvrtcUnit unit(nvrtc, "text", "name.cu", {});
    if (by_signal) {
      CHECK_THROWS_AS(unit.compile({}, deadline), Interrupted);
    } else {
      CHECK_THROWS_AS(unit.compile({}, deadline), Cancelled);
    }
    other.join();
  }
  set_interrupt_check(nullptr);
}

TEST_CASE("nvrtc unit: an NVRTC that cannot be stopped runs to its end") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().can_cancel = false;
  FakeNvrtc::get().compile_time = std::chrono::milliseconds(300);
  const CompileDeadline deadline(WaitLimits{}.within(std::chrono::milliseconds(150)), "making it");
  NvrtcUnit unit(nvrtc, "text", "name.cu", {});
  CHECK(unit.compile({}, deadline));
}

TEST_CASE("nvrtc unit: a deadline that is not set never expires") {
  CHECK_FALSE(kNever.expired());
  CHECK_FALSE(CompileDeadline(WaitLimits{}.within(std::chrono::hours(1)), "it").expired());
}
