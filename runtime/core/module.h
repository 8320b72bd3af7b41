// Object code loaded on one device.
#pragma once

#include "core/source_origin.h"
#include "driver/driver_api.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

class Device;

/// A __device__ or __constant__ variable of a loaded module.
struct ModuleSymbol {
  CUdeviceptr address = 0;
  std::size_t size = 0;  ///< bytes
};

/// Makes the cubin of a module's kernels; may throw.
using ResourceCubin = std::function<std::string()>;

/// Shared reference to a CUmodule; unloaded with the last copy. Kernels made from it keep it alive.
/// Thread-safe.
class Module {
 public:
  /// `image` is a cubin or PTX text (NUL-terminated by this call). `resource_cubin` may carry the
  /// cubin of the same kernels, from which the simulated device takes register counts and local
  /// memory; without it, `make_cubin` may make it when a count is first needed. `origin` says where
  /// the kernels' text stands, for messages. Throws DriverError with the driver's log; on the
  /// simulated device UnsupportedInstruction or DriverError (CUDA_ERROR_INVALID_PTX) with the line.
  static Module load(Device& device, std::string_view image, std::string_view resource_cubin = {},
                     SourceOrigin origin = {}, ResourceCubin make_cubin = {});

  /// Whether the counts come from `make_cubin`. Until complete_resources() the driver then has the
  /// most registers that each kernel may have.
  bool makes_cubin() const noexcept;
  /// Calls `make_cubin` once, and throws its errors. Thread-safe.
  void complete_resources() const;

  Device& device() const;
  CUmodule handle() const noexcept;
  std::size_t bytes() const noexcept;  ///< of the image: about what the code takes on the device
  const SourceOrigin& origin() const noexcept;
  /// `name` is the lowered (mangled) name. Throws NameNotFound, with a list of the names if the
  /// driver has one.
  CUfunction function(const std::string& name) const;
  ModuleSymbol symbol(const std::string& name) const;
  /// Lowered names of the kernels; empty on drivers before CUDA 12.4, which do not tell them.
  std::vector<std::string> function_names() const;

 private:
  struct Box;
  explicit Module(std::shared_ptr<Box> box) : box_(std::move(box)) {}
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
