// Arrays from and to other libraries: DLPack tensors and __cuda_array_interface__ dictionaries.
#pragma once

#include "array/array.h"
#include "array/dlpack.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

/// The result of __dlpack_device__: kDLCUDA, or kDLExtDev for memory of the simulated device.
DLDevice dlpack_device(const Device& device) noexcept;

/// Whether the receiver of an exported tensor is this library itself. Others would follow an
/// address of the simulated device as if it were a GPU's, so that such arrays are exported to
/// ourselves only.
enum class DLPackReceiver { anybody, ourselves };

/// A tensor that keeps the array alive until its deleter is called: by the receiver, or with an
/// unclaimed capsule. Throws InvalidArgument for an array of the simulated device, for strides that
/// are no multiple of the element size, and, in the unversioned form, for a read-only array.
DLManagedTensor* to_dlpack(const Array& array, DLPackReceiver receiver = DLPackReceiver::anybody);
DLManagedTensorVersioned* to_dlpack_versioned(const Array& array,
                                              DLPackReceiver receiver = DLPackReceiver::anybody,
                                              bool is_copy = false);

/// The element type spelled by `dtype`, nothing for one unknown to arrays.
std::optional<ScalarType> scalar_from_dlpack(DLDataType dtype) noexcept;

/// Takes the tensor over: its deleter is called with the last view. When this throws, the tensor is
/// untouched and still the caller's. Throws InvalidArgument for memory outside a GPU, dtypes
/// unknown to arrays, more than one lane, a version other than 1; DeviceNotFound for a missing GPU.
Array from_dlpack(DLManagedTensor* tensor);
Array from_dlpack(DLManagedTensorVersioned* tensor);

/// The fields of version 3 of __cuda_array_interface__.
struct CudaArrayInterface {
  Shape shape;
  std::string typestr;     ///< "<f4", "|b1"
  std::uint64_t data = 0;  ///< address of element 0
  bool read_only = false;
  std::optional<Shape> strides;         ///< bytes; none: row-major
  std::optional<std::uint64_t> stream;  ///< 1: legacy, 2: per-thread, else a handle; never 0
};

/// Throws InvalidArgument for arrays of the simulated device, and for dtypes that NumPy's type
/// strings cannot spell (bfloat16, float8): DLPack carries these.
CudaArrayInterface to_cuda_array_interface(const Array& array);
/// `owner` is held as long as any view lives. The device is asked for by address. Does not wait for
/// `stream`: that is the caller's. Throws InvalidArgument.
Array from_cuda_array_interface(const CudaArrayInterface& interface, std::shared_ptr<void> owner);

/// The GPU whose memory `address` is in. Throws InvalidArgument when it is no GPU's.
Device& address_device(CUdeviceptr address);

}  // namespace kernwright
