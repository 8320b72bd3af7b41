// Every kernel of the corpus against its reference, as two NVRTC releases compile it.
#include "sim/references.h"
#include "unit/sim/device/device_fixture.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr std::string_view kVariant = ".80.ptx";

/// Bytes of `hex`, two digits each.
std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void compare(const KernelCase& kernel_case, const Buffers& got, const Buffers& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const CaseArgument& argument = kernel_case.arguments[i];
    if (argument.count == 0 || argument.order_dependent) continue;
    INFO("argument ", i);
    CHECK(difference(argument.type, got[i], expected[i], argument.comparison) == "");
  }
}

}  // namespace

TEST_CASE("sim kernels: every case gives what its reference computes") {
  CurrentDevice device;
  int runs = 0;
  for (const KernelCase& kernel_case : load_cases()) {
    if (kernel_case.reference.empty()) continue;
    const Buffers expected = expected_results(kernel_case);
    for (const std::string& file : ptx_files(kernel_case.source, kVariant)) {
      INFO("case ", kernel_case.name, ", ", file);
      Buffers got;
      REQUIRE_NOTHROW(got = run_case(device.api, kernel_case, read_ptx(file)));
      compare(kernel_case, got, expected);
      ++runs;
    }
  }
  CHECK(runs >= 2 * 25);
}

TEST_CASE("sim kernels: every case gives what a GPU computed") {
  CurrentDevice device;
  std::ifstream file(std::string(KW_SIM_TEST_DATA) + "/vectors.json");
  const auto vectors = nlohmann::json::parse(file).at("vectors");
  for (const KernelCase& kernel_case : load_cases()) {
    INFO("case ", kernel_case.name);
    REQUIRE(vectors.contains(kernel_case.name));
    const auto& row = vectors.at(kernel_case.name);
    const std::string ptx = read_ptx(row.at("ptx").get<std::string>());
    Buffers got;
    REQUIRE_NOTHROW(got = run_case(device.api, kernel_case, ptx));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const CaseArgument& argument = kernel_case.arguments[i];
      if (argument.count == 0 || argument.order_dependent) continue;
      INFO("argument ", i);
      const std::vector<std::byte> expected =
          argument.is_output ? from_hex(row.at("results").at(std::to_string(i)).get<std::string>())
                             : argument.bytes;
      CHECK(difference(argument.type, got[i], expected, argument.on_gpu) == "");
    }
  }
}

TEST_CASE("sim kernels: every PTX text of the corpus for 8.0 and older loads") {
  CurrentDevice device;
  int loaded = 0;
  for (const std::string& name : ptx_files("", ".ptx")) {
    const std::string text = read_ptx(name);
    const bool newer =
        name.ends_with(".86.ptx") || name.ends_with(".89.ptx") || name.ends_with(".90a.ptx");
    INFO(name);
    CUmodule module = nullptr;
    const CUresult result = device.api.cuModuleLoadData(&module, text.c_str());
    const Fault report = device.report();
    INFO(report.to_string());
    CHECK(result == (newer ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS));
    if (result != CUDA_SUCCESS) continue;
    ++loaded;
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
  }
  CHECK(loaded >= 100);
}

TEST_CASE("sim kernels: printf comes out in the order of blocks and threads, assert names itself") {
  CurrentDevice device;
  static std::string printed;
  printed.clear();
  set_print_sink([](std::string_view text) { printed += text; });
  for (const std::string& file : ptx_files("print_assert", kVariant)) {
    INFO(file);
    printed.clear();
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(device.api.cuModuleLoadData(&module, read_ptx(file).c_str()) == CUDA_SUCCESS);
    REQUIRE(device.api.cuModuleGetFunction(&function, module, "print_assert") == CUDA_SUCCESS);
    CUdeviceptr x = device.upload(std::vector<int>{1, 2, 3, 4}), text = 0;
    double number = 2.5;
    int limit = 5;
    void* parameters[] = {&x, &number, &text, &limit};
    CHECK(device.api.cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
    CHECK(printed ==
          "thread 0 of 2:  2.50 text x 1099511627776 %\n"
          "thread 1 of 2:  2.50 text x 1099511627776 %\n"
          "no arguments\n");
    limit = 4;
    CHECK(device.api.cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_ERROR_ASSERT);
    const Fault report = device.report();
    CHECK(report.kind == FaultKind::assertion);
    CHECK(report.line == 6);
    CHECK(report.thread[0] == 3);
    CHECK(report.message.find("x[i] < n") != std::string::npos);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
  }
  set_print_sink({});
}
