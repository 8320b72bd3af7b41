// Owns one nvrtcProgram: create, compile, read the results.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/compile_wait.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright {

/// The end of a compile in this process: the limits of the waiting thread. One deadline may serve
/// several compiles, one after the other. Thread-safe.
class CompileDeadline {
 public:
  /// Never.
  CompileDeadline() = default;
  /// `what` for messages: "compiling kernel.cu".
  CompileDeadline(WaitLimits limits, std::string what);

  /// True once the time was up, and never false again. Looks every 20 ms, however often it is
  /// asked.
  bool expired() const noexcept;
  /// Throws the reason for the end: Timeout, Cancelled or Interrupted.
  [[noreturn]] void rethrow() const;

 private:
  const WaitLimits limits_;
  const std::string what_;
  mutable std::atomic<std::chrono::steady_clock::rep> next_look_ = 0;
  mutable std::mutex mutex_;
  mutable std::exception_ptr reason_;
};

/// Destroys the program with the object, also when something threw. Not thread-safe.
class NvrtcUnit {
 public:
  /// Throws Error with NVRTC's code and text, InvalidArgument for a NUL in a text.
  NvrtcUnit(const LoadedNvrtc& nvrtc, const std::string& text, const std::string& name,
            const std::map<std::string, std::string>& headers);
  ~NvrtcUnit();
  NvrtcUnit(const NvrtcUnit&) = delete;
  NvrtcUnit& operator=(const NvrtcUnit&) = delete;

  void add_name(const std::string& expression);

  /// True when it compiled, false when the text is at fault (see log()). NVRTC asks now and then
  /// whether `deadline` has expired (12.8 and newer, and not while it instantiates templates) and
  /// ends then. Throws the errors of CompileDeadline::rethrow(), InvalidArgument for an option
  /// refused by NVRTC, NvrtcNotFound when its builtins library is missing, else Error.
  bool compile(const std::vector<std::string>& options, const CompileDeadline& deadline);

  std::string log() const;
  /// The outcome of --pch. After a compile.
  nvrtcResult pch_create_status() const;
  /// After a successful compile.
  std::string lowered_name(const std::string& expression) const;
  std::string ptx() const;
  /// Empty when the compile was for a virtual architecture.
  std::string cubin() const;

 private:
  void check(nvrtcResult result, const char* call) const;
  using SizeFunction = nvrtcResult (*)(nvrtcProgram, std::size_t*);
  using ReadFunction = nvrtcResult (*)(nvrtcProgram, char*);
  std::string read(SizeFunction size_of, ReadFunction read_into, const char* call) const;

  const LoadedNvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace kernwright
