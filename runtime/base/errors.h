// Every exception type of the library. A call that throws created nothing and changed nothing.
#pragma once

#include "base/diagnostic.h"
#include "base/fault.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kernwright {

/// Base of all. The message names the failure, its values, and the remedy.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value that no state of the program could make right (a NUL in a source, a negative size).
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// An axis that an array does not have. Python: also IndexError, as NumPy's.
class AxisError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Wrong count, kind, dtype or device of a kernel argument. Python: also TypeError.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// An integer that the kernel's parameter cannot hold. Python: also OverflowError.
class ArgumentRangeError : public Error {
 public:
  using Error::Error;
};

/// Grid, block, cluster or shared memory outside the limits. Python: also ValueError.
class LaunchConfigError : public Error {
 public:
  using Error::Error;
};

/// No kernel, symbol or option of that name; the message lists the existing ones. Python: also
/// KeyError.
class NameNotFound : public Error {
 public:
  using Error::Error;
};

/// The CUDA driver library is missing or too old. Python: also ImportError.
class DriverNotFound : public Error {
 public:
  using Error::Error;
};

/// NVRTC or its builtins library is missing; the message lists the places searched. Python:
/// ImportError.
class NvrtcNotFound : public Error {
 public:
  using Error::Error;
};

/// No device of that index or name.
class DeviceNotFound : public Error {
 public:
  using Error::Error;
};

/// A driver call returned an error code. `code` is the CUresult, `name` its CUDA_ERROR_...
/// spelling.
class DriverError : public Error {
 public:
  DriverError(const std::string& message, int result_code, std::string result_name)
      : Error(message), code(result_code), name(std::move(result_name)) {}
  int code;
  std::string name;
};

/// Not enough memory, also after trimming. Sizes in bytes. Python: also MemoryError.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::uint64_t bytes_requested, std::uint64_t bytes_used,
              std::uint64_t bytes_reserved, std::uint64_t bytes_free)
      : Error(message),
        requested(bytes_requested),
        used(bytes_used),
        reserved(bytes_reserved),
        free(bytes_free) {}
  std::uint64_t requested, used, reserved, free;
};

/// The context met an error from which CUDA cannot recover (700, 710, 714, 718 and their kin).
class DeviceLost : public DriverError {
 public:
  using DriverError::DriverError;
};

/// The exception of a fault that ended a launch on the simulated device.
class DeviceFault : public Error {
 public:
  explicit DeviceFault(Fault fault) : Error(fault.to_string()), report(std::move(fault)) {}
  Fault report;
};

/// A tuning store could not be read or written. `code` is the system's errno. Python: also OSError.
class StoreError : public Error {
 public:
  StoreError(const std::string& message, int error_code) : Error(message), code(error_code) {}
  int code;
};

/// A deadline or an instruction budget ran out. Python: also TimeoutError.
class Timeout : public Error {
 public:
  using Error::Error;
};

/// A signal arrived while a thread waited for a compile or ran a simulated launch; its meaning is
/// known to the installer of the check. Python: the exception of the signal's handler,
/// KeyboardInterrupt for Ctrl-C.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// The simulated device does not know an instruction; found when the module is loaded.
class UnsupportedInstruction : public Error {
 public:
  UnsupportedInstruction(const std::string& message, std::string unknown_opcode, int source_line)
      : Error(message), opcode(std::move(unknown_opcode)), line(source_line) {}
  std::string opcode;
  int line;
};

/// A kernel or launch that cannot be cut into slices, with the reason.
class NotSliceable : public Error {
 public:
  using Error::Error;
};

/// The source text did not compile.
class CompileError : public Error {
 public:
  CompileError(const std::string& message, std::vector<Diagnostic> all_diagnostics,
               std::string whole_log, std::string source_text,
               std::vector<std::string> options_used)
      : Error(message),
        diagnostics(std::move(all_diagnostics)),
        log(std::move(whole_log)),
        source(std::move(source_text)),
        options(std::move(options_used)) {}
  std::vector<Diagnostic> diagnostics;
  std::string log;
  std::string source;
  std::vector<std::string> options;
};

}  // namespace kernwright
