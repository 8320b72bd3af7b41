// Each NVRTC call of a compile fails: a typed error, no program left behind, nothing remembered,
// and the next compile works.
#include "base/errors.h"
#include "driver/fault_nvrtc.h"
#include "jit/cache/code_cache.h"
#include "jit/compile/compiler.h"
#include "unit/jit/jit_fixture.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kText =
    "template <typename T> __global__ void add(T* x, int n) { x[threadIdx.x] += T(n); }\n"
    "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n";

/// The newest NVRTC found, with calls failing by plan.
struct FaultyNvrtc {
  FaultyNvrtc() { library.api = faults.api(); }
  FaultNvrtc faults{newest_nvrtc().api};
  LoadedNvrtc library = newest_nvrtc();
};

FaultPlan plan(std::uint64_t call, nvrtcResult result, FaultPlan::Repeat repeat,
               FaultPlan::Moment moment) {
  FaultPlan made;
  made.call = call;
  made.result = result;
  made.repeat = repeat;
  made.moment = moment;
  return made;
}

/// Whether a compile may succeed although the function failed: it is asked for extras alone.
bool may_pass(const std::string& function) {
  static const std::set<std::string> extras = {
      "nvrtcDestroyProgram",   // the program is left to NVRTC
      "nvrtcSetFlowCallback",  // such a compile cannot be cancelled
      "nvrtcGetPCHCreateStatus",   "nvrtcGetPCHHeapSize", "nvrtcSetPCHHeapSize",
      "nvrtcGetProgramLogSize",    "nvrtcGetProgramLog",  "nvrtcGetBundledHeadersInfo",
      "nvrtcInstallBundledHeaders"};
  return extras.contains(function);
}

/// Fails call 1, 2, ... of `compile` until a run meets no fault.
void fail_each_call(FaultyNvrtc& nvrtc, nvrtcResult result, FaultPlan::Repeat repeat,
                    FaultPlan::Moment moment, const std::function<void()>& compile) {
  for (std::uint64_t call = 1; call < 200; ++call) {
    CAPTURE(call);
    CAPTURE(static_cast<int>(result));
    const std::int64_t programs = nvrtc.faults.live_programs();
    nvrtc.faults.arm(plan(call, result, repeat, moment));
    std::string message;
    bool typed = false;
    try {
      compile();
    } catch (const Error& error) {
      message = error.what();
      typed = true;
    } catch (const std::exception& error) {
      message = error.what();
    }
    const std::uint64_t fired = nvrtc.faults.fired();
    const std::string function = nvrtc.faults.last_function();
    nvrtc.faults.disarm();
    CAPTURE(function);
    CAPTURE(message);
    if (fired == 0) {
      CHECK(message == "");
      return;
    }
    CHECK((typed || message.empty()));
    CHECK((typed || may_pass(function)));
    if (typed) CHECK(message.size() > 20);
    // A program with a wrongly reported creation or end may be left over.
    const bool may_leave = function == "nvrtcDestroyProgram" ||
                           (function == "nvrtcCreateProgram" && moment == FaultPlan::Moment::after);
    if (!may_leave) CHECK(nvrtc.faults.live_programs() == programs);
    const std::int64_t before = nvrtc.faults.live_programs();
    CHECK_NOTHROW(compile());
    CHECK(nvrtc.faults.live_programs() == before);
  }
}

}  // namespace

TEST_CASE("compile faults: each NVRTC call fails once, for ever, and after it took place") {
  FaultyNvrtc nvrtc;
  for (const CodeKind kind : {CodeKind::ptx, CodeKind::cubin}) {
    const auto compile = [&] {
      const ObjectCode code =
          Compiler(nvrtc.library).compile(request_for(kText, {"add<float>"}, kind));
      if (code.kernels.empty() || code.code.empty()) throw std::logic_error("wrong code");
    };
    compile();
    for (const nvrtcResult result :
         {NVRTC_ERROR_OUT_OF_MEMORY, NVRTC_ERROR_INTERNAL_ERROR, NVRTC_ERROR_BUSY}) {
      fail_each_call(nvrtc, result, FaultPlan::Repeat::once, FaultPlan::Moment::before, compile);
    }
    fail_each_call(nvrtc, NVRTC_ERROR_OUT_OF_MEMORY, FaultPlan::Repeat::once,
                   FaultPlan::Moment::after, compile);
    fail_each_call(nvrtc, NVRTC_ERROR_INTERNAL_ERROR, FaultPlan::Repeat::forever,
                   FaultPlan::Moment::before, compile);
  }
  const std::set<std::string> failed = nvrtc.faults.failed_functions();
  for (const char* name : {"nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram",
                           "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcAddNameExpression",
                           "nvrtcGetLoweredName", "nvrtcGetPTXSize", "nvrtcGetPTX",
                           "nvrtcGetCUBINSize", "nvrtcGetCUBIN"}) {
    CAPTURE(name);
    CHECK(failed.contains(name));
  }
}

TEST_CASE("compile faults: a cache remembers no failure, and what it remembers needs no NVRTC") {
  FaultyNvrtc nvrtc;
  DirectCompileService service([&]() -> const LoadedNvrtc& { return nvrtc.library; },
                               [&] { return &nvrtc.library; });
  const auto new_cache = [&] {
    CodeCache::Options options;
    options.mode = CacheMode::memory;
    options.compiler.service = [&]() -> CompileService& { return service; };
    return std::make_unique<CodeCache>(std::move(options));
  };
  Source source;
  source.text = kText;
  TargetRequest target;
  target.kind = CodeKind::ptx;
  target.arch = "compute_80";
  const ProgramOptions options;
  const ScannedSource declared = scan_source(source.text);
  const ProgramFields fields = program_fields(source, options);
  const CodeRequest request{source, options, declared, fields, target};
  for (std::uint64_t call = 1; call < 200; ++call) {
    CAPTURE(call);
    const auto cache = new_cache();
    nvrtc.faults.arm(
        plan(call, NVRTC_ERROR_INTERNAL_ERROR, FaultPlan::Repeat::once, FaultPlan::Moment::before));
    bool failed = false;
    try {
      cache->get(request);
    } catch (const Error&) {
      failed = true;
    }
    const bool fired = nvrtc.faults.fired() != 0;
    nvrtc.faults.disarm();
    if (!fired) {
      CHECK_FALSE(failed);
      break;
    }
    CHECK(cache->stats().compiles == (failed ? 0 : 1));
    CHECK(cache->get(request).code->kernels.size() == 1);
    CHECK(cache->stats().compiles == 1);
    nvrtc.faults.arm(
        plan(1, NVRTC_ERROR_INTERNAL_ERROR, FaultPlan::Repeat::forever, FaultPlan::Moment::before));
    CHECK(cache->get(request).code->kernels.size() == 1);
    CHECK(nvrtc.faults.fired() == 0);
    nvrtc.faults.disarm();
  }
}
