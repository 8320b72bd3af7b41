// Texts and requests for compiles in workers.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/compile_service.h"
#include "tests/unit/worker/worker_fixture.h"
#include "unit/site_packages.h"
#include "worker/compile_task.h"

#include <string>
#include <utility>

namespace worker_test {

inline kernwright::CompileRequest request_for(
    std::string text, kernwright::CodeKind kind = kernwright::CodeKind::ptx) {
  using namespace kernwright;
  set_site_packages({testing::site_packages()});
  CompileRequest request;
  request.source.text = std::move(text);
  request.target = target_for_kind(kind, kind == CodeKind::cubin ? "sm_80" : "", nvrtc().archs,
                                   nvrtc().version());
  request.declared = scan_source(request.source.text);
  return request;
}

/// The worker's code by this process's NVRTC, for a request that names its header folders itself.
inline kernwright::ObjectCode code_from(kernwright::Worker& worker,
                                        const kernwright::CompileRequest& request,
                                        const std::string& nvrtc_path = kernwright::nvrtc().path) {
  kernwright::CompilerPlaces places;
  places.search.override_path = nvrtc_path;
  return compile_in(worker, places, {}, kernwright::CompileJob{request}).code;
}

inline constexpr const char* kPlain = "__global__ void f(float* x) { x[0] = 1; }";

/// Each level instantiates two of the level below: minutes and gigabytes, and NVRTC asks nobody.
inline constexpr const char* kBomb = R"(
template <int N, int M> struct Bomb {
  static const int v = Bomb<N - 1, 2 * M>::v + Bomb<N - 1, 2 * M + 1>::v;
};
template <int M> struct Bomb<0, M> { static const int v = M; };
__global__ void k(int* x) { x[0] = Bomb<26, 0>::v; })";

}  // namespace worker_test
