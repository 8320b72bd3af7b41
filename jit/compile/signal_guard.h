// Keeps the process's own signal handlers while a compiler runs that would take them.
#pragma once

namespace kernwright {

/// NVRTC 13.0, for one, handles SIGINT, SIGTERM and SIGHUP itself while it compiles: Ctrl-C then
/// ends the process with exit code 4, and afterwards the old handlers come back with other flags.
/// While one of these objects lives, handlers inside the library that holds `function` (or the
/// `function` of another guard) are put out by keep(); the last one to go restores what was there.
/// Several may live at once. Any thread.
class SignalGuard {
 public:
  explicit SignalGuard(const void* function);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Instead of the destructor of one whose thread was stopped for good.
  static void forget() noexcept;

  /// To be called now and then during a compile, by any thread.
  static void keep() noexcept;
};

}  // namespace kernwright
