// The table without a driver, and its rows.
#include "driver/driver_api.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace kernwright;

TEST_CASE("driver table: no slot is ever null and each says NOT_SUPPORTED") {
  DriverApi api;
  int slots = 0;
  for_each_slot(api, [&](const DriverRow& row, auto& slot) {
    CAPTURE(row.name);
    const bool set = slot != nullptr;
    CHECK(set);
    ++slots;
  });
  CHECK(slots > 110);
  CUdeviceptr address = 42;
  CHECK(api.cuMemAlloc(&address, 16) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(address == 42);
  CHECK(api.cuCtxSynchronize() == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(api.cuLaunchKernelEx(nullptr, nullptr, nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  Fault report;
  CHECK(api.kwTakeReport(nullptr, &report) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("driver table: rows are unique and versioned symbols begin with their name") {
  const DriverApi api;
  std::set<std::string> names;
  for_each_slot(api, [&](const DriverRow& row, auto&) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    const std::string symbol = row.symbol;
    if (symbol.empty()) {
      CHECK(std::string(row.name).rfind("kw", 0) == 0);
      CHECK(row.need == DriverNeed::OPTIONAL);
      return;
    }
    CHECK(symbol.rfind(row.name, 0) == 0);
    CHECK(row.since >= 2000);
    // A driver of CUDA 12.0 must be able to serve every REQUIRED row.
    if (row.need == DriverNeed::REQUIRED) CHECK(row.since <= 12000);
  });
}

TEST_CASE("driver table: slots can be visited and set") {
  DriverApi api;
  for_each_slot(api, [](const DriverRow& row, auto& slot) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(slot)>,
                                 decltype(DriverApi::cuCtxSynchronize)>) {
      if (std::string(row.name) == "cuCtxSynchronize") {
        slot = []() -> CUresult { return CUDA_ERROR_ASSERT; };
      }
    }
  });
  CHECK(api.cuCtxSynchronize() == CUDA_ERROR_ASSERT);
}

TEST_CASE("driver enumerations: results are spelled, unknown ones are not") {
  CHECK(std::string(result_name(CUDA_SUCCESS)) == "CUDA_SUCCESS");
  CHECK(std::string(result_name(CUDA_ERROR_ILLEGAL_ADDRESS)) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(std::string(result_name(CUDA_ERROR_UNKNOWN)) == "CUDA_ERROR_UNKNOWN");
  CHECK(result_name(static_cast<CUresult>(12345)) == nullptr);
  CHECK(result_name(static_cast<CUresult>(-1)) == nullptr);
}

TEST_CASE("driver enumerations: names are unique") {
  std::set<std::string> names;
  for (const DriverEnumerator& row : driver_enumerators()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
  }
  CHECK(names.size() > 400);
}
