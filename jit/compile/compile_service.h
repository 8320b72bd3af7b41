// The place of compiles: this process, or other processes that may be killed (worker/).
#pragma once

#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "jit/compile/compiler.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kernwright {

/// The compiling NVRTC differs from the one known to the caller: its files were replaced. Nothing
/// was compiled; nvrtc() of the service describes the new one.
class NvrtcChanged : public Error {
 public:
  using Error::Error;
};

/// Finds an NVRTC and compiles with it. Thread-safe. Compiles end at the limits of the calling
/// thread (WaitScope) and at the timeout of their options.
class CompileService {
 public:
  using Facts = std::shared_ptr<const NvrtcFacts>;

  CompileService() = default;
  virtual ~CompileService() = default;
  CompileService(const CompileService&) = delete;
  CompileService& operator=(const CompileService&) = delete;

  /// The NVRTC for compiles, opened if necessary. Throws NvrtcNotFound.
  virtual Facts nvrtc() = 0;
  /// The same where it is known without opening anything, else null.
  virtual Facts nvrtc_if_known() = 0;
  /// Starts the work of nvrtc() without waiting for it, if possible.
  virtual void prepare() = 0;

  /// Throws the exceptions of Compiler::compile(), NvrtcNotFound, and NvrtcChanged if the
  /// compiler's stamp is not the one of `expected`.
  virtual CompileResult compile(const CompileJob& job, const NvrtcFacts& expected) = 0;
  /// As lint() of lint.h. Throws NvrtcNotFound too.
  virtual std::vector<Diagnostic> lint(const Source& source, const ProgramOptions& options) = 0;
};

/// Compiles in the calling thread, by an NVRTC of this process. Two promises end there: NVRTC asks
/// no deadline while it instantiates templates, and a text nested too deep ends the process.
class DirectCompileService : public CompileService {
 public:
  using Open = std::function<const LoadedNvrtc&()>;
  using Opened = std::function<const LoadedNvrtc*()>;

  /// By default the process's own NVRTC. The result of `open` must live as long as its facts.
  explicit DirectCompileService(Open open = kernwright::nvrtc, Opened opened = nvrtc_if_loaded);

  Facts nvrtc() override;
  Facts nvrtc_if_known() override;
  void prepare() override {}
  CompileResult compile(const CompileJob& job, const NvrtcFacts& expected) override;
  std::vector<Diagnostic> lint(const Source& source, const ProgramOptions& options) override;

 private:
  const Open open_;
  const Opened opened_;
};

/// The service of this process: a DirectCompileService until set_compile_service().
CompileService& compile_service();

/// `service` is called for each compile and must return an object that is never destroyed; a forked
/// child may need another one. Null restores the direct service.
void set_compile_service(CompileService& (*service)()) noexcept;

}  // namespace kernwright
