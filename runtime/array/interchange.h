// Arrays from and to other libraries: DLPack tensors.
#pragma once

#include "array/array.h"
#include "array/dlpack.h"

#include <optional>

namespace kernwright {

/// The result of __dlpack_device__: kDLCUDA, or kDLExtDev for memory of the simulated device.
DLDevice dlpack_device(const Device& device) noexcept;

/// Whether the receiver of an exported tensor is this library itself. Another library would follow
/// an address of the simulated device as if it were a GPU's, so that arrays of this device are
/// exported to ourselves only.
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

}  // namespace kernwright
