// Libraries of kernels of no context: loaded into each one when first used there.
#pragma once

#include "libcuda/kernels.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright::libcuda {

using CUlibrary = struct CUlib_st*;

/// The current context, or while this lives one of the device named by the caller.
class ContextScope {
 public:
  /// The current context; without one device 0's.
  ContextScope();
  explicit ContextScope(CUdevice device);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  CUresult result() const noexcept { return result_; }

 private:
  void enter();

  CUresult result_ = CUDA_SUCCESS;
  CUdevice device_ = 0;
  bool entered_ = false;
};

/// PTX text, the modules made of it, and its kernels. Thread-safe.
class Library {
 public:
  struct Kernel {
    std::weak_ptr<Library> library;
    CUlibrary handle = nullptr;  ///< of the library
    std::string name;
    std::map<std::pair<CUdevice, CUfunction_attribute>, int> settings;
    std::map<unsigned long long, CUfunction> functions;  ///< by context
  };

  explicit Library(std::string text) : text_(std::move(text)) {}

  /// The module in the current context, loaded when it is not there yet.
  CUresult module(CUmodule* module);
  /// A module already in the current context.
  CUresult adopt(CUmodule module);
  /// The kernel's function in the current context.
  CUresult function(Kernel& kernel, CUfunction* function);
  CUresult set(Kernel& kernel, CUdevice device, CUfunction_attribute attribute, int value);
  void unload();

  std::vector<std::pair<std::string, CUkernel>> kernels;  ///< written while it is made

 private:
  CUresult load(unsigned long long context, CUmodule* module);

  std::string text_;
  std::mutex mutex_;
  std::map<unsigned long long, CUmodule> modules_;  ///< by context
};

/// Makes a library and its kernels' handles. `module` was loaded from the text in the current
/// context.
CUresult make_library(std::string text, CUmodule module, CUlibrary* handle);
/// Ends the library's handles and unloads its modules.
CUresult end_library(CUlibrary handle);

/// Null for anything but a live handle.
std::shared_ptr<Library> find_library(CUlibrary handle);
std::shared_ptr<Library::Kernel> find_kernel(CUkernel handle);

}  // namespace kernwright::libcuda
