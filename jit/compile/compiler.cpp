// The sequence of NVRTC compiles for object code or for one clear error.
#include "jit/compile/compiler.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "base/whole_file.h"
#include "jit/compile/compile_attempt.h"
#include "jit/compile/compile_planner.h"
#include "jit/compile/compile_wait.h"
#include "jit/compile/process_folder.h"
#include "jit/source/include_closure.h"

namespace kernwright {
namespace {

/// Enough for: without precompiled headers, with macros behind the compiler's preamble, without
/// --minimal, without names behind a false #if, types asked for in each way, without the probe,
/// with it once more, and without it in the end.
constexpr int kMaxAttempts = 12;

void check_names(const std::vector<std::string>& names) {
  if (names.size() > kMaxPlannedNames) {
    throw InvalidArgument(
        format("{} kernel names are given; the limit is {}", names.size(), kMaxPlannedNames));
  }
  for (const std::string& name : names) {
    if (name.find_first_not_of(" \t") == std::string::npos) {
      throw InvalidArgument("a kernel name is empty");
    }
    const auto at = name.find_first_of(std::string_view("\0\n\r", 3));
    if (at == std::string::npos) continue;
    throw InvalidArgument(
        format("a kernel name has a {} at offset {}", name[at] == '\0' ? "NUL" : "line break", at));
  }
}

/// The assembler's words about each kernel go to the log, and the times of NVRTC's phases to a file
/// in the folder. The result is the file's path, empty without a folder.
std::string measure_phases(ProgramOptions& options, const ProcessFolder& folder) {
  options.extra.push_back("--ptxas-options=-v");
  if (folder.path().empty()) return {};
  std::string file = folder.path() + "/phases.csv";
  options.extra.push_back("--time=" + file);
  return file;
}

}  // namespace

void validate(const CompileRequest& request) {
  validate(request.source);
  validate(request.options);
  check_include_dirs(request.options);
  check_names(request.names);
}

CompileResult run_compile(const LoadedNvrtc& nvrtc, const CompileJob& job,
                          const HeaderPlaces& places) {
  CompileResult result;
  CompileRequest request = job.request;
  validate(request);
  CudaHeaders headers;  // holds the folders open
  if (job.with_cuda_headers) {
    headers = cuda_headers(nvrtc, places);
    request.header_folders = headers.folders;
    result.note = headers.note;
    // The version of NVRTC is in every key, and tells the contents of its bundle.
    if (!headers.is_bundle) result.folders = headers.folders;
  }
  std::optional<ProcessFolder> times;
  std::string times_file;
  if (job.is_measured) times_file = measure_phases(request.options, times.emplace("time"));

  const auto begin = std::chrono::steady_clock::now();
  request.included = include_closure(request.source, request.options);
  request.texts = compiler_texts(request.source, request.options, request.included);
  const CompileDeadline deadline(current_wait_limits().within(request.options.timeout),
                                 format("compiling {}", request.source.name));
  CompilePlanner planner(nvrtc, request, deadline);
  double nvrtc_ms = 0;
  for (int i = 1;; ++i) {
    CompileAttempt attempt(nvrtc, request, planner.plan(), planner.tokens());
    const bool is_compiled = attempt.compile(deadline);
    nvrtc_ms += attempt.nvrtc_ms();
    const bool is_last = i == kMaxAttempts;
    if (!is_compiled) {
      if (!planner.learn(attempt) || is_last) attempt.throw_compile_error(deadline);
    } else if (is_last || !planner.asks_more(attempt)) {
      result.code = planner.finish(attempt, i, nvrtc_ms);
      break;
    }
  }
  result.code.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (!times_file.empty()) result.phase_times = read_whole_file(times_file).value_or("");
  return result;
}

ObjectCode Compiler::compile(const CompileRequest& request) const {
  return run_compile(nvrtc_, CompileJob{request}, {}).code;
}

}  // namespace kernwright
