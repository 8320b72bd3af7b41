// Compiles in this process, and the choice of the process's compile service.
#include "jit/compile/compile_service.h"

#include <atomic>
#include <utility>

#include "base/format.h"
#include "base/whole_file.h"
#include "driver/nvtx.h"
#include "jit/compile/lint.h"
#include "jit/compile/process_folder.h"

namespace kernwright {
namespace {

std::atomic<CompileService& (*)()> chosen = nullptr;

/// Not owned.
CompileService::Facts facts_of(const LoadedNvrtc* nvrtc) {
  return {std::shared_ptr<const void>(), nvrtc};
}

}  // namespace

CompileResult run_compile(const LoadedNvrtc& nvrtc, const CompileJob& job,
                          const HeaderPlaces& places) {
  CompileResult result;
  CompileRequest request = job.request;
  CudaHeaders headers;  // holds the folders open
  if (job.with_cuda_headers) {
    headers = cuda_headers(nvrtc, places);
    request.header_folders = headers.folders;
    result.note = headers.note;
    // The version of NVRTC is in every key, and tells the contents of its bundle.
    if (!headers.is_bundle) result.folders = headers.folders;
  }
  const Compiler compiler(nvrtc);
  if (!job.is_measured) {
    result.code = compiler.compile(request);
    return result;
  }
  const ProcessFolder folder("time");
  const std::string file = folder.path().empty() ? std::string() : folder.path() + "/phases.csv";
  result.code = compiler.compile_measured(request, file);
  if (!file.empty()) result.phase_times = read_whole_file(file).value_or(std::string());
  return result;
}

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
