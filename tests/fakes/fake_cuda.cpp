// A library that looks like libcuda.so.1 to the loader; every other function returns its row
// number.
//
// Built twice: as a driver with cuGetProcAddress, and (FAKE_WITHOUT_PROC_ADDRESS) as one that only
// exports versioned symbols. The environment decides how it behaves at each call:
//   FAKE_CUDA_INIT     result of cuInit
//   FAKE_CUDA_VERSION  what cuDriverGetVersion says
//   FAKE_CUDA_HIDE     name that cuGetProcAddress does not know
#include "driver/driver_api.h"

#include <cstdlib>
#include <cstring>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace kernwright;

namespace {

int number(const char* variable, int fallback) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : fallback;
}

}  // namespace

FAKE_EXPORT CUresult cuInit(unsigned int) {
  return static_cast<CUresult>(number("FAKE_CUDA_INIT", 0));
}

FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return CUDA_SUCCESS;
}

#ifdef FAKE_WITHOUT_PROC_ADDRESS

// Every versioned symbol but the two above and cuGetProcAddress_v2, which are renamed away.
#define cuInit renamed_cuInit
#define cuDriverGetVersion renamed_cuDriverGetVersion
#define cuGetProcAddress_v2 renamed_cuGetProcAddress
#define KW_DRIVER(name, symbol, since, need, parameters) \
  FAKE_EXPORT CUresult symbol parameters { return static_cast<CUresult>(20000 + since); }
#define KW_DRIVER_EXTENSION(name, parameters) \
  FAKE_EXPORT CUresult name parameters { return static_cast<CUresult>(29999); }
#include "driver/driver_api.def"

#else

namespace {

template <int Row, typename... Parameters>
CUresult numbered(Parameters...) {
  return static_cast<CUresult>(10000 + Row);
}

template <int Row, typename... Parameters>
void* address_of(CUresult (*)(Parameters...)) {
  return reinterpret_cast<void*>(&numbered<Row, Parameters...>);
}

/// The function of a row, numbered by its place in driver_api.def, and the version of the row.
void* find(const char* name, int& since) {
  DriverApi shape;
  void* found = nullptr;
  since = 0;
#define KW_DRIVER(row_name, symbol, row_since, need, parameters) \
  if (std::strcmp(name, #row_name) == 0) {                       \
    since = row_since;                                           \
    found = address_of<__COUNTER__>(shape.row_name);             \
  }
#define KW_DRIVER_EXTENSION(row_name, parameters) \
  if (std::strcmp(name, #row_name) == 0) found = address_of<__COUNTER__>(shape.row_name);
#include "driver/driver_api.def"
  return found;
}

}  // namespace

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                         cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const char* const hidden = std::getenv("FAKE_CUDA_HIDE");
  int since = 0;
  *function = find(symbol, since);
  // A name asked for with a version newer than its row would give the newer signature.
  const bool known =
      *function != nullptr && (hidden == nullptr || std::strcmp(hidden, symbol) != 0);
  const bool fits = known && version == since && flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  if (!fits) *function = nullptr;
  *status = fits    ? CU_GET_PROC_ADDRESS_SUCCESS
            : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#endif
