// Keeps a compile that nobody waits for from running into the end of the process.
#pragma once

namespace kernwright {

/// While it lives, the calling thread may be inside the library that holds `function`. When the
/// process exits meanwhile, the thread is stopped for good before that library's own clean-up
/// begins: NVRTC 13.0 would otherwise notice that its state is gone and end the process with an
/// exit code of its own. Any thread; not nested.
class ExitGuard {
 public:
  explicit ExitGuard(const void* function);
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;
};

}  // namespace kernwright
