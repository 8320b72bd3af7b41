// Calls of a thread that compile their kernels and launch nothing.
#pragma once

#include "core/kernel.h"
#include "core/launch/launch_hook.h"
#include "core/per_device.h"
#include "jit/kernels_ahead.h"

namespace kernwright {

/// While one lives, this thread launches neither kernels nor graphs: results stay as they were
/// allocated. For calls whose results nobody reads. Other work of the calls, as copies, is done.
///
/// The compile of a kernel that is not compiled yet and may wait for it (see LazyKernel) begins
/// when a call asks for the kernel; as many run at a time as there are processors. The call goes on
/// with a kernel without parameters, which is no base for choices that depend on the kernel. A
/// kernel of the user is compiled at once. Scopes nest; the innermost one counts. For one thread.
class CompileOnly final : private LaunchHook {
 public:
  CompileOnly() noexcept;
  ~CompileOnly() override;
  CompileOnly(const CompileOnly&) = delete;
  CompileOnly& operator=(const CompileOnly&) = delete;

  /// That of this thread, or null.
  static CompileOnly* current() noexcept { return innermost_; }

  /// While one lives, calls launch as usual: for what a call makes once and keeps.
  class Pause {
   public:
    Pause() noexcept : scope_(innermost_) { innermost_ = nullptr; }
    ~Pause() { innermost_ = scope_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    CompileOnly* const scope_;
  };

  /// Begins to compile `kernel`, which must outlive this object. Returns the one in its place.
  const Kernel& begin(const LazyKernel& kernel, Device& device);
  /// Returns when all are compiled and loaded. Throws as LazyKernel::on() does, for the first that
  /// was asked for.
  void finish() { kernels_.load_all(); }

 private:
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override;
  void launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) override;

  const LaunchHookScope hooked_{this};
  CompileOnly* const outer_;
  PerDevice<Kernel> stand_ins_;
  KernelsAhead kernels_;
  static inline constinit thread_local CompileOnly* innermost_ = nullptr;
};

}  // namespace kernwright
