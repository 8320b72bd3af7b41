// Finds the CUDA driver's library and fills a DriverApi from it.
#pragma once

#include "driver/driver_api.h"

#include <string>

namespace kernwright {

/// A driver that was opened: its functions and where they come from. The library stays open for the
/// life of the process (drivers do not survive being closed).
struct LoadedDriver {
  DriverApi api;
  int version = 0;   ///< 13000 for CUDA 13.0
  std::string path;  ///< file of the library
};

/// The oldest driver that is accepted: CUDA 12.0.
inline constexpr int kOldestDriverVersion = 12000;

/// Opens `library` (a path, or a name for the system's loader), looks up every row of
/// driver_api.def and calls cuInit. Throws DriverNotFound with a remedy. The message begins with
/// "CUDA driver not detected:" when the library is absent, is the toolkit's stub, is too old, or
/// lacks a REQUIRED function; with "no GPU devices found:" when it works but has no GPU.
LoadedDriver open_cuda_driver(const std::string& library);

/// The driver of this process, opened by the first call (libcuda.so.1) and kept. Null when there is
/// none; `reason`, when given, then receives the message of DriverNotFound, else it is cleared.
/// Thread-safe; the outcome of the first call stands.
const DriverApi* load_cuda_driver(std::string* reason = nullptr);

/// The result of load_cuda_driver(), or null.
const LoadedDriver* cuda_driver();

}  // namespace kernwright
