// Owns one nvrtcProgram: create, compile, read what came out.
#pragma once

#include "driver/nvrtc_loader.h"

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// When a compile has to end. One deadline may serve several compiles, one after the other.
class CompileDeadline {
 public:
  /// No `limit`: never.
  explicit CompileDeadline(std::optional<std::chrono::milliseconds> limit);

  std::chrono::milliseconds limit() const noexcept {
    return limit_.value_or(std::chrono::milliseconds::zero());
  }
  /// Expired from now on, whatever the time. Any thread.
  void stop() const noexcept { expired_.store(true, std::memory_order_relaxed); }
  /// True from the first moment on at which the time was up; never false again. Any thread.
  bool expired() const noexcept;

  /// The compiler asked, or began, just now.
  void note_sign_of_life() const noexcept;
  /// For how long it has not asked. Any thread.
  std::chrono::nanoseconds silence() const noexcept;

 private:
  std::optional<std::chrono::milliseconds> limit_;
  std::chrono::steady_clock::time_point end_;
  mutable std::atomic<bool> expired_ = false;
  mutable std::atomic<std::chrono::steady_clock::rep> heard_;
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

  /// True when it compiled, false when the text is at fault (see log()). Where NVRTC can be stopped
  /// (12.8 and newer) it is once `deadline` expires or is stopped. Throws Timeout, InvalidArgument
  /// for an option that NVRTC refuses, NvrtcNotFound when its builtins library is missing, else
  /// Error.
  bool compile(const std::vector<std::string>& options, const CompileDeadline& deadline);

  std::string log() const;
  /// What came of --pch. After a compile.
  nvrtcResult pch_create_status() const;
  /// After a compile that succeeded.
  std::string lowered_name(const std::string& expression) const;
  std::string ptx() const;
  /// Empty when the compile was for a virtual architecture.
  std::string cubin() const;

 private:
  nvrtcResult run_compiler(const std::vector<const char*>& options, const void* task);
  void check(nvrtcResult result, const char* call) const;
  using SizeFunction = nvrtcResult (*)(nvrtcProgram, std::size_t*);
  using ReadFunction = nvrtcResult (*)(nvrtcProgram, char*);
  std::string read(SizeFunction size_of, ReadFunction read_into, const char* call) const;

  const LoadedNvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace kernwright
