// Conversion of arrays to and from what other libraries exchange.
#include "array/interchange.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/runtime.h"

#include <array>

namespace kernwright {
namespace {

struct TypeRow {
  ScalarType type;
  DLDataTypeCode code;
};

constexpr std::array<TypeRow, kScalarTypeCount> kTypes{{
    {ScalarType::boolean, kDLBool},
    {ScalarType::int8, kDLInt},
    {ScalarType::int16, kDLInt},
    {ScalarType::int32, kDLInt},
    {ScalarType::int64, kDLInt},
    {ScalarType::uint8, kDLUInt},
    {ScalarType::uint16, kDLUInt},
    {ScalarType::uint32, kDLUInt},
    {ScalarType::uint64, kDLUInt},
    {ScalarType::float16, kDLFloat},
    {ScalarType::bfloat16, kDLBfloat},
    {ScalarType::float32, kDLFloat},
    {ScalarType::float64, kDLFloat},
    {ScalarType::float8_e4m3fn, kDLFloat8_e4m3fn},
    {ScalarType::float8_e5m2, kDLFloat8_e5m2},
    {ScalarType::complex64, kDLComplex},
    {ScalarType::complex128, kDLComplex},
}};

const TypeRow& type_row(ScalarType type) noexcept {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  return kTypes.front();
}

/// An exported tensor with its array, shape and strides.
template <typename Managed>
struct Exported {
  Managed managed{};
  Array array;
  Shape shape;
  Shape strides;  ///< in elements

  static void destroy(Managed* tensor) { delete static_cast<Exported*>(tensor->manager_ctx); }
};

void require_exportable(const Array& array) {
  if (!array.device().is_simulated()) return;
  throw InvalidArgument(
      format("{} cannot be given to another library (DLPack): memory of the simulated device is no "
             "GPU memory; copy it with numpy() instead",
             array.identify()));
}

Shape strides_in_elements(const Array& array) {
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  Shape strides = array.strides();
  for (std::int64_t& stride : strides) {
    if (stride % element != 0) {
      throw InvalidArgument(
          format("{} with strides {} cannot be exported: DLPack counts strides in elements of {} "
                 "bytes; copy the array first",
                 array.identify(), shape_to_string(array.strides()), element));
    }
    stride /= element;
  }
  return strides;
}

template <typename Managed>
Exported<Managed>* make_exported(const Array& array, DLPackReceiver receiver) {
  if (receiver == DLPackReceiver::anybody) require_exportable(array);
  auto exported = std::make_unique<Exported<Managed>>();
  exported->array = array;
  exported->shape = array.shape();
  exported->strides = strides_in_elements(array);
  DLTensor& tensor = exported->managed.dl_tensor;
  // An address of a GPU travels as a pointer that the host never follows.
  tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(array.address()));
  tensor.device = dlpack_device(array.device());
  tensor.ndim = array.ndim();
  tensor.dtype = {type_row(array.type()).code,
                  static_cast<std::uint8_t>(8 * scalar_size(array.type())), 1};
  tensor.shape = exported->shape.data();
  tensor.strides = exported->strides.data();
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = Exported<Managed>::destroy;
  return exported.release();
}

ScalarType parse_scalar_type(DLDataType dtype) {
  if (const auto type = scalar_from_dlpack(dtype)) return *type;
  throw InvalidArgument(
      format("a DLPack tensor of type code {}, {} bits, {} lanes: arrays have no "
             "such dtype",
             dtype.code, dtype.bits, dtype.lanes));
}

Device& tensor_device(const DLTensor& tensor, bool is_ours) {
  const int id = tensor.device.device_id;
  switch (tensor.device.device_type) {
    case kDLCUDA:
    case kDLCUDAManaged:
      return Runtime::get().device(format("cuda:{}", id));
    case kDLExtDev:
      if (is_ours) return Runtime::get().device(format("sim:{}", id));
      throw InvalidArgument("a DLPack tensor of an extension device that is not this library's");
    case kDLCPU:
    case kDLCUDAHost:
      throw InvalidArgument(
          "a DLPack tensor in host memory: copy it to a device with asarray() instead");
  }
  throw InvalidArgument(
      format("a DLPack tensor of device type {}: only GPU memory of CUDA (type {})"
             " can be taken over",
             static_cast<int>(tensor.device.device_type), static_cast<int>(kDLCUDA)));
}

constexpr int kMostDimensions = 64;

template <typename Managed>
Array import_tensor(Managed* managed, bool read_only) {
  const DLTensor& tensor = managed->dl_tensor;
  const bool is_ours = managed->deleter == Exported<Managed>::destroy;
  const ScalarType type = parse_scalar_type(tensor.dtype);
  if (tensor.ndim < 0 || tensor.ndim > kMostDimensions ||
      (tensor.ndim > 0 && tensor.shape == nullptr)) {
    throw InvalidArgument(format("a DLPack tensor of {} dimensions: 0 to {} are allowed",
                                 tensor.ndim, kMostDimensions));
  }
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  Shape strides;
  if (tensor.strides == nullptr) {
    strides = contiguous_strides(shape, scalar_size(type));
  } else {
    strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    for (std::int64_t& stride : strides) {
      if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(scalar_size(type)), &stride)) {
        throw InvalidArgument("a DLPack tensor whose strides exceed 64 bits");
      }
    }
  }
  Device& device = tensor_device(tensor, is_ours);
  const auto address =
      static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(tensor.data)) + tensor.byte_offset;
  // The owner is told what to delete only when nothing can fail any more.
  auto owner = std::make_shared<Managed*>(nullptr);
  Array array =
      Array::adopt(device, address, std::move(shape), std::move(strides), type,
                   std::shared_ptr<void>(owner.get(),
                                         [owner](void*) {
                                           Managed* const taken = *owner;
                                           if (taken != nullptr && taken->deleter != nullptr) {
                                             taken->deleter(taken);
                                           }
                                         }),
                   read_only);
  *owner = managed;
  return array;
}

}  // namespace

std::optional<ScalarType> scalar_from_dlpack(DLDataType dtype) noexcept {
  if (dtype.lanes != 1) return std::nullopt;
  for (const TypeRow& row : kTypes) {
    if (row.code == dtype.code && 8 * scalar_size(row.type) == dtype.bits) return row.type;
  }
  return std::nullopt;
}

DLDevice dlpack_device(const Device& device) noexcept {
  return {device.is_simulated() ? kDLExtDev : kDLCUDA, device.ordinal()};
}

DLManagedTensor* to_dlpack(const Array& array, DLPackReceiver receiver) {
  if (array.read_only()) {
    throw InvalidArgument(
        format("{} is read-only: only DLPack 1.0 and newer can say so, and the "
               "receiver asks for an older version",
               array.identify()));
  }
  return &make_exported<DLManagedTensor>(array, receiver)->managed;
}

DLManagedTensorVersioned* to_dlpack_versioned(const Array& array, DLPackReceiver receiver,
                                              bool is_copy) {
  DLManagedTensorVersioned& managed =
      make_exported<DLManagedTensorVersioned>(array, receiver)->managed;
  managed.version = {kDLPackMajor, kDLPackMinor};
  managed.flags = (array.read_only() ? kDLPackReadOnly : 0) | (is_copy ? kDLPackIsCopied : 0);
  return &managed;
}

Array from_dlpack(DLManagedTensor* tensor) { return import_tensor(tensor, false); }

Array from_dlpack(DLManagedTensorVersioned* tensor) {
  if (tensor->version.major != kDLPackMajor) {
    throw InvalidArgument(format("a DLPack tensor of version {}.{}: only {}.x is known",
                                 tensor->version.major, tensor->version.minor, kDLPackMajor));
  }
  return import_tensor(tensor, (tensor->flags & kDLPackReadOnly) != 0);
}

}  // namespace kernwright
