// The table of NVRTC's functions, and our own declarations of its ABI.
#pragma once

#include <cstddef>

namespace kernwright {

enum nvrtcResult : int {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
  NVRTC_ERROR_TIME_FILE_WRITE_FAILED = 12,
  NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED = 13,
  NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED = 14,
  NVRTC_ERROR_PCH_CREATE = 15,
  NVRTC_ERROR_CANCELLED = 16,
  NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED = 17,
  NVRTC_ERROR_BUSY = 18,
};

/// The result of an absent OPTIONAL function's slot; no NVRTC returns it.
inline constexpr nvrtcResult kNvrtcNotSupported = static_cast<nvrtcResult>(-1);

using nvrtcProgram = struct _nvrtcProgram*;

struct nvrtcBundledHeadersInfo {
  int available;
  std::size_t compressedSize;
  std::size_t uncompressedSize;
  int cudaVersionMajor;
  int cudaVersionMinor;
  unsigned int numFiles;
};

/// Flags of nvrtcInstallBundledHeaders.
inline constexpr unsigned kInstallHeadersSkipIfExists = 0;
inline constexpr unsigned kInstallHeadersForceOverwrite = 1;
inline constexpr unsigned kInstallHeadersNoWait = 2;

/// Becomes, for any slot, a function that says "not supported" and touches nothing.
class NvrtcStub {
  template <typename... Parameters>
  using Function = nvrtcResult (*)(Parameters...);
  template <typename... Parameters>
  using TextFunction = const char* (*)(Parameters...);

 public:
  template <typename... Parameters>
  constexpr operator Function<Parameters...>() const noexcept {
    return [](Parameters...) -> nvrtcResult { return kNvrtcNotSupported; };
  }
  template <typename... Parameters>
  constexpr operator TextFunction<Parameters...>() const noexcept {
    return [](Parameters...) -> const char* { return "not supported by this NVRTC"; };
  }
};

/// Function pointers of one NVRTC library. No slot is ever null. A plain value.
struct NvrtcApi {
#define KW_NVRTC(result, name, since, need, parameters) result(*name) parameters = NvrtcStub{};
#include "driver/nvrtc_api.def"
};

/// Whether a library without the function is refused.
enum class NvrtcNeed : bool { REQUIRED, OPTIONAL };

/// The row of one slot in nvrtc_api.def.
struct NvrtcRow {
  const char* name;
  int since;
  NvrtcNeed need;
};

/// Calls visit(const NvrtcRow&, slot&) for each slot in the order of nvrtc_api.def.
template <typename Table, typename Visitor>
void for_each_nvrtc_slot(Table& table, Visitor&& visit) {
#define KW_NVRTC(result, name, since, need, parameters) \
  visit(NvrtcRow{#name, since, NvrtcNeed::need}, table.name);
#include "driver/nvrtc_api.def"
}

}  // namespace kernwright
