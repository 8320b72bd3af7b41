// When copies of the compiler are opened, and that they compile like the original.
#include "jit/compile/nvrtc_replicas.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "unit/jit/fake_nvrtc.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// As many queued compiles as there are in the vector.
std::vector<std::unique_ptr<CompileDemand>> demand(int count) {
  std::vector<std::unique_ptr<CompileDemand>> result;
  for (int i = 0; i < count; ++i) result.push_back(std::make_unique<CompileDemand>());
  return result;
}

const void* id_of(const LoadedNvrtc& nvrtc) {
  return reinterpret_cast<const void*>(nvrtc.api.nvrtcCompileProgram);
}

}  // namespace

TEST_CASE("nvrtc replicas: none on few processors or for a short queue") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  {
    const auto many = demand(100);
    NvrtcReplicas few(4);
    CHECK(&few.lease(nvrtc).library() == &nvrtc);
    CHECK(few.copies() == 0);
  }
  NvrtcReplicas idle(16);
  CHECK(&idle.lease(nvrtc).library() == &nvrtc);
  CHECK(idle.copies() == 0);
}

TEST_CASE("nvrtc replicas: a long queue opens copies that compile to the same bytes") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  NvrtcReplicas replicas(8);
  const auto many = demand(12);
  auto request = request_for("__global__ void k(int* x) { x[0] = 1; }\n", {}, CodeKind::cubin);
  const std::string code = Compiler(nvrtc).compile(request).code;
  for (int i = 0; i < 6; ++i) {
    const LoadedNvrtc copy = nvrtc;  // the same library, whatever object tells of it
    const auto lease = replicas.lease(copy);
    CHECK(lease.library().path == nvrtc.path);
    CHECK(Compiler(lease.library()).compile(request).code == code);
  }
  CHECK(replicas.copies() == 1);
  // Idle ones are taken in turn only when others are busy.
  const auto first = replicas.lease(nvrtc), second = replicas.lease(nvrtc);
  CHECK(id_of(first.library()) != id_of(second.library()));
}

TEST_CASE("nvrtc replicas: a library that cannot be copied is tried once") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  NvrtcReplicas replicas(16);
  const auto many = demand(100);
  for (int i = 0; i < 3; ++i) CHECK(&replicas.lease(nvrtc).library() == &nvrtc);
  CHECK(replicas.copies() == 0);
}
