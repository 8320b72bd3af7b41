// Compiles in this process, and the choice of the process's compile service.
#include "jit/compile/compile_service.h"

#include <atomic>
#include <utility>

#include "base/format.h"
#include "driver/nvtx.h"
#include "jit/compile/lint.h"

namespace kernwright {
namespace {

std::atomic<CompileService& (*)()> chosen = nullptr;

/// Not owned.
CompileService::Facts facts_of(const LoadedNvrtc* nvrtc) {
  return {std::shared_ptr<const void>(), nvrtc};
}

}  // namespace

DirectCompileService::DirectCompileService(Open open, Opened opened)
    : open_(std::move(open)), opened_(std::move(opened)) {}

CompileService::Facts DirectCompileService::nvrtc() { return facts_of(&open_()); }

CompileService::Facts DirectCompileService::nvrtc_if_known() { return facts_of(opened_()); }

CompileResult DirectCompileService::compile(const CompileJob& job, const NvrtcFacts& expected) {
  const LoadedNvrtc& nvrtc = open_();
  if (nvrtc.stamp != expected.stamp) {
    throw NvrtcChanged(format("{} is another NVRTC than before", nvrtc.path));
  }
  const NvtxRange range("compile");
  return run_compile(nvrtc, job, HeaderPlaces::of_process());
}

std::vector<Diagnostic> DirectCompileService::lint(const Source& source,
                                                   const ProgramOptions& options) {
  return kernwright::lint(open_(), source, options);
}

CompileService& compile_service() {
  if (const auto service = chosen.load()) return service();
  static CompileService& direct = *new DirectCompileService;  // kept to the end of the process
  return direct;
}

void set_compile_service(CompileService& (*service)()) noexcept { chosen = service; }

}  // namespace kernwright
