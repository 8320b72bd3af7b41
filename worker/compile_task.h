// Compiles as tasks: their requests, and what a worker does with them.
#pragma once

#include "jit/compile/compile_service.h"
#include "worker/tasks.h"
#include "worker/worker.h"

#include <string>
#include <vector>

namespace kernwright {

/// The places of a worker's compiler and CUDA headers, seen from this process. A value.
struct CompilerPlaces {
  NvrtcSearch search;        ///< headers are looked for in its toolkits and site_packages
  std::string cache_folder;  ///< as in HeaderPlaces

  static CompilerPlaces of_process();
  HeaderPlaces headers() const;
};

// Each throws what Worker::run() throws. The worker touches no cache.

/// The NVRTC found by this search in the worker, opened once. Throws NvrtcNotFound.
NvrtcFacts nvrtc_of(Worker& worker, const NvrtcSearch& search, const WaitLimits& limits = {});
/// Has the worker open it, without waiting: see Worker::post().
void prepare_nvrtc(Worker& worker, const NvrtcSearch& search);

/// The result and the exceptions are those of a CompileService; `stamp` is the expected NVRTC's,
/// empty for any.
CompileResult compile_in(Worker& worker, const CompilerPlaces& places, const std::string& stamp,
                         const CompileJob& job, const WaitLimits& limits = {});

std::vector<Diagnostic> lint_in(Worker& worker, const CompilerPlaces& places, const Source& source,
                                const ProgramOptions& options, const WaitLimits& limits = {});

// The worker's side.
std::vector<std::byte> run_nvrtc_task(ByteReader& request, std::vector<FileHandle>& files);
std::vector<std::byte> run_compile_task(ByteReader& request, std::vector<FileHandle>& files);
std::vector<std::byte> run_lint_task(ByteReader& request, std::vector<FileHandle>& files);

}  // namespace kernwright
