// Kernels that go wrong: the launch is stopped, and the report tells where and why.
#include "sim/kernel_case.h"
#include "unit/sim/device/device_fixture.h"

#include <chrono>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// The kernels of faults.cu in one of the corpus's PTX texts.
class Faults {
 public:
  explicit Faults(const CurrentDevice& device, const std::string& file) : device_(device) {
    REQUIRE(device.api.cuModuleLoadData(&module_, read_ptx(file).c_str()) == CUDA_SUCCESS);
  }
  ~Faults() { device_.api.cuModuleUnload(module_); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  template <typename... Arguments>
  CUresult launch(const char* name, unsigned grid, unsigned block, Arguments... arguments) {
    CUfunction function = nullptr;
    REQUIRE(device_.api.cuModuleGetFunction(&function, module_, name) == CUDA_SUCCESS);
    void* parameters[] = {&arguments...};
    const CUresult result = device_.api.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0,
                                                       nullptr, parameters, nullptr);
    report = device_.report();
    return result;
  }

  Fault report;

 private:
  const CurrentDevice& device_;
  CUmodule module_ = nullptr;
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Runs `check(faults)` on what every NVRTC of the corpus made of the source.
template <typename Check>
void for_each_text(const CurrentDevice& device, Check&& check) {
  const auto files = ptx_files("faults", ".80.ptx");
  REQUIRE(files.size() >= 2);
  for (const std::string& file : files) {
    INFO(file);
    Faults faults(device, file);
    check(faults);
  }
}

}  // namespace

TEST_CASE("sim faults: an access past the end names allocation, distance, block, thread, line") {
  CurrentDevice device;
  for_each_text(device, [&](Faults& faults) {
    const CUdeviceptr x = device.allocate(100 * sizeof(int));
    CHECK(faults.launch("write_past_end", 2, 64, x, 100) == CUDA_ERROR_ILLEGAL_ADDRESS);
    const Fault& report = faults.report;
    CHECK(report.kind == FaultKind::bounds);
    CHECK(report.kernel == "write_past_end");
    CHECK(report.line == 4);
    CHECK(contains(report.file, "faults.cu"));
    CHECK(contains(report.opcode, "st.global"));
    CHECK(report.address == x + 400);
    CHECK(report.access_size == 4);
    CHECK(report.block == std::array<unsigned, 3>{1, 0, 0});
    CHECK(report.thread == std::array<unsigned, 3>{36, 0, 0});
    CHECK(contains(report.allocation, "just past the end of the allocation of 400 bytes"));
    CHECK(device.download<int>(x, 100)[63] == 63);  // the context stays usable
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  });
}

TEST_CASE("sim faults: before the begin, null, freed, read-only and vector accesses") {
  CurrentDevice device;
  for_each_text(device, [&](Faults& faults) {
    const CUdeviceptr x = device.allocate(256), y = device.allocate(256);
    CHECK(faults.launch("read_before_begin", 1, 32, x, y) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::bounds);
    CHECK(faults.report.line == 7);
    CHECK(faults.report.thread[0] == 0);
    CHECK(contains(faults.report.allocation, "12 bytes before the allocation of 256 bytes"));
    CHECK(faults.launch("null_pointer", 1, 32, CUdeviceptr{0}) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.line == 10);
    CHECK(contains(faults.report.allocation, "a null pointer"));
    CHECK(faults.launch("vector_past_end", 1, 17, x) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.access_size == 16);
    CHECK(faults.report.thread[0] == 16);
    CHECK(faults.launch("atomic_past_end", 1, 1, x) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::bounds);
    const CUdeviceptr out = device.allocate(8);
    CHECK(faults.launch("address_of_table", 1, 1, out) == CUDA_SUCCESS);
    const CUdeviceptr table = device.download<CUdeviceptr>(out, 1)[0];
    CHECK(faults.launch("write_constant", 1, 1, table) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::bounds);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
    CHECK(faults.launch("read_after_free", 1, 32, x, y) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::use_after_free);
    CHECK(contains(faults.report.allocation, "inside an allocation of 256 bytes"));
    std::vector<int> host(64);
    CHECK(faults.launch("read_after_free", 1, 32, reinterpret_cast<CUdeviceptr>(host.data()), y) ==
          CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(contains(faults.report.allocation, "a host address"));
    CHECK(device.api.cuMemFree(y) == CUDA_SUCCESS);
  });
}

TEST_CASE("sim faults: misaligned, shared and local accesses") {
  CurrentDevice device;
  for_each_text(device, [&](Faults& faults) {
    const CUdeviceptr x = device.upload(std::vector<int>(256, 1));
    CHECK(faults.launch("misaligned", 1, 8, x, x) == CUDA_ERROR_MISALIGNED_ADDRESS);
    CHECK(faults.report.kind == FaultKind::alignment);
    CHECK(faults.report.line == 13);
    CHECK(faults.report.address == x + 2);
    CHECK(faults.launch("shared_past_end", 1, 32, x, 64) == CUDA_SUCCESS);
    CHECK(faults.launch("shared_past_end", 1, 32, x, 65) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::bounds);
    CHECK(faults.report.line == 20);
    CHECK(faults.launch("local_past_end", 1, 32, x, 200) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(faults.report.kind == FaultKind::bounds);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  });
}

TEST_CASE("sim faults: trap, assert, barrier deadlock and a wild call have their own codes") {
  CurrentDevice device;
  for_each_text(device, [&](Faults& faults) {
    CHECK(faults.launch("trap_in_block", 500, 32, 77) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(faults.report.kind == FaultKind::trap);
    CHECK(faults.report.block[0] == 77);
    const CUdeviceptr x = device.upload(std::vector<int>{1, 2, 0, 4, -1});
    CHECK(faults.launch("assert_positive", 1, 5, x) == CUDA_ERROR_ASSERT);
    CHECK(faults.report.kind == FaultKind::assertion);
    CHECK(faults.report.line == 33);
    CHECK(contains(faults.report.message, "x[threadIdx.x] > 0"));
    const CUdeviceptr y = device.allocate(256);
    CHECK(faults.launch("barrier_in_branch", 1, 64, y) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(faults.report.kind == FaultKind::sync);
    CHECK(faults.launch("wild_call", 1, 1, x) != CUDA_SUCCESS);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
    CHECK(device.api.cuMemFree(y) == CUDA_SUCCESS);
  });
}

TEST_CASE("sim faults: an endless loop ends on its budget") {
  CurrentDevice device;
  for_each_text(device, [&](Faults& faults) {
    const CUdeviceptr x = device.upload(std::vector<int>{0});
    const auto begin = std::chrono::steady_clock::now();
    CHECK(faults.launch("endless", 1, 32, x) == CUDA_ERROR_LAUNCH_TIMEOUT);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    CHECK(seconds.count() < 120);
    CHECK(faults.report.kind == FaultKind::timeout);
    CHECK(faults.report.line == 36);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  });
}
