// Object code loaded on one device.
#pragma once

#include "core/source_origin.h"
#include "driver/driver_api.h"

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

/// Shared reference to a CUmodule; unloaded with the last copy. Kernels made from it keep it alive.
/// Thread-safe.
class Module {
 public:
  /// `image` is a cubin or PTX text (NUL-terminated by this call). `resource_cubin` may carry the
  /// cubin of the same kernels, from which the simulated device takes register and shared memory
  /// counts. `origin` says where the kernels' text stands, for messages. Throws DriverError with
  /// the driver's log; on the simulated device UnsupportedInstruction or DriverError
  /// (CUDA_ERROR_INVALID_PTX) with the line.
  static Module load(Device& device, std::string_view image, std::string_view resource_cubin = {},
                     SourceOrigin origin = {});

  Device& device() const;
  CUmodule handle() const noexcept;
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
