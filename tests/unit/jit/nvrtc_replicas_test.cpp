// When copies of the compiler are opened, and that they compile like the original.
#include "jit/compile/nvrtc_replicas.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/errors.h"

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
    CHECK(&few.lease(nvrtc, kNever).library() == &nvrtc);
    CHECK(few.copies() == 0);
  }
  NvrtcReplicas idle(16);
  CHECK(&idle.lease(nvrtc, kNever).library() == &nvrtc);
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
    const auto lease = replicas.lease(copy, kNever);
    CHECK(lease.library().path == nvrtc.path);
    CHECK(Compiler(lease.library()).compile(request).code == code);
  }
  CHECK(replicas.copies() == 1);
  // Idle ones are taken in turn only when others are busy.
  const auto first = replicas.lease(nvrtc, kNever), second = replicas.lease(nvrtc, kNever);
  CHECK(id_of(first.library()) != id_of(second.library()));
}

TEST_CASE("nvrtc replicas: another is opened when all are blocked, also on few processors") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  NvrtcReplicas replicas(1);
  NvrtcGate& original = replicas.lease(nvrtc, kNever).gate();
  original.block();
  for (int i = 0; i < 2; ++i) {
    const auto lease = replicas.lease(nvrtc, kNever);
    CHECK(id_of(lease.library()) != id_of(nvrtc));
    CHECK(&lease.gate() != &original);
  }
  CHECK(replicas.copies() == 1);
  NvrtcGate& copy = replicas.lease(nvrtc, kNever).gate();
  copy.close();
  original.unblock();
  CHECK(&replicas.lease(nvrtc, kNever).gate() == &original);
  CHECK(replicas.copies() == 1);
}

TEST_CASE("nvrtc replicas: where none can be opened, what is blocked is waited for") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  NvrtcReplicas replicas(1);
  NvrtcGate& gate = replicas.lease(nvrtc, kNever).gate();
  gate.block();
  const CompileDeadline soon(std::chrono::milliseconds(30));
  CHECK_THROWS_AS(replicas.lease(nvrtc, soon), Timeout);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.unblock();
  });
  CHECK(&replicas.lease(nvrtc, kNever).gate() == &gate);
  other.join();
  CHECK(replicas.copies() == 0);
}

TEST_CASE("nvrtc replicas: when all are closed, the error says what to do") {
  const pid_t child = ::fork();  // since a gate never opens again
  REQUIRE(child >= 0);
  if (child == 0) {
    const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
    NvrtcReplicas replicas(1);
    replicas.lease(nvrtc, kNever).gate().close();
    const auto error = thrown_by<Error>([&] { replicas.lease(nvrtc, kNever); });
    ::_exit(contains(error.what(), "start a new process") ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("nvrtc replicas: a forked child keeps out of where a thread of its parent is") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  NvrtcReplicas replicas(1);
  const auto in_child = [&] {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      NvrtcReplicas own(1);
      const bool is_copy = id_of(own.lease(nvrtc, kNever).library()) != id_of(nvrtc);
      ::_exit(is_copy ? 1 : 0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
  };
  CHECK(in_child() == 0);
  {
    const auto lease = replicas.lease(nvrtc, kNever);
    CHECK(in_child() == 1);
  }
  CHECK(in_child() == 0);
}

TEST_CASE("nvrtc replicas: a library that cannot be copied is tried once") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  NvrtcReplicas replicas(16);
  const auto many = demand(100);
  for (int i = 0; i < 3; ++i) CHECK(&replicas.lease(nvrtc, kNever).library() == &nvrtc);
  CHECK(replicas.copies() == 0);
}
