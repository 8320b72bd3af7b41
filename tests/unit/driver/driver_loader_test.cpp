// Opening a driver library: accepted ones, and refusals with their messages.
#include "driver/driver_loader.h"

#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "unit/base/environment_guard.h"
#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <map>

using namespace kernwright;
using test::EnvironmentGuard;
using testing::contains;

namespace {

/// The message of the DriverNotFound for this library; empty without one.
std::string refusal(const std::string& library) {
  try {
    open_cuda_driver(library);
  } catch (const DriverNotFound& error) {
    return error.what();
  }
  return {};
}

std::map<std::string, void*> addresses(const DriverApi& api) {
  std::map<std::string, void*> all;
  for_each_slot(api, [&](const DriverRow& row, auto& slot) {
    all[row.name] = reinterpret_cast<void*>(slot);
  });
  return all;
}

}  // namespace

TEST_CASE("driver loader: every row is filled through cuGetProcAddress with its own version") {
  // The fake driver only answers when it is asked for exactly the version of the row.
  const LoadedDriver driver = open_cuda_driver(FAKE_CUDA);
  CHECK(driver.version == 13000);
  CHECK(contains(driver.path, "fake_cuda"));
  const DriverApi unset;
  const auto before = addresses(unset);
  const auto after = addresses(driver.api);
  for (const auto& row : after) {
    CAPTURE(row.first);
    CHECK((row.second != before.at(row.first)) == (row.first.rfind("kw", 0) != 0));
  }
  CHECK(driver.api.cuMemFree(0) >= 10000);
  CHECK(driver.api.cuMemFree(0) != driver.api.cuMemFreeHost(nullptr));
}

TEST_CASE("driver loader: the driver starts with 16 connections, or as many as the user says") {
  const EnvironmentGuard connections("CUDA_DEVICE_MAX_CONNECTIONS", nullptr);
  open_cuda_driver(FAKE_CUDA);
  const char* given = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  CHECK((given != nullptr && std::string(given) == "16"));
  connections.set("1");
  open_cuda_driver(FAKE_CUDA);
  CHECK(std::string(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) == "1");
}

TEST_CASE("driver loader: without cuGetProcAddress the versioned symbols serve") {
  const LoadedDriver driver = open_cuda_driver(FAKE_CUDA_EXPORTS);
  CHECK(driver.api.cuMemFree(0) == 23020);
  CHECK(driver.api.cuEventElapsedTime(nullptr, nullptr, nullptr) == 22000);
  CHECK(driver.api.cuStreamGetCaptureInfo(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        31030);
  // Our extension, even if a library exports the name.
  CHECK(driver.api.kwTakeReport(nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("driver loader: an absent library says what to do") {
  const std::string message = refusal("libkernwright-no-such-driver.so.1");
  CHECK(message.rfind("CUDA driver not detected: ", 0) == 0);
  CHECK(contains(message, "libkernwright-no-such-driver.so.1"));
  CHECK(contains(message, "install the NVIDIA driver"));
  CHECK(contains(message, "KERNWRIGHT_DEVICE=sim"));
}

TEST_CASE("driver loader: a library that is no driver is refused") {
  CHECK(contains(refusal(FAKE_NVRTC), "no function cuInit"));
}

TEST_CASE("driver loader: a driver that is too old is told by its version") {
  const EnvironmentGuard version("FAKE_CUDA_VERSION", "11080");
  const std::string message = refusal(FAKE_CUDA);
  CHECK(message.rfind("CUDA driver not detected: ", 0) == 0);
  CHECK(contains(message, "supports CUDA 11.8, but 12.0 or newer is needed"));
  CHECK(contains(message, "update the NVIDIA driver"));
}

TEST_CASE("driver loader: a missing REQUIRED function is named with the version it needs") {
  const EnvironmentGuard hide("FAKE_CUDA_HIDE", "cuLaunchKernelEx");
  const std::string message = refusal(FAKE_CUDA);
  CHECK(contains(message, "has no function cuLaunchKernelEx, which CUDA 11.6 introduced"));
}

TEST_CASE("driver loader: a missing OPTIONAL function says NOT_SUPPORTED") {
  const EnvironmentGuard hide("FAKE_CUDA_HIDE", "cuFuncGetName");
  const LoadedDriver driver = open_cuda_driver(FAKE_CUDA);
  CHECK(driver.api.cuFuncGetName(nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(driver.api.cuFuncGetModule(nullptr, nullptr) >= 10000);
}

TEST_CASE("driver loader: each failure of cuInit has its own advice") {
  const EnvironmentGuard init("FAKE_CUDA_INIT", nullptr);
  const std::map<CUresult, std::string> expected = {
      {CUDA_ERROR_STUB_LIBRARY, "stub"},
      {CUDA_ERROR_NO_DEVICE, "no GPU devices found"},
      {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "reboot"},
      {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN (999)"},
      {static_cast<CUresult>(4711), "unknown error (4711)"},
  };
  for (const auto& row : expected) {
    const CUresult code = row.first;
    const std::string& words = row.second;
    CAPTURE(static_cast<int>(code));
    init.set(std::to_string(code).c_str());
    const std::string message = refusal(FAKE_CUDA);
    CHECK((message.rfind("CUDA driver not detected: ", 0) == 0) == (code != CUDA_ERROR_NO_DEVICE));
    CHECK(contains(message, words));
    CHECK(contains(message, "fake_cuda"));
  }
}

TEST_CASE("driver loader: the process's driver is found once, or a reason is given") {
  std::string reason = "left over";
  const DriverApi* const api = load_cuda_driver(&reason);
  if (api == nullptr) {
    CHECK(contains(reason, "KERNWRIGHT_DEVICE=sim"));
    CHECK(cuda_driver() == nullptr);
  } else {
    CHECK(reason.empty());
    REQUIRE(cuda_driver() != nullptr);
    CHECK(&cuda_driver()->api == api);
    int version = 0;
    CHECK(api->cuDriverGetVersion(&version) == CUDA_SUCCESS);
    CHECK(version == cuda_driver()->version);
  }
  CHECK(load_cuda_driver() == api);
}

TEST_CASE("driver loader: the toolkit's stub library is recognised") {
  std::string stub;
  for (const std::string& root : NvrtcSearch::from_environment().toolkits) {
    const std::string file = root + "/lib64/stubs/libcuda.so";
    if (stub.empty() && access(file.c_str(), R_OK) == 0) stub = file;
  }
  if (stub.empty()) {
    MESSAGE("no toolkit's stub library on this machine: only the fake one was tested");
    return;
  }
  CHECK(contains(refusal(stub), "stub"));
}
